"""Ordinary topics become scalable topics of the brokers of Pulsar 5, under traffic of its V5 client (pip-475)."""

from __future__ import annotations

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.consumption import Kind
from tests.support.consumption_judge import judge_shared
from tests.support.native_world import NativeWorld
from tests.support.pulsar_client import PulsarClient, close
from tests.support.v5_client import V5Client
from tests.support.waiting import eventually
from tests.support.world import condition, phase

pytestmark = pytest.mark.native

_KEYS = [f"key-{number}" for number in range(20)]


async def _make_partitioned(native: NativeWorld, local: str, partitions: int) -> list[str]:
    path = f"persistent/{native.world.pulsar_namespace}/{local}"
    await native.world.pulsar.call("PUT", f"{path}/partitions", partitions)
    return [f"persistent://{native.world.pulsar_namespace}/{local}-partition-{one}" for one in range(partitions)]


def _migrating(native: NativeWorld, local: str, *, force: bool = False) -> manifests.Manifest:
    return native.topic(local, migrateFrom={"topic": native.name(local), "force": force})


async def test_a_partitioned_topic_in_use_becomes_scalable_and_nothing_is_lost(
    native: NativeWorld, v5: V5Client, native_pulsar: PulsarAccess
) -> None:
    """The brokers' endpoint, and what it lacks: the seal of every partition verified, subscriptions known (A, B)."""
    old = await _make_partitioned(native, "busy", 4)
    url = old[0].removesuffix("-partition-0")
    for topic in old:
        await native.world.pulsar.call("PUT", f"{topic.replace('://', '/')}/subscription/idle", "earliest")
    queue = await v5.consumer(Kind.QUEUE, url, "shared", "queue")
    producer = await v5.producer(url, "producer", _KEYS, total=1_000_000)
    await producer.until(200)
    with PulsarClient(native_pulsar.service_url, native_pulsar.superuser_token) as old_client:
        consumer = await old_client.consumer(url, "legacy")
        await native.world.apply(_migrating(native, "busy"))
        refused = await native.world.until_reason("busy", "LegacyClients")
        assert "legacy" in condition(refused, "Ready")["message"]
        assert await native.record("busy") is None, "untouched"
        await close(consumer)
    body = await native.world.until_ready("busy", within_seconds=90)
    await producer.until(200)
    await producer.stop()
    assert condition(body, "Migrated")["status"] == "True"
    assert body["status"]["migratedFrom"]["partitions"] == 4
    layout = await native.until_same("busy")
    assert sorted(one.topic for one in layout.segments.values() if one.topic is not None) == old
    assert len(layout.active) == 4
    for topic in old:
        assert await native.world.pulsar.terminated(topic), topic
    known = (await native.stats("busy"))["subscriptions"]
    assert {"idle", "shared", "legacy"} <= known.keys()
    sent = [one.message for one in producer.sent]
    await native.until_drained("busy", "shared")
    await queue.stop()
    assert not judge_shared(sent, queue.receipts).lost
    assert {one.message for one in queue.receipts} == set(sent)
    assert known["idle"]["msgBacklog"] > 0


async def test_a_dry_run_reports_and_an_operation_migrates(native: NativeWorld) -> None:
    path = f"persistent://{native.world.pulsar_namespace}/plain"
    await native.world.pulsar.create_topic(path)
    await native.world.pulsar.create_subscription(path, "keeps it from being idle")
    await native.world.apply(native.topic("plain"))
    await native.world.until_reason("plain", "NameTaken")
    await native.world.apply(manifests.operation("look", "plain", "Migrate", dry_run=True, force=False))
    looked = await native.world.until_ended("look")
    assert looked["status"]["plan"]["migration"]["partitions"] == 0
    assert await native.record("plain") is None
    await native.world.apply(manifests.operation("do", "plain", "Migrate", force=False))
    done = await native.world.until_ended("do")
    assert (phase(done), done["status"].get("children")) == ("Succeeded", [1]), done["status"]
    await native.world.until_ready("plain")
    assert await native.world.pulsar.terminated(path)
    again = await native.world.operate("plain", "Migrate", force=False)
    assert (phase(again), again["status"]["reason"]) == ("Failed", "AlreadyScalable")
    await native.world.get(SEGMENT_OPERATIONS, "do")


async def test_what_is_not_there_cannot_be_migrated(native: NativeWorld) -> None:
    await native.world.apply(_migrating(native, "nowhere"))
    await native.world.until_ready("nowhere")
    assert (await native.layout("nowhere")).active, "there is nothing to keep, so it is simply made"


async def test_a_successor_finds_the_migrated_topic_again(native: NativeWorld) -> None:
    """It carries no claim: the brokers take properties with the call that makes a topic only."""
    await native.world.pulsar.create_topic(f"persistent://{native.world.pulsar_namespace}/again")
    await native.world.apply(_migrating(native, "again"))
    await native.world.until_ready("again")
    await native.world.delete(TOPICS, "again")
    await native.world.until_gone(TOPICS, "again")
    await native.world.apply(_migrating(native, "again"))
    await native.world.until_ready("again")
    layout = await native.until_same("again")
    assert any(one.is_legacy for one in layout.segments.values())


async def test_an_old_topic_that_is_left_open_is_sealed(native: NativeWorld) -> None:
    """What becomes of a broker that dies between its commit and the seal: a partition added later is as open."""
    await _make_partitioned(native, "half", 1)
    # By the brokers alone, and then as if they had not come to the seal: deleted and made again by a client.
    await native.call("POST", "half", "/migrate?force=false")
    path = f"persistent/{native.world.pulsar_namespace}/half-partition-0"
    await native.world.pulsar.call("DELETE", f"{path}?force=true")
    await native.world.pulsar.call("POST", f"persistent/{native.world.pulsar_namespace}/half/createMissedPartitions")
    old = f"persistent://{native.world.pulsar_namespace}/half-partition-0"
    assert not await native.world.pulsar.terminated(old)
    await native.world.apply(_migrating(native, "half"))
    await native.world.until_ready("half")
    await eventually(lambda: native.world.pulsar.terminated(old), what="the old partition is sealed")
    await native.world.until_event("half", "SealRepaired")
