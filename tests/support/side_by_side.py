"""Classic topics of Pulsar 4 and native ones of Pulsar 5 side by side, in one run: how long changes take, who waits.

Both sides take turns, so that what else the machine does meets both alike.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.consumption import Kind
from tests.support.consumption_judge import judge_shared
from tests.support.paced_process import started
from tests.support.pulsar_view import PulsarView
from tests.support.v5_client import V5Client
from tests.support.waiting import eventually
from tests.support.world import NATIVE_CONNECTION, SHARED_CONNECTION, World, has_ended, is_ready, phase
from tests.support.world_making import make_world

SEGMENTS, KEYS = 4, 20
PER_SECOND, SIZE_BYTES = 200.0, 256
_TOTAL = 1_000_000
_PAUSE_SECONDS = 0.7
_SETTLE_SECONDS = 5.0
_SUBSCRIPTION = "work"
_LOOK_SECONDS = 0.01
# Sealed segments leave soon on Classic, too: brokers of Pulsar 5 look once a minute.
FLAGS = ("--log-level=INFO", "--settle-window-seconds=10", "--prune-seconds=10")
CREATE, SPLIT, MERGE = "create", "split", "merge"


@dataclass(slots=True)
class Side:
    """One of the two, with what was measured of it.

    Args:
        backend: as the topic's status says it.
        world: where its topics are.
        connection: name of it.
        objects_ms: how long each change took that an object asked for, until that said so, by kind.
        bare_ms: how long the brokers' own calls take, by kind.
        changes: kind, begin and end of each change under traffic.
        sends: when each message was handed over, and how long it took to be stored, in seconds.
        repeated: messages that came more than once.
    """

    backend: str
    world: World
    connection: str
    version: str = ""
    objects_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    bare_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    changes: list[tuple[str, float, float]] = field(default_factory=list)
    sends: list[tuple[float, float]] = field(default_factory=list)
    repeated: int = 0

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.backend} on Pulsar {self.version}"

    async def make(self, name: str, segments: int) -> float:
        """Have a topic made by an object; answers the seconds until it is Ready."""
        body = manifests.topic(
            name,
            str(self.world.topic_name(name)),
            connection_name=self.connection,
            initial=segments,
            subscriptions=[_SUBSCRIPTION],
            autoScale={"enabled": False},
            deletionPolicy="Delete",
        )
        began = time.monotonic()
        await self.world.apply(body)
        ready = await eventually(
            lambda: self.world.get(TOPICS, name),
            is_ready,
            what=f"{name} is Ready",
            within_seconds=60,
            every_seconds=_LOOK_SECONDS,
        )
        assert ready["status"]["backend"] == self.backend
        return time.monotonic() - began

    async def change(self, topic: str, turn: int) -> None:
        """Split the only segment of a topic under traffic, or in the next turn merge the two again, by an object."""
        active = [one.segment_id for one in (await self.world.layout(topic)).active]
        kind = MERGE if turn % 2 else SPLIT
        block: dict[str, Any] = {"segments": active} if turn % 2 else {"segment": active[0]}
        name = f"{topic}-{kind}-{uuid.uuid4().hex[:6]}"
        began = time.monotonic()
        await self.world.apply(manifests.operation(name, topic, kind.capitalize(), **block))
        ended = await eventually(
            lambda: self.world.get(SEGMENT_OPERATIONS, name),
            has_ended,
            what=f"{name} has ended",
            within_seconds=60,
            every_seconds=_LOOK_SECONDS,
        )
        ended_at = time.monotonic()
        assert phase(ended) == "Succeeded", ended["status"]
        await asyncio.sleep(_PAUSE_SECONDS)
        await self.world.delete(SEGMENT_OPERATIONS, name)
        self.objects_ms[kind].append(1000 * (ended_at - began))
        self.changes.append((kind, began, ended_at))

    def stalls_ms(self, kind: str) -> list[float]:
        """For each change of a kind, the longest that a message under way meanwhile took to be stored."""
        return [
            1000 * max((took for at, took in self.sends if at <= end and at + took >= begin), default=0.0)
            for one, begin, end in self.changes
            if one == kind
        ]


async def _timed(into: list[float], work: Awaitable[Any]) -> Any:
    began = time.monotonic()
    found = await work
    into.append(1000 * (time.monotonic() - began))
    return found


async def _bare_classic(side: Side, name: str) -> None:
    """What a change cannot do without where segments are ordinary topics: topics made and topics sealed."""
    view, prefix = side.world.pulsar, f"persistent://{side.world.pulsar_namespace}/{name}-"

    def make(*names: str) -> Awaitable[Any]:
        return asyncio.gather(*(view.create_topic(prefix + one) for one in names))

    async def split() -> None:
        await make("a", "b")
        await view.terminate(f"{prefix}0")

    async def merge() -> None:
        await make("c")
        await asyncio.gather(view.terminate(f"{prefix}a"), view.terminate(f"{prefix}b"))

    await _timed(side.bare_ms[CREATE], make(*map(str, range(SEGMENTS))))
    await _timed(side.bare_ms[SPLIT], split())
    await _timed(side.bare_ms[MERGE], merge())
    for one in (*map(str, range(SEGMENTS)), "a", "b", "c"):
        await view.delete_topic(prefix + one, force=True)


async def _bare_native(side: Side, name: str) -> None:
    """The brokers' own calls."""
    view, path = side.world.pulsar, f"scalable/{side.world.pulsar_namespace}/{name}"
    await _timed(side.bare_ms[CREATE], view.call("PUT", f"{path}?numInitialSegments={SEGMENTS}", {}))
    await _timed(side.bare_ms[SPLIT], view.call("POST", f"{path}/split/0"))
    await _timed(side.bare_ms[MERGE], view.call("POST", f"{path}/merge/{SEGMENTS}/{SEGMENTS + 1}"))
    await view.call("DELETE", f"{path}?force=true")


@asynccontextmanager
async def _classic_traffic(side: Side, topic: str, access: PulsarAccess) -> AsyncIterator[None]:
    """The library's producer and queue consumer, in a process of their own."""
    where = (access.service_url, access.superuser_token_file, side.world.topic_name(topic), _SUBSCRIPTION)
    async with started(*where, PER_SECOND, SIZE_BYTES, KEYS) as process:
        yield
        told = await process.stop()
    side.sends = [(at, took) for at, took in told["sends"]]
    side.repeated = told["repeated"]
    assert told["lost"] == 0


@asynccontextmanager
async def _native_traffic(side: Side, topic: str, access: PulsarAccess, directory: Path) -> AsyncIterator[None]:
    """Pulsar's V5 client for Java, in a process of its own, too."""
    url, keys = str(side.world.topic_name(topic)), [f"key-{number}" for number in range(KEYS)]
    async with V5Client.connected(access.service_url, access.superuser_token_file, directory) as client:
        consumer = await client.consumer(Kind.QUEUE, url, _SUBSCRIPTION, "consumer")
        producer = await client.producer(url, "paced", keys, total=_TOTAL, per_second=PER_SECOND, size_bytes=SIZE_BYTES)
        yield
        await producer.stop()
        await consumer.until(len(producer.sent))
        await consumer.stop()
    side.sends = [(one.called_at_seconds, one.took_seconds) for one in producer.sent]
    judged = judge_shared([one.message for one in producer.sent], consumer.receipts)
    assert not judged, judged
    side.repeated = judged.again


async def measured(
    kube: KubeClient,
    namespace: str,
    classic: PulsarAccess,
    native: PulsarAccess,
    folder: Path,
    *,
    creations: int,
    turns: int,
) -> Sequence[Side]:
    """Measure both sides; answers Classic and Native.

    Args:
        kube: an administrator's client.
        namespace: the one that an operator with `FLAGS` looks after.
        classic: brokers of Pulsar 4.
        native: brokers of Pulsar 5.
        folder: for files of clients.
        creations: how many topics are made on each side, and how often the brokers' own calls.
        turns: how many splits there are on each side, and as many merges.
    """
    async with AsyncExitStack() as stack:
        sides = [
            await _side(stack, kube, namespace, *one)
            for one in (("Classic", SHARED_CONNECTION, classic), ("Native", NATIVE_CONNECTION, native))
        ]
        await _measure_quiet(sides, creations)
        for side in sides:
            await side.make(f"used-{side.backend.lower()}", 1)
        async with (
            _classic_traffic(sides[0], "used-classic", classic),
            _native_traffic(sides[1], "used-native", native, folder),
        ):
            await asyncio.sleep(_SETTLE_SECONDS)
            for turn in range(2 * turns):
                for side in sides if turn // 2 % 2 else reversed(sides):
                    await side.change(f"used-{side.backend.lower()}", turn)
        for side in sides:
            await side.world.tidy_up()
    return sides


async def _side(
    stack: AsyncExitStack, kube: KubeClient, namespace: str, backend: str, connection: str, access: PulsarAccess
) -> Side:
    view = await stack.enter_async_context(PulsarView(access.admin_url, access.superuser_token))
    world = await make_world(kube, view, access, namespace, connection_name=connection, backend="Auto")
    side = Side(backend, world, connection)
    await world.until_reason(connection, "Reconciled", resource=CONNECTIONS)
    side.version = (await world.get(CONNECTIONS, connection))["status"]["version"]
    return side


async def _measure_quiet(sides: Sequence[Side], creations: int) -> None:
    """Topics made by objects, and the brokers' own calls; the first round of each warms up and does not count."""
    bare: dict[str, Callable[[Side, str], Awaitable[None]]] = {"Classic": _bare_classic, "Native": _bare_native}
    for number in range(creations + 1):
        for side in sides if number % 2 else reversed(sides):
            name = f"made-{side.backend.lower()}-{number}"
            side.objects_ms[CREATE].append(1000 * await side.make(name, SEGMENTS))
            await bare[side.backend](side, f"bare-{number}")
            await side.world.delete(TOPICS, name)
        if number == 0:
            for side in sides:
                side.objects_ms.clear()
                side.bare_ms.clear()
