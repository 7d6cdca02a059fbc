"""Ordered and shared consumers that come, go and die under layout changes, dead leaders and brokers: `make
show-ordered`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pulsar
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from dev.instance import LocalCluster, Shape
from scalable_topics.sdk import Client, Producer
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.cluster.shards import shard_of
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Judgement, Kind, judge_ordered, judge_shared
from tests.support.evidence import Evidence
from tests.support.guarantee_checker import Numbered
from tests.support.own_bench import OwnBench
from tests.support.pulsar_view import PulsarView
from tests.support.random_changes import next_change
from tests.support.replicas import SHARDS, Replicas, replicas
from tests.support.service_address import ServiceAddress
from tests.support.world import World, phase

_SECONDS = float(os.environ.get("ORDERED_SECONDS", "1200"))
_SEED = int(os.environ.get("ORDERED_SEED", "9"))
_PRODUCERS, _PER_SECOND, _KEYS = 8, 40.0, 20
_STREAMS, _QUEUES = 6, 4
_CHANGE_SECONDS, _CROWD_SECONDS, _LEADER_SECONDS, _BROKER_SECONDS = 5.0, 6.0, 60.0, 180.0
_DRAIN_SECONDS = 180.0
_PART = "What was seen"
_NS = 1_000_000_000
_FLAGS = (
    "--drift-seconds=20",
    "--prune-seconds=10",
    "--settle-window-seconds=20",
    "--force-delete-after-seconds=30",
    "--consumer-session-grace-seconds=10",
    "--handover-seconds=10",
)


@dataclass(slots=True)
class _Story:
    """What has happened, for people, and when brokers were dead."""

    happened: Counter[str] = field(default_factory=Counter)
    broker_deaths_ns: list[tuple[int, int]] = field(default_factory=list)


class _Sender:
    """One producer that numbers its messages by key."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.sent: list[tuple[Numbered, asyncio.Future[object]]] = []

    async def run(self, stopping: asyncio.Event) -> None:
        """Send at a steady pace until told to stop, then wait for the outcomes."""
        number = 0
        while not stopping.is_set():
            message = Numbered(self._producer.name, f"key-{number % _KEYS}", number // _KEYS)
            self.sent.append((message, await self._producer.submit(message.payload(), key=message.key)))  # type: ignore[arg-type]
            number += 1
            await asyncio.sleep(1 / _PER_SECOND)
        await self._producer.flush()

    def acknowledged(self) -> list[Numbered]:
        """What is stored. Raises what a send raised."""
        for _, outcome in self.sent:
            if (error := outcome.exception()) is not None:
                raise error
        return [message for message, _ in self.sent]


@pytest.mark.timeout(3000)
async def test_consumers_that_come_and_go_and_die(
    local_cluster: Callable[[Shape], LocalCluster],
    kube: KubeClient,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
) -> None:
    page = Evidence("ordered-consumers.md", "Ordered consumers that come, go and die", "make show-ordered", (_PART,))
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=2))
    brokers = cluster.pulsar.access
    async with (
        PulsarView(brokers.admin_url, brokers.superuser_token) as view,
        replicas(3, kube, view, brokers, kube_environment.kubeconfig, tmp_path, _FLAGS) as found,
    ):
        lines = await _run(cluster, found, brokers, tmp_path)
    page.show(_PART, *lines)
    page.write()


async def _run(cluster: LocalCluster, found: Replicas, brokers: PulsarAccess, folder: Path) -> list[str]:
    world, random, story = found.world, Random(_SEED), _Story()
    topic = world.topic_name("orders")
    await world.apply(manifests.topic("orders", str(topic), initial=4, bucketBudget=8, deduplication=True))
    token_file, gateway_token_file = folder / "token", folder / "gateway-token"
    token_file.write_text(brokers.superuser_token)
    gateway_token_file.write_text(await make_caller(world.kube, world.namespace, "consumer", ["consume"]))
    await world.until_ready("orders")
    await found.until_shared()
    bench = OwnBench(cluster, found.operators[0], world)

    def gateways() -> Sequence[str]:
        return [one.gateway_url.removeprefix("http://") for one in found.operators if one.running]

    async with ServiceAddress(gateways) as service:
        crowds = [
            Crowd(
                kind, most, _command(brokers, token_file, service, gateway_token_file, str(topic), kind), folder, random
            )
            for kind, most in ((Kind.STREAM, _STREAMS), (Kind.QUEUE, _QUEUES))
        ]
        try:
            for crowd in crowds:
                for _ in range(crowd.most):
                    crowd.join()
            senders = await _traffic(
                brokers,
                str(topic),
                _repeat(_CHANGE_SECONDS, lambda: _change_layout(world, random, story)),
                _repeat(_CROWD_SECONDS, crowds[0].change),
                _repeat(2 * _CROWD_SECONDS, crowds[1].change),
                _repeat(_LEADER_SECONDS, lambda: _kill_leader(found, str(topic), story)),
                _repeat(_BROKER_SECONDS, lambda: _disturb_brokers(bench, random, story)),
            )
            acknowledged = [message for sender in senders for message in sender.acknowledged()]
            await _until_received(crowds, acknowledged)
            for crowd in crowds:
                await crowd.end()
        finally:
            for crowd in crowds:
                crowd.kill()
    ordered = judge_ordered(acknowledged, crowds[0].receipts(), story.broker_deaths_ns)
    shared = judge_shared(acknowledged, crowds[1].receipts())
    print(f"ordered: {ordered}\nshared: {shared}\n{story.happened}")
    assert not ordered, ordered
    assert not shared, shared
    return _told(acknowledged, ordered, shared, crowds, story)


def _command(
    brokers: PulsarAccess, token_file: Path, service: ServiceAddress, gateway_token_file: Path, topic: str, kind: Kind
) -> Callable[[], list[str]]:
    gateway = f"http://{service.address}"
    return lambda: [brokers.service_url, str(token_file), gateway, str(gateway_token_file), topic, f"all-{kind}"]


async def _traffic(brokers: PulsarAccess, topic: str, *disturbances: Awaitable[None]) -> list[_Sender]:
    """Send for the time of the run while all this happens."""
    stopping = asyncio.Event()
    async with Client(brokers.service_url, pulsar.AuthenticationToken(brokers.superuser_token)) as client:
        senders = [_Sender(await client.producer(topic)) for _ in range(_PRODUCERS)]
        sending = [asyncio.create_task(sender.run(stopping)) for sender in senders]
        happening = [asyncio.ensure_future(one) for one in disturbances]
        try:
            done, _ = await asyncio.wait([*happening, *sending], timeout=_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for one in happening:
                one.cancel()
            await asyncio.gather(*happening, return_exceptions=True)
            stopping.set()
        await asyncio.gather(*sending)
    return senders


async def _repeat(seconds: float, act: Callable[[], Awaitable[None]]) -> None:
    while True:
        began = time.monotonic()
        await asyncio.sleep(seconds)
        await act()
        await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))


async def _change_layout(world: World, random: Random, story: _Story) -> None:
    wanted = next_change(await world.layout("orders"), random)
    body = await world.operate("orders", wanted.kind, within_seconds=180, **wanted.block)
    story.happened[f"{wanted.kind} {phase(body)}"] += 1
    await world.delete(SEGMENT_OPERATIONS, body["metadata"]["name"])


async def _kill_leader(found: Replicas, topic: str, story: _Story) -> None:
    leader = await found.leader_of(shard_of(topic, SHARDS))
    leader.kill()
    story.happened["leader killed, and started again"] += 1
    await asyncio.sleep(2.0)
    await asyncio.to_thread(leader.start)


async def _disturb_brokers(bench: OwnBench, random: Random, story: _Story) -> None:
    if random.random() < 0.5:
        story.happened["namespace unloaded"] += 1
        await bench.unload()
        return
    began_ns = time.monotonic_ns()
    story.happened["broker killed, and started 10 s later"] += 1
    await bench.broker_dies(1, 10)
    # What it had acknowledged in its last seconds was not on disk yet.
    story.broker_deaths_ns.append((began_ns, time.monotonic_ns() + 60 * _NS))


async def _until_received(crowds: Sequence[Crowd], acknowledged: Sequence[Numbered]) -> None:
    """Wait for the consumers; what they still lack afterwards is judged."""
    wanted = set(acknowledged)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while time.monotonic() < deadline:
        if all(wanted <= {one.message for one in crowd.receipts()} for crowd in crowds):
            # Their last acknowledgements are on their way.
            await asyncio.sleep(1.0)
            return
        await asyncio.sleep(2.0)


def _told(
    acknowledged: Sequence[Numbered],
    ordered: Judgement,
    shared: Judgement,
    crowds: Sequence[Crowd],
    story: _Story,
) -> list[str]:
    return [
        f"{_PRODUCERS} producers of {_PER_SECOND:.0f} messages a second, {_STREAMS} stream and {_QUEUES} queue "
        f"consumers, each in a process; three replicas behind one address, two brokers; seed {_SEED}, "
        f"{_SECONDS:.0f} s.",
        *(f"- {count} times: {what}" for what, count in sorted(story.happened.items())),
        *(
            f"- {crowd.kind} consumers: "
            + ", ".join(f"{count} {what}" for what, count in sorted(crowd.happened.items()))
            for crowd in crowds
        ),
        f"- {len(acknowledged)} messages stored",
        f"- stream: lost 0, disorder 0, repeated though acknowledged 0 (but for acknowledgements that a killed broker "
        f"had not stored); {ordered.again} came again that had not been acknowledged",
        f"- queue: lost 0; {shared.again} came again",
    ]
