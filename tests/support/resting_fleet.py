"""What replicas write while nothing is to be done, counted by a proxy before the API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.fault_proxy import FaultProxy
from tests.support.processes import process_cpu_seconds, process_memory_mb
from tests.support.proxied_operator import proxy_kubeconfig
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.waiting import eventually
from tests.support.world import is_ready


@dataclass(frozen=True, slots=True)
class Watched:
    """What the replicas did in some seconds.

    Args:
        topics: how many there were.
        seconds: how long it was.
        lease_writes: writes of Leases.
        other_writes: all other writes to the API server.
        changed: kinds and names of topics and connections that are no longer as they were.
        cpu_percent: of a core, by all replicas together.
        memory_mb: resident memory of the largest replica.
    """

    topics: int
    seconds: float
    lease_writes: int
    other_writes: list[str]
    changed: list[str]
    cpu_percent: float
    memory_mb: float


class RestingFleet:
    """Replicas and topics that nobody asks anything of.

    Args:
        replicas: who look after them.
        proxy: all their calls to the API server.
    """

    def __init__(self, replicas: Replicas, proxy: FaultProxy) -> None:
        self._replicas = replicas
        self._proxy = proxy
        self._topics = 0

    async def grow(self, topics: int) -> None:
        """Create topics until there are so many, and wait until all are Ready."""
        world = self._replicas.world
        names = [f"rests-{number}" for number in range(self._topics, topics)]

        async def not_ready() -> int:
            return sum(not is_ready(body) for body in await world.kube.list_all(TOPICS, world.namespace))

        await world.apply_all(
            manifests.topic(name, f"{world.pulsar_namespace}/{name}", subscriptions=["s"]) for name in names
        )
        self._topics = topics
        await eventually(
            not_ready, lambda count: count == 0, what="all topics are Ready", within_seconds=900, every_seconds=5.0
        )

    async def watch(self, seconds: float) -> Watched:
        """Let so much time pass."""
        before, begun_at, since = await self._versions(), time.monotonic(), len(self._proxy.seen)
        cpu_seconds = self._cpu_seconds()
        await asyncio.sleep(seconds)
        return await self._seen(before, begun_at, since, cpu_seconds)

    async def restart_all(self) -> Watched:
        """Restart each replica in turn, as a Deployment does it; processor time is not told."""
        before, begun_at, since = await self._versions(), time.monotonic(), len(self._proxy.seen)
        for operator in self._replicas.operators:
            await asyncio.to_thread(operator.stop)
            await asyncio.to_thread(operator.start)
            await self._replicas.until_shared()
        return await self._seen(before, begun_at, since, None)

    async def _versions(self) -> dict[str, str]:
        return await self._replicas.world.versions(TOPICS, CONNECTIONS)

    def _cpu_seconds(self) -> float:
        return sum(process_cpu_seconds(operator.pid) for operator in self._replicas.operators)

    async def _seen(self, before: dict[str, str], begun_at: float, since: int, cpu_seconds: float | None) -> Watched:
        seconds = time.monotonic() - begun_at
        after = await self._versions()
        return Watched(
            self._topics,
            seconds,
            len(self._proxy.lease_writes(since)),
            [str(call) for call in self._proxy.writes(since)],
            sorted(name for name in after if after[name] != before.get(name)),
            0.0 if cpu_seconds is None else 100 * (self._cpu_seconds() - cpu_seconds) / seconds,
            max(process_memory_mb(operator.pid) for operator in self._replicas.operators),
        )


@asynccontextmanager
async def resting_fleet(
    count: int, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, folder: Path, flags: tuple[str, ...]
) -> AsyncIterator[RestingFleet]:
    """Start so many replicas behind a proxy, which share all shards evenly; KUBECONFIG must name the API server."""
    endpoint = load_endpoint()
    async with FaultProxy(endpoint.server, endpoint.ssl_context, endpoint.headers) as proxy:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(proxy_kubeconfig(proxy.url))
        async with replicas(count, kube, view, pulsar, kubeconfig, folder, flags) as found:
            await found.until_shared()
            yield RestingFleet(found, proxy)
