"""R38: the peer's cases of applications and brokers together, with this library on segments of the Classic backend."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import Client, ClientError, GatewayOptions
from tests.conformance.deliberate_differences import NOT_ON_CLASSIC
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Kind
from tests.support.consumption_judge import judge_ordered
from tests.support.entry_buckets import is_shared_out, readers, subscription_status
from tests.support.guarantee_checker import Numbered
from tests.support.numbered_sender import NumberedSender
from tests.support.running_operator import RunningOperator
from tests.support.stream_fleet import StreamFleet
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually
from tests.support.world import World, phase

CASES = [case for case in load_cases() if case.area == "EndToEnd" and case.key not in NOT_ON_CLASSIC]
KEYS = [f"key-{number}" for number in range(20)]
SUBSCRIPTION = "s"
_PER_SECOND = 200.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What a case is played on.

    Args:
        world: an operator, and brokers.
        access: to the brokers.
        gateway_url: of the operator's gateway.
        token: for the gateway.
        given: of the case.
        name: of an object that no other case has.
        directory: for this case's files.
    """

    world: World
    access: PulsarAccess
    gateway_url: str
    token: str
    given: dict[str, Any]
    name: str
    directory: Path

    @property
    def topic(self) -> str:
        """`topic://` name."""
        return str(self.world.topic_name(self.name))

    async def create(self, segments: int, **spec: Any) -> None:
        """Have the topic."""
        await self.world.apply(manifests.topic(self.name, self.topic, initial=segments, **spec))
        await self.world.until_ready(self.name)

    async def change(self, kind: str, **block: Any) -> None:
        """Have something done to the topic."""
        body = await self.world.operate(self.name, kind, **block)
        assert phase(body) == "Succeeded", body["status"]

    async def status(self) -> dict[str, Any]:
        """Of the subscription."""
        return await subscription_status(self.world, self.name, SUBSCRIPTION)

    def client(self, service_url: str = "") -> Client:
        """An application's."""
        return Client(
            service_url or self.access.service_url,
            pulsar_client.AuthenticationToken(self.access.superuser_token),
            gateway=GatewayOptions(self.gateway_url, token=self.token),
        )

    @asynccontextmanager
    async def application(self) -> AsyncIterator[tuple[Client, StreamFleet]]:
        """One with stream consumers."""
        async with self.client() as client, StreamFleet(client, self.topic, SUBSCRIPTION) as fleet:
            yield client, fleet

    async def produce(self, client: Client, keys: Sequence[str]) -> str:
        """Send one message to each of some keys; answers whose they are."""
        async with await client.producer(self.topic) as producer:
            await NumberedSender(producer, keys).send(len(keys))
            return producer.name


@asynccontextmanager
async def _traffic(client: Client, topic: str) -> AsyncIterator[NumberedSender]:
    """Messages that come all the time while it is entered, and are stored afterwards."""
    stopping = asyncio.Event()
    async with await client.producer(topic) as producer:
        sender = NumberedSender(producer, KEYS, _PER_SECOND)
        sending = asyncio.create_task(sender.run(stopping))
        try:
            yield sender
        finally:
            stopping.set()
            await sending


async def _joined(stage: Stage, *, again: bool) -> dict[str, Any]:
    """A second consumer of a segment joins while messages come, and once more after it has left, if it is to."""
    await stage.create(1)
    (segment,) = (await stage.world.layout(stage.name)).active
    assert segment.buckets == stage.given["buckets"]
    async with stage.application() as (client, fleet):
        await fleet.join(["one"])
        async with _traffic(client, stage.topic) as sender:
            await fleet.until(200)
            await fleet.join(["two"])
            await fleet.until_busy("two")
            await fleet.until(len(sender.sent) + 300)
            if again:
                await fleet.leave("two")
                await fleet.until(len(sender.sent) + 200)
                await fleet.join(["two"])
                await fleet.until_busy("two")
        await fleet.until(len(sender.sent), within_seconds=90)
    judgement = judge_ordered(sender.acknowledged(), fleet.receipts)
    assert not judgement.lost
    return {"stuck": False, "orderViolations": len(judgement.disordered)}


async def _under_traffic(stage: Stage, initial: int, kind: str, **block: Any) -> dict[str, Any]:
    await stage.create(initial)
    async with stage.application() as (client, fleet):
        await fleet.join(["one"])
        async with _traffic(client, stage.topic) as sender:
            await fleet.until(100)
            await stage.change(kind, **block)
            await fleet.until(len(sender.sent) + 100)
        await fleet.until(len(sender.sent))
    sent = Counter(sender.acknowledged())
    received = Counter(receipt.message for receipt in fleet.receipts)
    assert len({receipt.part.segment_id for receipt in fleet.receipts}) > initial, "the new segments were used"
    return {"lost": (sent - received).total(), "duplicates": (received - sent).total()}


async def _watch_lost(stage: Stage) -> dict[str, Any]:
    """What follows the layout is a Reader, whose connection breaks with all others."""
    await stage.create(1, deduplication=True)
    failed = 0
    async with (
        TcpProxy(stage.access.service_url) as proxy,
        stage.client(proxy.service_url) as client,
        await client.producer(stage.topic) as producer,
    ):
        assert proxy.connections
        sender = NumberedSender(producer, KEYS)
        try:
            await sender.send(50)
            proxy.cut()
            await sender.send(50)
            await stage.change("Split", segment=0)
            await sender.send(2 * len(KEYS))
        except ClientError:
            failed += 1
        segments = {batches.segment_id for batches in producer.batches if batches.messages}
    assert segments == {1, 2}, "it learnt of the split afterwards"
    return {"failedSends": failed}


async def _replayed(stage: Stage) -> dict[str, Any]:
    # What no subscription needs is pruned.
    await stage.create(1, subscriptions=["keeper"])
    async with stage.application() as (client, fleet):
        await stage.produce(client, [f"k{number}" for number in range(stage.given["before"])])
        await stage.change("Split", segment=0)
        await stage.produce(client, [f"k{number}" for number in range(stage.given["after"])])
        await fleet.join(["one"])
        await fleet.until(stage.given["before"] + stage.given["after"])
    return {"received": len({receipt.message for receipt in fleet.receipts})}


async def _not_redelivered(stage: Stage) -> dict[str, Any]:
    before = stage.given["before"]
    await stage.create(1)
    async with stage.application() as (client, fleet):
        await fleet.join(["first"])
        sealed = await stage.produce(client, [f"k{number}" for number in range(before)])
        await stage.change("Split", segment=0)
        await fleet.until(before)
        await fleet.leave("first")
        await fleet.join(["second"])
        await stage.produce(client, KEYS)
        await fleet.until(before + len(KEYS))
    again = [receipt for receipt in fleet.receipts if receipt.consumer == "second"]
    return {"redelivered": sum(receipt.message.producer == sealed for receipt in again)}


async def _kept_keys(stage: Stage) -> dict[str, Any]:
    """Closing is leaving for good here; what comes back inside the grace is a process that died."""
    await stage.create(stage.given["segments"])
    layout = await stage.world.layout(stage.name)
    keys = [f"k{number}" for number in range(60)]
    alice, bob = stage.given["consumers"]
    files = stage.directory / "token", stage.directory / "gateway-token"
    for file, token in zip(files, (stage.access.superuser_token, stage.token), strict=True):
        file.write_text(token)
    command = [stage.access.service_url, str(files[0]), stage.gateway_url, str(files[1]), stage.topic, SUBSCRIPTION]
    crowd = Crowd(Kind.STREAM, 2, lambda: command, stage.directory, Random(0))

    async def received() -> set[tuple[str, Numbered]]:
        crowd.check()
        return {(one.consumer.rpartition("-")[2], one.message) for one in crowd.receipts() if one.acknowledged_at_ns}

    async def keys_of(name: str, producer: str, total: int) -> set[str]:
        found = await eventually(received, lambda found: len(found) == total, what=f"{total} messages are received")
        return {message.key for reader, message in found if reader == name and message.producer == producer}

    def is_shared(status: dict[str, Any]) -> bool:
        shares = Counter(name for names in readers(status, layout).values() for name in names)
        return len(shares) == 2 and is_shared_out(status, layout, layout.active)

    try:
        async with stage.client() as client:
            crowd.join(alice)
            crowd.join(bob)
            await eventually(stage.status, is_shared, what="both have their share", within_seconds=60)
            first = await stage.produce(client, keys)
            before = await keys_of(alice, first, len(keys))
            crowd.restart(alice)
            second = await stage.produce(client, keys)
            after = await keys_of(alice, second, 2 * len(keys))
        await crowd.end()
    finally:
        crowd.kill()
    assert before, "alice had nothing to read"
    return {"keySetUnchanged": before == after}


Story = Callable[[Stage], Awaitable[dict[str, Any]]]
STORIES: dict[str, Story] = {
    "split under traffic loses nothing": lambda stage: _under_traffic(stage, 1, "Split", segment=0),
    "merge under traffic loses nothing": lambda stage: _under_traffic(stage, 2, "Merge", segments=[0, 1]),
    "producer survives loss of the watch connection": _watch_lost,
    "new earliest subscriber replays the sealed parent": _replayed,
    "drained sealed backlog is not redelivered": _not_redelivered,
    "same name inside grace keeps its keys": _kept_keys,
    "consumer joining mid-traffic keeps per-key order": lambda stage: _joined(stage, again=False),
    "join, leave, rejoin does not wedge the release": lambda stage: _joined(stage, again=True),
}


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_peer_case(
    case: PeerCase, world: World, shared_operator: RunningOperator, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    name = f"case-{CASES.index(case)}-{uuid.uuid4().hex[:6]}"
    token = await make_caller(world.kube, world.namespace, name, ["consume"], [name])
    stage = Stage(world, pulsar, shared_operator.gateway_url, token, case.given, name, tmp_path)
    judge(case, await STORIES[case.name](stage), {})
