"""Clients of a soak, each in a process: senders and consumers that stay, consumers that come and go, and a visitor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.support import manifests
from tests.support.callers import make_caller, renew_token
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Kind
from tests.support.service_address import ServiceAddress
from tests.support.soak import sending_process, visiting_process
from tests.support.soak.ledger import Ledger
from tests.support.soak.reading import Outages, Reading
from tests.support.soak.sending_process import Sent
from tests.support.soak.stage import Stage

ORDERS, SURGE = "orders", "surge"
TOPICS_KEPT = (ORDERS, SURGE)
SURGE_GROUP = "surge-queue"
PRODUCERS, KEYS, PER_SECOND = 4, 16, 15.0
SURGE_LOW, SURGE_HIGH, SURGE_PERIOD_SECONDS = 2.0, 120.0, 120.0
MOST = {Kind.STREAM: 3, Kind.QUEUE: 2, Kind.CHECKPOINT: 2}
"""Consumers of each kind that come and go, beside one that stays."""
_ROOT = Path(__file__).parents[3]
_RENEW_SECONDS, _TOKEN_SECONDS = 300.0, 900
_READ_SECONDS = 2.0
_END_SECONDS = 90.0
_VISIT_SECONDS = 400.0
# Split and merged by what is sent alone; no test reaches the others.
_SURGE_KNOBS = {
    "maxSegments": 4,
    "depthRecovery": "30s",
    "split": {"cooldown": "5s", "msgRateIn": 50, "bytesRateIn": "1G", "msgRateOut": "1M", "bytesRateOut": "1G"},
    "merge": {
        "cooldown": "5s",
        "window": "10s",
        "msgRateIn": 10,
        "bytesRateIn": "100M",
        "msgRateOut": "100k",
        "bytesRateOut": "100M",
    },
}


def group_of(kind: Kind) -> str:
    """Name of the subscription of `orders` that consumers of a kind have."""
    return f"all-{kind}"


GROUPS = {ORDERS: frozenset(map(group_of, MOST)), SURGE: frozenset((SURGE_GROUP,))}
"""Names of the subscriptions of the topics that stay."""


@dataclass(slots=True)
class Traffic:
    """All clients, running; made by `traffic`.

    Args:
        senders: by topic.
        counts: files in which they tell what is stored, by topic.
        steady: consumers that stay, by name of the subscription.
        crowds: consumers of `orders` that come and go.
        readings: what consumers got, by name of the subscription.
        visitor: uses topics that come and go.
    """

    stage: Stage
    senders: Mapping[str, Process]
    counts: Mapping[str, Path]
    steady: Mapping[str, Crowd]
    crowds: Mapping[Kind, Crowd]
    readings: Mapping[str, Reading]
    visitor: Process

    def pids(self) -> dict[str, int]:
        """Process ids of the clients that stay, by name."""
        senders = {f"sender of {topic}": process.pid for topic, process in self.senders.items()}
        steady = {f"consumer of {name}": pid for name, crowd in self.steady.items() for pid in crowd.pids.values()}
        return {**senders, **steady, "visitor of topics that come and go": self.visitor.pid}

    def check(self) -> None:
        """Raises AssertionError if a client has ended by itself, or if a send has failed."""
        for topic, process in self.senders.items():
            assert process.returncode is None, f"the sender of {topic} has ended with {process.returncode}"
            assert not self.sent(topic).failures, self.sent(topic).failures
        assert self.visitor.returncode is None, f"the visitor has ended with {self.visitor.returncode}"
        for crowd in (*self.steady.values(), *self.crowds.values()):
            crowd.check()
        for name, reading in self.readings.items():
            assert not reading.ledger.verdict, f"{name}: {reading.ledger.verdict}"

    def sent(self, topic: str) -> Sent:
        """What the sender of a topic has told."""
        return Sent.read(self.counts[topic])

    async def visit(self, topic: str, *, send: int = 0, again: int = 0) -> None:
        """Have the visitor use a topic. Raises AssertionError if a message does not come."""
        assert self.visitor.stdin is not None
        assert self.visitor.stdout is not None
        self.visitor.stdin.write(json.dumps({"topic": topic, "send": send, "again": again}).encode() + b"\n")
        async with asyncio.timeout(_VISIT_SECONDS):
            line = await self.visitor.stdout.readline()
        assert line, "the visitor has ended"
        assert json.loads(line) == {"missing": 0}, f"{topic}: {line!r} of {send} sent, {again} to come again"

    async def watch(self) -> None:
        """Judge what consumers got as it comes, until cancelled."""
        while True:
            for reading in self.readings.values():
                # In a thread: consumers reach the gateway through this process.
                await asyncio.to_thread(reading.step())
            await asyncio.to_thread(self.check)
            await asyncio.sleep(_READ_SECONDS)

    async def stop_sending(self) -> dict[str, Sent]:
        """Have the senders end; answers what they have stored, by topic."""
        for process in self.senders.values():
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(_END_SECONDS):
            codes = [await process.wait() for process in self.senders.values()]
        assert not any(codes), codes
        return {topic: self.sent(topic) for topic in self.senders}

    async def drain(self, sent: Mapping[str, Sent], within_seconds: float) -> dict[str, int]:
        """Wait until everything was received and acknowledged, and have all consumers and the visitor end.

        Answers how much was stored and never both received and acknowledged, by subscription.
        """
        deadline = time.monotonic() + within_seconds
        while any(self._lacking(sent).values()) and time.monotonic() < deadline:
            await asyncio.sleep(_READ_SECONDS)
            for reading in self.readings.values():
                await asyncio.to_thread(reading.step())
        await self._leave()
        for reading in self.readings.values():
            await asyncio.to_thread(reading.step(whole=True))
        return self._lacking(sent)

    async def _leave(self) -> None:
        assert self.visitor.stdin is not None
        self.visitor.stdin.close()
        for crowd in (*self.steady.values(), *self.crowds.values()):
            await crowd.end()
        async with asyncio.timeout(_END_SECONDS):
            assert await self.visitor.wait() == 0

    def _lacking(self, sent: Mapping[str, Sent]) -> dict[str, int]:
        found = {}
        for name, reading in self.readings.items():
            topic = next(topic for topic, groups in GROUPS.items() if name in groups)
            found[name] = sum(1 for _ in reading.ledger.lacking(sent[topic].stored))
        return found


@asynccontextmanager
async def traffic(stage: Stage, outages: Outages, random: Random) -> AsyncIterator[Traffic]:
    """Make the two topics that stay, and all clients; these are killed at the end, if they have not ended before."""
    world, folder = stage.world, stage.folder
    await _make_topics(stage)
    token_file, gateway_token_file = folder / "token", folder / "gateway-token"
    token_file.write_text(stage.brokers.superuser_token)
    gateway_token_file.write_text(await make_caller(world.kube, world.namespace, "consumer", ["consume"]))
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(ServiceAddress(stage.gateways))
        renewing = asyncio.create_task(_renew(stage, gateway_token_file))
        stack.callback(renewing.cancel)
        commons = stage.brokers.service_url, str(token_file), f"http://{service.address}", str(gateway_token_file)

        def crowd(kind: Kind, most: int, topic: str, group: str, name: str) -> Crowd:
            logs = folder / name
            logs.mkdir()
            made = Crowd(kind, most, lambda: [*commons, f"{world.pulsar_namespace}/{topic}", group], logs, random)
            stack.callback(made.kill)
            return made

        steady = {group_of(kind): crowd(kind, 1, ORDERS, group_of(kind), f"steady-{kind}") for kind in MOST}
        steady[SURGE_GROUP] = crowd(Kind.QUEUE, 1, SURGE, SURGE_GROUP, "steady-surge")
        crowds = {kind: crowd(kind, most, ORDERS, group_of(kind), f"changing-{kind}") for kind, most in MOST.items()}
        for name, one in steady.items():
            one.join(f"steady-{name}")
        for kind, one in crowds.items():
            for _ in range(MOST[kind]):
                one.join()
        readings = {
            group_of(kind): Reading(Ledger(kind is not Kind.QUEUE), [steady[group_of(kind)], crowds[kind]], outages)
            for kind in MOST
        }
        readings[SURGE_GROUP] = Reading(Ledger(ordered=False), [steady[SURGE_GROUP]], outages)
        await asyncio.gather(
            *(world.until_subscribed(topic, topic, groups, within_seconds=180) for topic, groups in GROUPS.items())
        )
        counts = {topic: folder / f"{topic}.counts" for topic in TOPICS_KEPT}
        rates = {ORDERS: (PER_SECOND, PER_SECOND, 60.0), SURGE: (SURGE_LOW, SURGE_HIGH, SURGE_PERIOD_SECONDS)}
        senders = {}
        for topic in TOPICS_KEPT:
            producers = PRODUCERS if topic == ORDERS else 1
            arguments = f"{world.pulsar_namespace}/{topic}", producers, KEYS, *rates[topic], counts[topic]
            senders[topic] = await _process(stack, stage, sending_process.__name__, *arguments)
        visitor = await _process(stack, stage, visiting_process.__name__, answers=True)
        yield Traffic(stage, senders, counts, steady, crowds, readings, visitor)


async def _make_topics(stage: Stage) -> None:
    world = stage.world
    full = {name: f"{world.pulsar_namespace}/{name}" for name in TOPICS_KEPT}
    orders = manifests.topic(
        ORDERS, full[ORDERS], initial=4, bucketBudget=8, deduplication=True, autoScale={"enabled": False}
    )
    await world.apply(orders)
    await world.apply(manifests.topic(SURGE, full[SURGE], deduplication=True, autoScale=_SURGE_KNOBS))
    for name in TOPICS_KEPT:
        await world.until_ready(name, within_seconds=120)


async def _process(
    stack: AsyncExitStack, stage: Stage, module: str, *arguments: object, answers: bool = False
) -> Process:
    said = (stage.folder / f"{module.rsplit('.', 1)[1]}.said").open("ab")
    stack.callback(said.close)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, stage.brokers.service_url, str(stage.folder / "token")),
        *map(str, arguments),
        stdin=PIPE,
        stdout=PIPE if answers else said,
        stderr=said,
        cwd=_ROOT,
        env=dict(os.environ),
    )
    stack.push_async_callback(_kill, process)
    return process


async def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _renew(stage: Stage, file: Path) -> None:
    world = stage.world
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        await renew_token(world.kube, world.namespace, "consumer", file, _TOKEN_SECONDS)
