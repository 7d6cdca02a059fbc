"""Many topics at once, and how quiet an operator keeps over them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass

from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.fault_proxy import SeenCall
from tests.support.processes import process_cpu_seconds
from tests.support.proxied_operator import ProxiedOperator
from tests.support.pulsar_client import PulsarClient
from tests.support.waiting import eventually
from tests.support.world import is_ready, phase, segment_topic

SUBSCRIPTIONS = ("first", "second")
_KINDS = (CONNECTIONS, TOPICS, SEGMENT_OPERATIONS, POLICIES)
_QUIET_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Quiet:
    """What an operator did in a time in which nothing was to be done.

    Args:
        seconds: how long it was watched.
        kube_writes: its writes to the API server.
        kube_reads: number of its reads there.
        admin_writes: its writes to the brokers.
        admin_reads: number of its reads there.
        changed_objects: objects with another resource version than before.
        fewest_looks_at_a_topic: how often the least looked at topic was compared with the brokers.
        cpu_seconds: processor time it took.
    """

    seconds: float
    kube_writes: list[str]
    kube_reads: int
    admin_writes: list[str]
    admin_reads: int
    changed_objects: list[str]
    fewest_looks_at_a_topic: int
    cpu_seconds: float


class Fleet:
    """Topics `fleet-0`, `fleet-1`, … of two segments each, with all that a spec can ask for.

    Args:
        bench: whose operator looks after them.
        count: how many.
    """

    def __init__(self, bench: ProxiedOperator, count: int) -> None:
        self._bench = bench
        self._world = bench.world
        self.names = [f"fleet-{number}" for number in range(count)]

    def manifest(self, name: str) -> manifests.Manifest:
        """The manifest of one topic."""
        return manifests.topic(
            name,
            f"{self._world.pulsar_namespace}/{name}",
            initial=2,
            subscriptions=SUBSCRIPTIONS,
            properties={"owner": "fleet"},
            permissions=[{"role": "client", "actions": ["produce", "consume"]}],
            policies={"perSegment": {"messageTTLSeconds": 3600}, "total": {"publishMessagesPerSecond": 1000}},
        )

    async def create(self, *, within_seconds: float = 120.0) -> None:
        """Create all topics at once and wait until every one is Ready."""
        await self._world.apply_all(map(self.manifest, self.names))
        await eventually(
            self._not_ready,
            lambda names: not names,
            what=f"all {len(self.names)} topics are Ready",
            within_seconds=within_seconds,
            every_seconds=0.5,
        )

    async def keep_a_sealed_segment(self, client: PulsarClient) -> None:
        """Split the first topic while messages wait in it, so that its parent is looked at again and again (R19)."""
        name = self.names[0]
        layout = await self._world.layout(name)
        parent = layout.active[0]
        await client.send(segment_topic(self._world.topic_name(name), parent), "waiting")
        split = await self._world.operate(name, "Split", segment=parent.segment_id)
        assert phase(split) == "Succeeded"
        await self._world.until_ready(name)

    async def settle(self, *, within_seconds: float = 60.0) -> None:
        """Wait until the operator has written nothing for a while."""
        deadline = time.monotonic() + within_seconds
        while (await self.watch(_QUIET_SECONDS)).kube_writes:
            assert time.monotonic() < deadline, "the operator does not come to rest"

    async def watch(self, seconds: float) -> Quiet:
        """Let so much time pass, in which nobody asks for anything."""
        kube, admin = self._bench.kube, self._bench.admin
        kube_from, admin_from = len(kube.seen), len(admin.seen)
        versions, cpu_seconds = await self._world.versions(*_KINDS), process_cpu_seconds(self._bench.operator.pid)
        await asyncio.sleep(seconds)
        cpu_seconds = process_cpu_seconds(self._bench.operator.pid) - cpu_seconds
        changed = versions.items() ^ (await self._world.versions(*_KINDS)).items()
        kube_writes, admin_writes = kube.writes(kube_from), admin.writes(admin_from)
        return Quiet(
            seconds=seconds,
            kube_writes=list(map(str, kube_writes)),
            kube_reads=len(kube.seen) - kube_from - len(kube_writes),
            admin_writes=list(map(str, admin_writes)),
            admin_reads=len(admin.seen) - admin_from - len(admin_writes),
            changed_objects=sorted({name for name, _ in changed}),
            fewest_looks_at_a_topic=self._fewest_looks(admin.seen[admin_from:]),
            cpu_seconds=cpu_seconds,
        )

    async def _not_ready(self) -> list[str]:
        ready = {
            body["metadata"]["name"]
            for body in await self._world.kube.list_all(TOPICS, self._world.namespace)
            if is_ready(body)
        }
        return [name for name in self.names if name not in ready]

    def _fewest_looks(self, calls: list[SeenCall]) -> int:
        """A comparison with the brokers begins with the claim: whether the plain name has partitions."""
        looks = Counter(call.path for call in calls if call.method == "GET" and call.path.endswith("/partitions"))
        prefix = f"/admin/v2/persistent/{self._world.pulsar_namespace}/"
        return min(looks[f"{prefix}{name}/partitions"] for name in self.names)
