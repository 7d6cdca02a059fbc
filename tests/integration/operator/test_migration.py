"""Ordinary topics become scalable: what is kept, what is refused, and what is never half done (pip-475, R1, R24)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pulsar
import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient, close
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import World, condition, is_ready, phase
from tests.support.world_making import make_world

from .conftest import MakeOperator, MakeProxied

# A lapse on a busy machine would roll a migration back that is held on its way.
_LONG_LEASE = (*FAST_FLAGS, "--lease-seconds=15")


def _migrating(world: World, *, force: bool = False, **spec: object) -> manifests.Manifest:
    name = str(world.topic_name("orders"))
    return manifests.topic("orders", name, migrateFrom={"topic": name, "force": force}, **spec)  # type: ignore[arg-type]


async def _make_ordinary(world: World, view: PulsarView, partitions: int) -> list[str]:
    """An ordinary topic; answers the names of what holds its messages."""
    name = world.topic_name("orders").persistent
    if not partitions:
        await view.create_topic(name)
        return [name]
    await view.create_partitioned(name, partitions)
    return [f"{name}-partition-{number}" for number in range(partitions)]


async def _use(view: PulsarView, pulsar_client: PulsarClient, old: list[str]) -> None:
    """Six messages on each topic: `some` has acknowledged two of them, `none` nothing."""
    for topic in old:
        for subscription in ("some", "none"):
            await view.create_subscription(topic, subscription)
        await pulsar_client.send(topic, *(f"{topic[-1]}-{number}" for number in range(6)), key="k")
        await pulsar_client.receive(topic, "some", 2)


async def _backlogs(view: PulsarView, topic: str) -> dict[str, int]:
    stats = await view.stats(topic)
    return {name: entry["msgBacklog"] for name, entry in stats["subscriptions"].items()}


@pytest.mark.parametrize("partitions", [0, 1, 4])
@pytest.mark.both_lines
async def test_a_topic_keeps_all_it_had(
    world: World, view: PulsarView, pulsar_client: PulsarClient, partitions: int
) -> None:
    """R19, R26–R28, hazards B5 and B8: data, cursors, policies, schemas, grants and properties; nothing is copied."""
    name = world.topic_name("orders").persistent
    old = await _make_ordinary(world, view, partitions)
    await _use(view, pulsar_client, old)
    await view.set_properties(name, {"team": "orders"})
    await view.add_schema(name, "STRING", "", {})
    await view.grant(name, "app", "produce", "consume")
    await view.call("POST", f"persistent/{name.removeprefix('persistent://')}/messageTTL?messageTTL=7200")
    await eventually(
        lambda: view.policy(name, "messageTTL"), lambda found: found == 7200, what="the topic's time to live shows"
    )
    await world.apply(_migrating(world))
    ready = await world.until_ready("orders")
    assert condition(ready, "Migrated")["status"] == "True"
    count = max(1, partitions)
    layout = await world.layout("orders")
    assert (layout.epoch, layout.next_segment_id) == (0, 2 * count)
    assert [segment.topic for segment in layout.sealed] == old
    assert [segment.segment_id for segment in layout.active] == list(range(count, 2 * count))
    assert all(segment.parent_ids == tuple(range(count)) for segment in layout.active)
    source = ready["status"]["migratedFrom"]
    assert (source["partitions"], source["properties"], source["policies"]) == (
        partitions,
        {"team": "orders"},
        {"messageTtlSeconds": 7200},
    )
    for topic in old:
        assert await view.terminated(topic)
        assert await _backlogs(view, topic) == {"some": 4, "none": 6}
    for topic in await world.segment_topics("orders"):
        assert set(await view.subscriptions(topic)) == {"some", "none"}
        assert await view.policy(topic, "messageTTL") == 7200
        assert await view.schemas(topic) == [("STRING", "", {})]
        assert set((await view.grants(topic))["app"]) == {"produce", "consume"}
    assert (await view.properties(name))["team"] == "orders"
    # Whoever does not know scalable topics is told so by the broker.
    with pytest.raises(pulsar.TopicTerminated):
        await pulsar_client.producer(old[0])
    for topic in old:
        assert await pulsar_client.receive(topic, "none", 6) == [f"{topic[-1]}-{number}" for number in range(6)]
    # Legacy parents leave the layout once all have read them, and are truncated, never deleted.
    assert len((await world.layout("orders")).sealed) == count
    for topic in old:
        await pulsar_client.receive(topic, "some", 4)
    await eventually(
        lambda: world.layout("orders"), lambda found: not found.sealed, what="the old topics have left the layout"
    )
    for topic in old:
        await eventually(lambda one=topic: view.terminated(one), lambda found: found, what=f"{topic} stays sealed")  # type: ignore[misc]
    # What it carried over survives repairs and changes of the spec.
    await world.change(TOPICS, "orders", {"properties": {"more": "yes"}})
    await world.until_ready("orders")
    found = await view.properties(name)
    assert (found["team"], found["more"]) == ("orders", "yes")
    assert "clocks" not in ready["status"]
    split = await world.operate("orders", "Split", segment=count)
    assert phase(split) == "Succeeded"


async def test_a_dry_run_reports_and_changes_nothing(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    old = await _make_ordinary(world, view, 2)
    await _use(view, pulsar_client, old)
    name = world.topic_name("orders").persistent
    producer = await pulsar_client.producer(name)
    consumer = await pulsar_client.consumer(
        old[1], "some", consumer_type=pulsar.ConsumerType.Failover, consumer_name="old-reader"
    )
    await world.apply(manifests.topic("orders", str(world.topic_name("orders"))))
    stuck = await world.until_reason("orders", "NameTaken")
    assert "spec.migrateFrom" in condition(stuck, "Ready")["message"]
    before = await view.topics(world.pulsar_namespace)
    name_of_run = "report"
    await world.apply(manifests.operation(name_of_run, "orders", "Migrate", dry_run=True))
    ended = await world.until_ended(name_of_run)
    assert phase(ended) == "Succeeded"
    plan = ended["status"]["plan"]
    report = plan["migration"]
    assert (report["partitions"], report["entries"]) == (2, 12)
    assert report["storageBytes"] > 0
    assert report["subscriptions"] == [
        {"name": "none", "kind": "Unknown", "backlogEntries": 12},
        {"name": "some", "kind": "Stream", "backlogEntries": 8},
    ]
    # The producer is attached to both partitions.
    assert report["clientCount"] == 3
    reader = next(client for client in report["clients"] if client["role"] == "Consumer")
    assert (reader["name"], reader["subscription"], reader["topic"]) == ("old-reader", "some", old[1])
    assert ":" in reader["address"]
    assert reader["version"]
    assert [obstacle["reason"] for obstacle in report["obstacles"]] == ["LegacyClients"]
    assert any("old-reader" in note for note in plan["notes"])
    assert await view.topics(world.pulsar_namespace) == before
    assert not any(key.startswith("scalabletopics.io/") for key in await view.properties(name) or {})
    refused = await world.operate("orders", "Migrate")
    assert (phase(refused), refused["status"]["reason"]) == ("Failed", "LegacyClients")
    assert refused["status"]["message"].startswith("3 connections of clients that do not know scalable topics")
    assert await view.topics(world.pulsar_namespace) == before
    assert not await view.terminated(old[0])
    forced = await world.operate("orders", "Migrate", force=True)
    assert phase(forced) == "Succeeded", forced["status"]
    await world.until_ready("orders")
    with pytest.raises(pulsar.TopicTerminated):
        await asyncio.to_thread(producer.send, b"too late")
    again = await world.operate("orders", "Migrate")
    assert (phase(again), again["status"]["reason"]) == ("Failed", "AlreadyScalable")
    await close(consumer)
    await close(producer)


async def test_what_spec_migrate_from_asks_for_waits_until_old_clients_have_left(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    old = await _make_ordinary(world, view, 0)
    producer = await pulsar_client.producer(old[0])
    await world.apply(_migrating(world))
    stuck = await world.until_reason("orders", "LegacyClients")
    assert condition(stuck, "Stalled")["status"] == "True"
    assert "layout" not in stuck["status"]
    await asyncio.to_thread(producer.send, b"still served")
    await close(producer)
    await world.nudge(TOPICS, "orders")
    await world.until_ready("orders")
    assert await view.terminated(old[0])


async def test_what_cannot_be_migrated_says_why(world: World, view: PulsarView) -> None:
    """R24, R29: missing, sealed, compacted, of another name."""
    name = world.topic_name("orders").persistent
    await world.apply(_migrating(world))
    missing = await world.until_reason("orders", "TopicMissing")
    assert f"there is no topic {name} to migrate" in condition(missing, "Ready")["message"]
    assert phase(await world.operate("orders", "Migrate")) == "Failed"
    assert not await view.exists(name), "nothing was made"
    async with world.unseen("orders"):
        await view.create_topic(name)
        await view.terminate(name)
    await world.until_reason("orders", "Terminated")
    path = f"persistent/{name.removeprefix('persistent://')}/compactionThreshold"
    async with world.unseen("orders"):
        await view.delete_topic(name)
        await view.create_topic(name)
        await view.call("POST", path, 1_000_000)
        await eventually(
            lambda: view.call("GET", path), lambda found: found == 1_000_000, what="the compaction threshold shows"
        )
    refused = await world.until_reason("orders", "Unsupported")
    assert "is compacted" in condition(refused, "Ready")["message"]
    other = manifests.topic(
        "other", str(world.topic_name("other")), migrateFrom={"topic": str(world.topic_name("orders"))}
    )
    await world.apply(other)
    stuck = await world.until_reason("other", "InvalidSpec")
    assert "a migrated topic keeps its name" in condition(stuck, "Ready")["message"]


async def test_partitions_added_afterwards_are_sealed_and_told_of(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    """R1: nobody who does not know scalable topics can write where nobody reads."""
    old = await _make_ordinary(world, view, 2)
    await world.apply(_migrating(world))
    await world.until_ready("orders")
    name = world.topic_name("orders").persistent
    added = f"{name}-partition-2"
    async with world.unseen("orders"):
        await view.call("POST", f"persistent/{name.removeprefix('persistent://')}/partitions", 3)
        await pulsar_client.send(added, "lost")
    await eventually(lambda: view.terminated(added), lambda found: found, what=f"{added} is sealed")
    body = await world.until(
        TOPICS, "orders", lambda found: bool(found["status"].get("reports")), what="reports the partition"
    )
    assert body["status"]["reports"][0]["reason"] == "PartitionAdded"
    assert "1 entries that nobody reads" in body["status"]["reports"][0]["message"]
    assert all([await view.terminated(topic) for topic in old])


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_lost_status_is_rebuilt_with_the_old_topics(
    world: World, view: PulsarView, pulsar_client: PulsarClient, partitions: int
) -> None:
    """R11: what nobody has read yet is still before what comes after it."""
    old = await _make_ordinary(world, view, partitions)
    await _use(view, pulsar_client, old)
    await view.set_properties(world.topic_name("orders").persistent, {"team": "orders"})
    await world.apply(_migrating(world))
    await world.until_ready("orders")
    before = await world.layout("orders")
    await world.set_status("orders", {"layout": None, "migratedFrom": None, "incarnation": None, "conditions": []})
    await world.until_event("orders", "LayoutRebuilt")
    ready = await world.until_ready("orders")
    after = await world.layout("orders")
    assert [segment.topic for segment in after.sealed] == old
    assert {one.segment_id: one.parent_ids for one in after.active} == {
        one.segment_id: one.parent_ids for one in before.active
    }
    assert ready["status"]["migratedFrom"]["partitions"] == partitions
    assert ready["status"]["migratedFrom"]["properties"] == {"team": "orders"}


async def test_a_migrated_topic_that_is_deleted_goes_with_all_it_was(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    await _use(view, pulsar_client, await _make_ordinary(world, view, 2))
    await world.apply(_migrating(world, deletionPolicy="Delete"))
    await world.until_ready("orders")
    await world.delete(TOPICS, "orders")
    await world.until_gone(TOPICS, "orders")
    assert await view.topics(world.pulsar_namespace) == []
    assert await view.call("GET", f"persistent/{world.pulsar_namespace}/partitioned") == []


async def test_an_object_that_goes_before_the_migration_leaves_the_topic_as_it_was(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    old = await _make_ordinary(world, view, 0)
    producer = await pulsar_client.producer(old[0])
    await world.apply(_migrating(world, deletionPolicy="Delete"))
    await world.until_reason("orders", "LegacyClients")
    await world.delete(TOPICS, "orders")
    await world.until_gone(TOPICS, "orders")
    await asyncio.to_thread(producer.send, b"still served")
    await close(producer)
    assert await view.topics(world.pulsar_namespace) == old
    assert not await view.properties(old[0])


async def test_an_operator_that_does_not_migrate_says_so_and_still_reports(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> None:
    operator = await own_operator((*FAST_FLAGS, "--migration-enabled=false"))
    operator.start()
    own = await make_world(kube, view, pulsar, operator.namespace)
    await view.create_topic(own.topic_name("orders").persistent)
    await own.apply(_migrating(own))
    await own.until_reason("orders", "MigrationDisabled")
    await own.apply(manifests.operation("report", "orders", "Migrate", dry_run=True))
    ended = await own.until_ended("report")
    reasons = [one["reason"] for one in ended["status"]["plan"]["migration"]["obstacles"]]
    assert (phase(ended), reasons) == ("Succeeded", ["MigrationDisabled"])


async def test_an_old_producer_that_comes_in_the_middle_of_the_check_is_cut_off(
    proxied: MakeProxied, pulsar_client: PulsarClient
) -> None:
    """Never both are writable: what was is sealed before what is takes messages, whoever has come meanwhile."""
    bench = await proxied(flags=_LONG_LEASE)
    world, view = bench.world, bench.world.pulsar
    old = await _make_ordinary(world, view, 2)
    sealing = bench.kube.hold("PATCH", r"/scalabletopics/orders/status$", body=r'"step": "Sealing"')
    await bench.start()
    await world.apply(_migrating(world))
    await asyncio.wait_for(sealing.arrived.wait(), 60)
    producer = await pulsar_client.producer(old[0])
    await asyncio.to_thread(producer.send, b"in time")
    sealing.released.set()
    await world.until_ready("orders")
    with pytest.raises(pulsar.TopicTerminated):
        await asyncio.to_thread(producer.send, b"too late")
    await close(producer)
    assert (await view.internal(old[0]))["numberOfEntries"] == 1, "what was acknowledged is in the old topic"
    assert all([await view.terminated(topic) for topic in old])


async def test_an_old_producer_that_comes_before_the_seal_is_announced_calls_the_migration_off(
    proxied: MakeProxied, pulsar_client: PulsarClient
) -> None:
    """The topic is what it was: nothing is left of the attempt, and its ids are not used again (R9)."""
    bench = await proxied(flags=_LONG_LEASE)
    world, view = bench.world, bench.world.pulsar
    (old,) = await _make_ordinary(world, view, 0)
    # Brokers delete what nobody uses, and an operator takes its time to start.
    await view.create_subscription(old, "keeps-it")
    made = bench.admin.hold("PUT", r"/orders-segment-[^/]*$")
    await bench.start()
    await world.apply(_migrating(world))
    await asyncio.wait_for(made.arrived.wait(), 60)
    producer = await pulsar_client.producer(old)
    made.released.set()
    await world.until(
        TOPICS, "orders", lambda body: bool((body.get("status") or {}).get("actions")), what="has given up"
    )
    await world.until_reason("orders", "LegacyClients")
    await asyncio.to_thread(producer.send, b"still served")
    assert await view.topics(world.pulsar_namespace) == [old]
    assert not any(key.startswith("scalabletopics.io/") for key in await view.properties(old) or {})
    await close(producer)
    await world.nudge(TOPICS, "orders")
    await world.until_ready("orders")
    assert [segment.segment_id for segment in (await world.layout("orders")).active] == [2]


async def test_of_two_installations_that_migrate_a_topic_at_once_one_does(
    own_operator: MakeOperator, view: PulsarView, pulsar: PulsarAccess, kube: KubeClient, pulsar_client: PulsarClient
) -> None:
    """R1: each writes its claim and makes its segments before it reads the claim for the last time."""
    operators = [await own_operator(), await own_operator()]
    first = await make_world(kube, view, pulsar, operators[0].namespace)
    second = await make_world(kube, view, pulsar, operators[1].namespace)
    second = replace(second, pulsar_namespace=first.pulsar_namespace)
    old = await _make_ordinary(first, view, 4)
    await _use(view, pulsar_client, old)
    for operator in operators:
        operator.start()
    await asyncio.gather(*(world.apply(_migrating(world)) for world in (first, second)))

    async def ready() -> list[bool]:
        return [is_ready(await world.get(TOPICS, "orders")) for world in (first, second)]

    found = await eventually(ready, any, what="one of them has migrated it", within_seconds=90)
    winner, loser = (first, second) if found[0] else (second, first)
    stuck = await loser.until(
        TOPICS, "orders", lambda body: condition(body, "Stalled").get("status") == "True", what="is told so"
    )
    assert condition(stuck, "Stalled")["reason"] in ("AlreadyScalable", "ClaimedElsewhere", "ClaimLost", "NameTaken")
    layout = await winner.layout("orders")
    await eventually(
        lambda: winner.segment_topics("orders"),
        lambda topics: len(topics) == len(layout.active) == 4,
        what="one set of segments is left",
    )
    for topic in old:
        assert await view.terminated(topic)
        assert await _backlogs(view, topic) == {"some": 4, "none": 6}
