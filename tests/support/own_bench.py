"""Brokers and an operator for one test alone, which it may stop, kill and unload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp

from dev.access import PulsarAccess
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import RunningOperator
from tests.support.world import World
from tests.support.world_making import make_world


@dataclass(frozen=True, slots=True)
class OwnBench:
    """Brokers and an operator of a test's own, and what may happen to them.

    Args:
        cluster: the brokers.
        operator: it runs.
        world: where it works.
    """

    cluster: LocalCluster
    operator: RunningOperator
    world: World

    @property
    def brokers(self) -> PulsarAccess:
        """How they are reached."""
        return self.cluster.pulsar.access

    async def operator_dies(self) -> None:
        """SIGKILL, and another one starts."""
        self.operator.kill()
        await asyncio.to_thread(self.operator.start)

    async def broker_dies(self, index: int, seconds: float) -> None:
        """SIGKILL of a broker, which comes back after so long."""
        await asyncio.to_thread(self.cluster.pulsar.kill_broker, index)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.cluster.pulsar.start_broker, index)

    async def unload(self) -> None:
        """Every topic of the namespace is closed and loaded again."""
        path = f"namespaces/{self.world.pulsar_namespace}/unload"
        # While a broker is dead, some of it cannot be unloaded, or only much later.
        with suppress(TimeoutError, aiohttp.ClientError):
            await self.world.pulsar.call("PUT", path, {}, allow=(500, 503))


@asynccontextmanager
async def own_bench(
    local_cluster: Callable[[Shape], LocalCluster],
    own_operator: Callable[..., Awaitable[RunningOperator]],
    kube: KubeClient,
    shape: Shape,
    flags: tuple[str, ...],
) -> AsyncIterator[OwnBench]:
    """Start brokers of a shape and an operator with these flags; both end with the test's fixtures."""
    cluster = await asyncio.to_thread(local_cluster, shape)
    access = cluster.pulsar.access
    operator = await own_operator(flags)
    async with PulsarView(access.admin_url, access.superuser_token) as view:
        world = await make_world(kube, view, access, operator.namespace)
        await asyncio.to_thread(operator.start)
        yield OwnBench(cluster, operator, world)
