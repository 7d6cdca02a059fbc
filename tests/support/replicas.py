"""Several replicas of one operator installation, and who of them leads what."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.lease_record import LEASES, SHARD, LeaseRecord
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.waiting import eventually
from tests.support.world import World
from tests.support.world_making import create_namespace, make_world, random_name

SHARDS = 4
LEASE_SECONDS = 3.0


async def shard_leases(world: World) -> dict[int, LeaseRecord]:
    """The Leases of all shards of a world's installation."""
    bodies = await world.kube.list_all(LEASES, world.namespace)
    leases = [LeaseRecord.parse(body) for body in bodies]
    return {lease.shard: lease for lease in leases if lease is not None and lease.part == SHARD}


@dataclass(frozen=True, slots=True)
class Replicas:
    """Some replicas of one installation, and the world they work in."""

    operators: Sequence[RunningOperator]
    world: World

    async def shards(self) -> dict[int, LeaseRecord]:
        """The shards' Leases."""
        return await shard_leases(self.world)

    async def until_shared(self) -> dict[int, str]:
        """Wait until every shard has a holder and the living share them evenly; answers the holders."""
        living = sum(operator.running for operator in self.operators)

        async def holders() -> dict[int, str]:
            return {shard: lease.holder for shard, lease in (await self.shards()).items()}

        def is_even(found: dict[int, str]) -> bool:
            counts = Counter(found.values())
            return (
                len(found) == SHARDS
                and "" not in counts
                and len(counts) == living
                and max(counts.values()) <= -(-SHARDS // living)
            )

        return await eventually(holders, is_even, within_seconds=60, what="the shards are evenly shared")

    async def leader_of(self, shard: int) -> RunningOperator:
        """The replica that holds a shard now; waits until one does."""

        async def leader() -> RunningOperator | None:
            lease = (await self.shards()).get(shard)
            holder = "" if lease is None else lease.holder
            return next((one for one in self.operators if one.running and one.identity == holder), None)

        found = await eventually(leader, lambda one: one is not None, what=f"shard {shard} has a leader")
        assert found is not None
        return found


@asynccontextmanager
async def replicas(
    count: int,
    kube: KubeClient,
    view: PulsarView,
    brokers: PulsarAccess,
    kubeconfig: Path,
    folder: Path,
    flags: tuple[str, ...] = FAST_FLAGS,
    **connection: Any,
) -> AsyncIterator[Replicas]:
    """Start so many, with logs in a folder; they are killed at the end. `connection` goes into its spec."""
    namespace = random_name("replicas")
    await create_namespace(kube, namespace)
    world = await make_world(kube, view, brokers, namespace, **connection)
    operators = [RunningOperator(kubeconfig, namespace, folder / f"{number}.log", flags) for number in range(count)]
    try:
        await asyncio.gather(*(asyncio.to_thread(operator.start) for operator in operators))
        yield Replicas(operators, world)
    finally:
        for operator in operators:
            operator.kill()
