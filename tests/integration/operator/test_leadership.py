"""Several replicas, one leader a shard, on a real API server (R4, R5, R6)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.lease_record import LEASES, SHARD, LeaseRecord
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import RunningOperator
from tests.support.waiting import eventually
from tests.support.world import World, phase
from tests.support.world_making import create_namespace, make_world, random_name

_LEASE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Replicas:
    """Some replicas of one installation, and the world they work in."""

    operators: list[RunningOperator]
    world: World

    async def shards(self) -> dict[int, LeaseRecord]:
        """The shards' Leases."""
        bodies = await self.world.kube.list_all(LEASES, self.world.namespace)
        leases = [LeaseRecord.parse(body) for body in bodies]
        return {lease.shard: lease for lease in leases if lease is not None and lease.part == SHARD}

    async def until_shared(self) -> dict[int, str]:
        """Wait until every shard has a holder and the living share them evenly; answers the holders."""
        living = sum(operator.running for operator in self.operators)

        async def holders() -> dict[int, str]:
            return {shard: lease.holder for shard, lease in (await self.shards()).items()}

        def is_even(found: dict[int, str]) -> bool:
            counts = Counter(found.values())
            return (
                len(found) == 4
                and "" not in counts
                and len(counts) == living
                and max(counts.values()) <= -(-4 // living)
            )

        return await eventually(holders, is_even, within_seconds=60, what="the shards are evenly shared")


@asynccontextmanager
async def replicas(
    count: int, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, access: KubernetesAccess, folder: Path
) -> AsyncIterator[Replicas]:
    """Start so many; they are killed at the end."""
    namespace = random_name("replicas")
    await create_namespace(kube, namespace)
    world = await make_world(kube, view, pulsar, namespace)
    operators = [RunningOperator(access.kubeconfig, namespace, folder / f"{number}.log") for number in range(count)]
    try:
        await asyncio.gather(*(asyncio.to_thread(operator.start) for operator in operators))
        yield Replicas(operators, world)
    finally:
        for operator in operators:
            operator.kill()


@pytest.fixture
async def three(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Replicas]:
    async with replicas(3, kube, view, pulsar, kube_environment, tmp_path) as found:
        yield found


async def test_R5_three_replicas_share_the_shards_and_take_over_from_the_dead(three: Replicas) -> None:
    before = await three.until_shared()
    terms = {shard: lease.term for shard, lease in (await three.shards()).items()}
    three.operators[0].kill()
    after = await three.until_shared()
    moved = [shard for shard in before if before[shard] not in after.values()]
    assert moved, "the dead one held something"
    found = await three.shards()
    assert all(found[shard].term > terms[shard] for shard in moved)
    # Whoever comes back gets a share again, from those that live.
    await asyncio.to_thread(three.operators[0].start)
    await three.until_shared()


async def test_a_clean_shutdown_takes_two_seconds_at_most_and_others_take_over_at_once(three: Replicas) -> None:
    await three.until_shared()
    seconds = await asyncio.to_thread(three.operators[0].stop)
    assert seconds < 2.0
    left = time.monotonic()
    await three.until_shared()
    # Renewals come every fifth of a lease; nobody had to wait for one to run out.
    assert time.monotonic() - left < _LEASE_SECONDS


async def test_R6_work_goes_on_when_leaders_die_or_are_stopped_in_the_middle(three: Replicas) -> None:
    """Whoever leads is killed, or stopped for longer than a lease and woken, while operations run."""
    world = three.world
    names = [f"t{number}" for number in range(8)]
    for name in names:
        await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", initial=2, subscriptions=["s"]))
    for name in names:
        await world.until_ready(name, within_seconds=60)
    running = [asyncio.create_task(world.operate(name, "Split", segment=0, within_seconds=90)) for name in names]
    await asyncio.sleep(0.5)
    three.operators[0].kill()
    os.kill(three.operators[1].pid, signal.SIGSTOP)
    await asyncio.sleep(2 * _LEASE_SECONDS)
    os.kill(three.operators[1].pid, signal.SIGCONT)
    for body in await asyncio.gather(*running):
        assert phase(body) == "Succeeded"
    for name in names:
        await world.until_ready(name, within_seconds=60)
        layout = await world.layout(name)
        assert len(layout.active) == 3
        await world.assert_brokers_agree(name, name, {"s"})


async def test_R7_a_rolling_restart_writes_nothing_per_topic(three: Replicas) -> None:
    world = three.world
    await world.apply(manifests.topic("still", f"{world.pulsar_namespace}/still", initial=2))
    await world.until_ready("still")
    await three.until_shared()

    async def version() -> str:
        return str((await world.kube.get(TOPICS, world.namespace, "still"))["metadata"]["resourceVersion"])

    before = await version()
    for operator in three.operators:
        await asyncio.to_thread(operator.stop)
        await asyncio.to_thread(operator.start)
        await three.until_shared()
    assert await version() == before
    assert phase(await world.operate("still", "Split", segment=0)) == "Succeeded"
    assert await world.kube.list_all(SEGMENT_OPERATIONS, world.namespace)


async def test_R5_a_lease_made_anew_gets_a_term_above_an_open_journal(three: Replicas) -> None:
    await three.until_shared()
    for shard, lease in (await three.shards()).items():
        assert lease.shard == shard
        await three.world.kube.delete(LEASES, three.world.namespace, lease.name)
    await three.until_shared()
    await three.world.apply(manifests.topic("anew", f"{three.world.pulsar_namespace}/anew"))
    await three.world.until_ready("anew", within_seconds=60)


async def test_R4_a_replica_with_another_number_of_shards_refuses_to_lead(
    three: Replicas, kube_environment: KubernetesAccess, tmp_path: Path
) -> None:
    flags = ("--shards=8",)
    other = RunningOperator(kube_environment.kubeconfig, three.world.namespace, tmp_path / "other.log", flags)
    other.launch()
    try:
        assert await asyncio.to_thread(other.wait, 20.0) == 1
    finally:
        other.kill()
    assert "set to 8 shards, but ConfigMap" in other.log_text()
