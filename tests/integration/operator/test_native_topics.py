"""Scalable topics that the brokers of Pulsar 5 own, declared as objects: made, observed, deleted (R1, R2)."""

from __future__ import annotations

import json

import pytest

from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.native_world import NativeWorld
from tests.support.waiting import eventually
from tests.support.world import NATIVE_CONNECTION, condition

pytestmark = pytest.mark.native


async def test_a_manifest_becomes_a_topic_of_the_brokers(native: NativeWorld) -> None:
    body = await native.make("orders", initial=4, subscriptions=["a", "b"], properties={"team": "shop"})
    status = body["status"]
    assert (status["backend"], status["segments"]) == ("Native", {"active": 4, "sealed": 0})
    layout = await native.until_same("orders")
    assert [str(one.hash_range) for one in layout.active] == [
        "[0000, 3fff]",
        "[4000, 7fff]",
        "[8000, bfff]",
        "[c000, ffff]",
    ]
    record = await native.record("orders")
    assert record is not None
    properties = record["properties"]
    assert properties.pop("team") == "shop"
    claim = json.loads(properties.pop("scalabletopics.io/claim"))
    assert (claim["uid"], claim["backend"]) == (body["metadata"]["uid"], "Native")
    assert not properties
    stats = await native.stats("orders")
    assert {name: found["type"] for name, found in stats["subscriptions"].items()} == {"a": "QUEUE", "b": "QUEUE"}
    assert await native.world.segment_topics("orders") == [], "nothing is made beside what the brokers make"
    connection = await native.world.get(CONNECTIONS, NATIVE_CONNECTION)
    assert connection["status"]["backend"] == "Native"
    assert connection["status"]["version"].startswith("5.")


async def test_what_brokers_would_accept_wrongly_is_refused_and_leaves_nothing(native: NativeWorld) -> None:
    """The brokers make a topic in a namespace that does not exist, and beside an ordinary topic (measured)."""
    world = native.world
    await world.pulsar.create_topic(f"persistent://{world.pulsar_namespace}/taken")
    await world.apply(native.topic("taken"))
    missing = manifests.topic("missing", "topic://tests/nowhere/x", connection_name=NATIVE_CONNECTION)
    await world.apply(missing)
    no_tenant = manifests.topic("no-tenant", "topic://nobody/nowhere/x", connection_name=NATIVE_CONNECTION)
    await world.apply(no_tenant)
    await world.apply(native.topic("ttl", policies={"perSegment": {"messageTTLSeconds": 60}}))
    taken = await world.until_reason("taken", "NameTaken")
    assert "spec.migrateFrom" in condition(taken, "Ready")["message"]
    await world.until_reason("missing", "NamespaceMissing")
    await world.until_reason("no-tenant", "NamespaceMissing")
    refused = await world.until_reason("ttl", "Unsupported")
    assert "set them on the Pulsar namespace" in condition(refused, "Ready")["message"]
    assert await native.names() == []
    assert await world.pulsar.call("GET", "scalable/tests/nowhere") == []


async def test_a_topic_that_is_there_already_is_adopted_only_if_asked(native: NativeWorld) -> None:
    await native.call("PUT", "there", "?numInitialSegments=3", {"app": "x"})
    await native.world.apply(native.topic("there", properties={"app": "x"}))
    await native.world.until_reason("there", "NameTaken")
    await native.world.change(TOPICS, "there", {"adopt": True})
    body = await native.world.until_ready("there")
    assert body["status"]["segments"]["active"] == 3
    await native.until_same("there")


async def test_deletion_is_retained_or_complete(native: NativeWorld) -> None:
    world = native.world
    await native.make("kept", initial=2)
    await native.make("gone", initial=2, deletionPolicy="Delete")
    for name in ("kept", "gone"):
        await world.delete(TOPICS, name)
        await world.until_gone(TOPICS, name)
    assert await native.names() == [native.name("kept")]
    descriptor = f"segments/{world.pulsar_namespace}/gone/0000-7fff-0/terminate"
    assert await world.pulsar.call("POST", descriptor, allow=(404,)) == 404, "no segment is left"
    await native.make("kept", initial=2)
    assert (await native.until_same("kept")).epoch == 0, "the object's successor finds its topic again"


async def test_a_topic_deleted_behind_our_back_is_made_again_and_told_of(native: NativeWorld) -> None:
    body = await native.make("lost", initial=2, subscriptions=["s"])
    before = body["status"]["incarnation"]
    await native.call("DELETE", "lost", "?force=true")
    message = await native.world.until_event("lost", "TopicLost")
    assert "what it held is lost" in message
    again = await native.world.until(
        TOPICS, "lost", lambda body: body["status"].get("incarnation") != before, what="has another incarnation"
    )
    assert again["status"]["segments"]["active"] == 2

    async def subscriptions() -> list[str]:
        return list((await native.stats("lost"))["subscriptions"])

    await eventually(subscriptions, lambda found: found == ["s"], what="the subscription is made again, too (R14)")
    await native.world.until_ready("lost")


async def test_a_subscription_lost_on_the_brokers_is_told_and_not_made_again(native: NativeWorld) -> None:
    """R17: what it had read is not known any more, so nobody makes it anew behind a person's back."""
    await native.make("cursor", subscriptions=["s"])
    await native.call("DELETE", "cursor", "/subscriptions/s")
    await native.world.until_reason("cursor", "CursorLost")
    assert (await native.stats("cursor"))["subscriptions"] == {}


@pytest.mark.slow
async def test_changes_of_others_are_observed_with_the_history_that_brokers_prune(native: NativeWorld) -> None:
    await native.make("watched", initial=1, subscriptions=["s"])
    await native.call("POST", "watched", "/split/0")
    await native.call("POST", "watched", "/merge/1/2")
    layout = await native.until_same("watched")
    assert [one.segment_id for one in layout.active] == [3]
    status = (await native.world.get(TOPICS, "watched"))["status"]
    seen = [(action["kind"], action["children"], action["request"]["kind"]) for action in status["actions"]]
    assert seen[1:] == [("Split", [1, 2], "Brokers"), ("Merge", [3], "Brokers")]
    assert status["layout"]["segments"][-1]["mergeDepth"] == 1
    assert {"splitAtMs", "mergeAtMs"} <= status["clocks"].keys()

    async def history() -> list[int]:
        status = (await native.world.get(TOPICS, "watched"))["status"]
        return [one["id"] for one in status.get("pruned", ())]

    # The brokers look for drained segments once a minute.
    pruned = await eventually(
        history, lambda ids: sorted(ids) == [0, 1, 2], what="what was pruned is in the history", within_seconds=150
    )
    assert len(pruned) == 3
    body = await native.world.get(TOPICS, "watched")
    assert body["status"]["layout"]["segments"][0]["mergeDepth"] == 1, "depth outlives the parents (R36)"
