"""Cursors follow the declared subscriptions and those applications made, and no others (R16, R17, R18)."""

from __future__ import annotations

import asyncio

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.fault_proxy import FaultProxy
from tests.support.pulsar_client import PulsarClient, close
from tests.support.waiting import eventually
from tests.support.world import World, condition, phase

# What is sealed stays until it has been looked at.
_KEPT = {"perSegment": {"retentionTimeMinutes": 60}}


async def _cursors(world: World, name: str) -> dict[int, list[str]]:
    segments = await world.segment_names(name, name)
    return {segment_id: await world.pulsar.subscriptions(topic) for segment_id, topic in segments.items()}


async def test_a_subscription_added_to_a_live_topic_reads_all_or_only_what_is_new(
    world: World, pulsar_client: PulsarClient
) -> None:
    """R18: at Earliest it gets cursors on sealed segments too, at Latest on active ones only."""
    await world.apply(manifests.topic("grows", f"{world.pulsar_namespace}/grows", policies=_KEPT))
    await world.until_ready("grows")
    segments = await world.segment_names("grows", "grows")
    await pulsar_client.send(segments[0], "before")
    assert phase(await world.operate("grows", "Split", segment=0)) == "Succeeded"
    segments = await world.segment_names("grows", "grows")
    await pulsar_client.send(segments[1], "old")
    await world.change(
        TOPICS, "grows", {"subscriptions": [{"name": "all"}, {"name": "new", "initialPosition": "Latest"}]}
    )
    await world.until_ready("grows")
    assert await _cursors(world, "grows") == {0: ["all"], 1: ["all", "new"], 2: ["all", "new"]}
    await pulsar_client.send(segments[1], "fresh")
    assert await pulsar_client.receive(segments[0], "all", 1) == ["before"]
    assert await pulsar_client.receive(segments[1], "all", 2) == ["old", "fresh"]
    assert await pulsar_client.receive(segments[1], "new", 1) == ["fresh"]


async def test_a_removed_subscription_keeps_or_loses_its_cursors_as_its_entry_said(world: World) -> None:
    """R16: and one that was deleted is not found again and brought back by the next split."""
    await world.apply(
        manifests.topic(
            "shrinks",
            f"{world.pulsar_namespace}/shrinks",
            initial=2,
            subscriptions=["stays", {"name": "kept"}, {"name": "gone", "deletionPolicy": "Delete"}],
            policies=_KEPT,
        )
    )
    await world.until_ready("shrinks")
    cursors = await _cursors(world, "shrinks")
    assert cursors[0] == cursors[1] == ["gone", "kept", "stays"]
    await world.change(TOPICS, "shrinks", {"subscriptions": [{"name": "stays"}]})
    body = await world.until_ready("shrinks")
    cursors = await _cursors(world, "shrinks")
    assert cursors[0] == cursors[1] == ["kept", "stays"]
    assert [entry["name"] for entry in body["status"]["subscriptions"]] == ["stays"]
    assert phase(await world.operate("shrinks", "Split", segment=0)) == "Succeeded"
    cursors = await _cursors(world, "shrinks")
    assert cursors[2] == cursors[3] == ["kept", "stays"], "a retained cursor counts like one an application made"
    await world.change(TOPICS, "shrinks", {"subscriptions": [{"name": "stays"}, {"name": "gone"}]})
    await world.until_ready("shrinks")
    cursors = await _cursors(world, "shrinks")
    assert cursors[1] == cursors[2] == cursors[3] == ["gone", "kept", "stays"], "it may be declared anew"


async def test_a_subscription_is_not_deleted_under_its_consumers(world: World, pulsar_client: PulsarClient) -> None:
    """R16: it stays `Deleting` meanwhile and keeps nothing else from being done."""
    name = "attended"
    await world.apply(manifests.topic(name, str(world.topic_name(name)), subscriptions=["other"], policies=_KEPT))
    await world.until_ready(name)
    await world.change(
        TOPICS, name, {"subscriptions": [{"name": "other"}, {"name": "used", "deletionPolicy": "Delete"}]}
    )
    await world.until_ready(name)
    consumer = await pulsar_client.consumer((await world.segment_names(name, name))[0], "used")
    await world.change(TOPICS, name, {"subscriptions": [{"name": "other"}]})
    message = await world.until_event(name, "SubscriptionInUse")
    assert message.startswith("subscription used is not deleted yet: ")
    body = await world.until_ready(name)
    phases = {entry["name"]: entry["phase"] for entry in body["status"]["subscriptions"]}
    assert phases == {"other": "Active", "used": "Deleting"}
    assert (await _cursors(world, name))[0] == ["other", "used"]
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
    cursors = await _cursors(world, name)
    assert cursors[1] == cursors[2] == ["other"], "R16: one being deleted is never discovered again"
    await close(consumer)
    await world.until(
        TOPICS, name, lambda body: len(body["status"]["subscriptions"]) == 1, what="deletes it once nobody uses it"
    )


async def test_a_lost_cursor_is_reported_and_never_silently_made_again(
    world: World, pulsar_client: PulsarClient
) -> None:
    """R17: a new cursor would hide that messages were not read."""
    name = "forgetful"
    await world.apply(manifests.topic(name, str(world.topic_name(name)), initial=2, subscriptions=["reader"]))
    await world.until_ready(name)
    segments = await world.segment_names(name, name)
    await world.pulsar.delete_subscription(segments[1], "reader")
    body = await world.until_reason(name, "CursorLost")
    message = condition(body, "Stalled")["message"]
    assert message.startswith("subscription reader lost its cursor on some segments")
    assert "[1]" in str(body["status"]["reports"])
    assert await world.until_event(name, "CursorLost") == message
    phases = {entry["name"]: entry["phase"] for entry in body["status"]["subscriptions"]}
    assert phases == {"reader": "CursorLost"}
    assert await world.pulsar.subscriptions(segments[1]) == []
    # As the message says: remove it and declare it again.
    await world.change(TOPICS, name, {"subscriptions": []})
    await world.until_ready(name)
    await world.change(TOPICS, name, {"subscriptions": [{"name": "reader"}]})
    await world.until_ready(name)
    assert await world.pulsar.subscriptions(segments[1]) == ["reader"]


async def test_readers_and_compaction_leave_no_cursor_on_children_and_found_subscriptions_do(
    world: World, pulsar_client: PulsarClient
) -> None:
    """R16, hazard B4: what an application made by attaching goes on; what a Reader or a compaction left does not."""
    name = "observed"
    await world.apply(manifests.topic(name, str(world.topic_name(name)), subscriptions=["declared"]))
    await world.until_ready(name)
    parent = (await world.segment_names(name, name))[0]
    reader = await pulsar_client.reader(parent)
    consumer = await pulsar_client.consumer(parent, "found")
    await pulsar_client.send(parent, *(f"m{number}" for number in range(50)), key="k")
    await world.pulsar.compact(parent)
    await eventually(
        lambda: world.pulsar.compaction_status(parent),
        lambda status: status == "SUCCESS",
        what="a compaction has run",
    )
    before = await world.pulsar.subscriptions(parent)
    assert "__compaction" in before
    assert len(before) == 4, f"the Reader's cursor, the compaction's and two subscriptions: {before}"
    split, _ = await asyncio.gather(world.operate(name, "Split", segment=0), world.pulsar.compact(parent))
    assert phase(split) == "Succeeded"
    cursors = await _cursors(world, name)
    assert cursors[1] == cursors[2] == ["declared", "found"]
    await close(reader)
    await close(consumer)
    # The Reader's and the compaction's cursors pin nothing either: drained, the parent is pruned.
    for subscription in ("declared", "found"):
        await world.pulsar.skip_all(parent, subscription)
    await world.until(
        TOPICS, name, lambda body: body["status"]["segments"] == {"active": 2, "sealed": 0}, what="is pruned"
    )


async def test_a_subscription_made_during_a_split_is_carried_over(world: World) -> None:
    """DESIGN §7: after the seal the parents are looked at again; here the seal waits until somebody has come."""
    async with FaultProxy(world.admin_url, follow_redirects=True) as proxy:
        await world.apply(manifests.connection("slow", proxy.url))
        name = "latecomer"
        await world.apply(
            manifests.topic(
                name, str(world.topic_name(name)), connection_name="slow", subscriptions=["early"], policies=_KEPT
            )
        )
        await world.until_ready(name)
        parent = (await world.segment_names(name, name))[0]
        seal = proxy.hold("POST", "-segment-0000-ffff-0/terminate$")
        await world.apply(manifests.operation("latecomer-split", name, "Split", segment=0, into=3))
        await seal.arrived.wait()
        await world.pulsar.create_subscription(parent, "just in time/for é")
        seal.released.set()
        assert phase(await world.until_ended("latecomer-split")) == "Succeeded"
        cursors = await _cursors(world, name)
        assert cursors[1] == cursors[2] == cursors[3] == ["early", "just in time/for é"]
        await world.delete(TOPICS, name)
        await world.until_gone(TOPICS, name)
