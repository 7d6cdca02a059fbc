"""Several replicas, one leader a shard, on a real API server (R4, R5, R6)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.lease_record import LEASES
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.operator_process import WATCHED
from tests.support import manifests
from tests.support.fault_proxy import FaultProxy
from tests.support.metrics import until_metric
from tests.support.proxied_operator import proxy_kubeconfig
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import LEASE_SECONDS, SHARDS, Replicas, replicas
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.world import phase
from tests.support.world_making import create_namespace, make_world, random_name

_PATIENT_SECONDS = 15.0


@pytest.fixture
async def three(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Replicas]:
    async with replicas(3, kube, view, pulsar, kube_environment.kubeconfig, tmp_path) as found:
        yield found


@pytest.fixture
async def patient(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Replicas]:
    """With Leases that a busy machine's own pauses do not come near."""
    flags = (*FAST_FLAGS, f"--lease-seconds={_PATIENT_SECONDS}")
    async with replicas(3, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, flags) as found:
        yield found


async def test_R5_three_replicas_share_the_shards_and_take_over_from_the_dead(three: Replicas) -> None:
    """Hazard C33."""
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


async def test_a_clean_shutdown_is_soon_over_and_others_take_over_at_once(patient: Replicas) -> None:
    await patient.until_shared()
    seconds = await asyncio.to_thread(patient.operators[0].stop)
    # One for leaving, whatever the API server does; the rest is the process's own end, longer on a busy machine.
    assert seconds < 10.0
    left = time.monotonic()
    await patient.until_shared()
    # Renewals come every fifth of a lease; nobody had to wait for one to run out.
    assert time.monotonic() - left < _PATIENT_SECONDS


async def test_R6_work_goes_on_when_leaders_die_or_are_stopped_in_the_middle(three: Replicas) -> None:
    """Whoever leads is killed, or stopped for longer than a lease and woken, while operations run (hazards B3, C32 and
    C33).
    """
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
    await asyncio.sleep(2 * LEASE_SECONDS)
    os.kill(three.operators[1].pid, signal.SIGCONT)
    for body in await asyncio.gather(*running):
        assert phase(body) == "Succeeded"
    for name in names:
        await world.until_ready(name, within_seconds=60)
        layout = await world.layout(name)
        assert len(layout.active) == 3
        # What the stopped leader had under way came after it was woken, perhaps after a parent was pruned.
        await world.assert_brokers_agree(name, name, {"s"}, mended_within_seconds=15)


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


async def test_R5_a_record_of_a_higher_term_is_worked_on_under_a_higher_one(three: Replicas) -> None:
    """A status may come from a cluster whose Leases had been taken more often."""
    world = three.world
    await world.apply(manifests.topic("higher", f"{world.pulsar_namespace}/higher", initial=2))
    status = (await world.until_ready("higher"))["status"]
    await three.until_shared()
    operation = {
        "id": "gone",
        "kind": "Split",
        "step": "Creating",
        "term": 50,
        "parents": [0],
        "children": [{"id": 2, "range": "0000-3fff", "buckets": 1}, {"id": 3, "range": "4000-7fff", "buckets": 1}],
        "subscriptions": [],
        "startedAt": "2026-01-01T00:00:00Z",
        "request": {"kind": "SegmentOperation", "name": "gone", "uid": "gone"},
        "nextSegmentId": 4,
    }
    layout = {**status["layout"], "nextSegmentId": 4}
    await world.set_status("higher", {"layout": layout, "operation": operation})
    await world.until(
        TOPICS, "higher", lambda body: not body["status"].get("operation"), what="has rolled back", within_seconds=60
    )
    await world.until_ready("higher")
    shard = shard_of(str(world.topic_name("higher")), SHARDS)
    assert (await three.shards())[shard].term > 50


async def test_A1_25719a_a_new_leader_that_has_not_heard_of_a_deletion_does_not_undo_it(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> None:
    """Its watch is late; what it still sees was deleted by the leader before it."""
    namespace = random_name("late")
    await create_namespace(kube, namespace)
    world = await make_world(kube, view, pulsar, namespace)
    endpoint = load_endpoint()
    async with FaultProxy(endpoint.server, endpoint.ssl_context, endpoint.headers) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(proxy_kubeconfig(proxy.url))
        first = RunningOperator(kube_environment.kubeconfig, namespace, tmp_path / "first.log")
        late = RunningOperator(kubeconfig, namespace, tmp_path / "late.log", (*FAST_FLAGS, "--relist-seconds=3600"))
        try:
            await asyncio.to_thread(first.start)
            await world.apply(
                manifests.topic("gone", f"{world.pulsar_namespace}/gone", initial=2, deletionPolicy="Delete")
            )
            await world.until_ready("gone")
            await asyncio.to_thread(late.start)
            await proxy.silence_streams(len(WATCHED))
            await world.delete(TOPICS, "gone")
            await world.until_gone(TOPICS, "gone")
            await asyncio.to_thread(first.stop)
            await until_metric(late, "scalable_topics_shards_held", lambda held: held == SHARDS)
            await until_metric(late, 'scalable_topics_reconciles_total{kind="scalabletopics"', bool)
            assert await world.segment_topics("gone") == []
            assert not await view.exists(world.topic_name("gone").persistent)
        finally:
            for operator in (first, late):
                operator.kill()


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
