"""The status of a policy: what it comes to, on how many topics, what is wrong and who disagrees (R3, R37)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.api.auto_scale_policy import SegmentAutoScalePolicyStatus
from scalable_topics_operator.autoscale.policy import KNOBS
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.conditions import find_condition
from tests.unit.controllers.policy_world import PolicyWorld


@pytest.fixture
def world() -> PolicyWorld:
    world = PolicyWorld()
    world.connection()
    return world


async def reconciled(world: PolicyWorld, key: ObjectKey) -> dict[str, Any]:
    assert await world.controller.reconcile(key) is None
    return world.status(key)


def effective(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        entry["knob"]: (entry["value"], entry["origin"].removeprefix("SegmentAutoScalePolicy "))
        for entry in status["effective"]
    }


def ready(status: dict[str, Any]) -> tuple[str, str]:
    condition = find_condition(status, "Ready")
    return condition["status"], condition["reason"]


async def test_a_policy_tells_its_topics_and_what_it_comes_to(world: PolicyWorld) -> None:
    for number in range(3):
        world.topic(f"t{number}")
    world.topic("other", connection="other")
    status = await reconciled(world, world.policy("wide", maxSegments=9, split={"bytesRateIn": "50Mi"}))
    assert (status["matchedTopics"], status["observedGeneration"], ready(status)) == (3, 1, ("True", "Reconciled"))
    found = effective(status)
    assert list(found) == [entry.path for entry in KNOBS]
    assert found["split.bytesRateIn"] == ("52428800", "shop/wide")
    assert found["enabled"] == ("true", "default")
    assert found["merge.window"] == ("300", "default")
    assert SegmentAutoScalePolicyStatus.model_validate(status).to_json_object() == status
    assert world.events == [("wide", "Reconciled", "the policy is in effect")]


async def test_at_rest_nothing_is_written(world: PolicyWorld) -> None:
    world.topic("one")
    older, younger = world.policy("older", maxSegments=9), world.policy("younger", created=1, maxSegments=8)
    for key in (older, younger):
        await reconciled(world, key)
    writes, events = len(world.writes), len(world.events)
    for key in (older, younger):
        await reconciled(world, key)
    assert (len(world.writes), len(world.events)) == (writes, events)


async def test_wider_policies_are_included_where_all_topics_agree(world: PolicyWorld) -> None:
    world.policy("wide", maxSegments=9, minSegments=2)
    world.policy("orders", "PulsarNamespace", pulsarNamespace="acme/orders", minSegments=3)
    narrow = world.policy("narrow", "Topics", selector={}, maxDagDepth=4)
    without = effective(await reconciled(world, narrow))
    assert without["maxSegments"] == ("64", "default"), "without topics or a connection no wider policy is sure"
    world.topic("one")
    one = effective(await reconciled(world, narrow))
    assert one["maxSegments"] == ("9", "shop/wide")
    assert one["minSegments"] == ("3", "shop/orders")
    world.topic("two", topic="acme/bills/two")
    two = effective(await reconciled(world, narrow))
    assert two["maxSegments"] == ("9", "shop/wide")
    assert "minSegments" not in two
    assert two["maxDagDepth"] == ("4", "shop/narrow")


async def test_without_topics_the_policies_of_its_connection_are_included(world: PolicyWorld) -> None:
    world.policy("wide", maxSegments=9)
    orders = world.policy("orders", "PulsarNamespace", pulsarNamespace="acme/orders", minSegments=3)
    narrow = world.policy("narrow", "Topics", selector={}, connectionRef={"name": "main"}, maxDagDepth=4)
    assert effective(await reconciled(world, orders))["maxSegments"] == ("9", "shop/wide")
    found = effective(await reconciled(world, narrow))
    assert (found["maxSegments"], found["minSegments"]) == (("9", "shop/wide"), ("1", "default"))


async def test_a_conflict_is_shown_on_both_and_ends_on_both(world: PolicyWorld) -> None:
    for number in range(2):
        world.topic(f"t{number}", labels={"team": "a"})
    world.topic("gold", labels={"team": "b", "tier": "gold"})
    older = world.policy("older", "Topics", selector={"matchLabels": {"team": "a"}}, maxSegments=9, maxDagDepth=3)
    younger = world.policy("younger", "Topics", created=1, selector={}, maxSegments=8, maxDagDepth=3)
    for key in (older, younger):
        status = await reconciled(world, key)
        assert ready(status) == ("True", "Reconciled")
        conflict = find_condition(status, "Conflicted")
        assert (conflict["status"], conflict["reason"]) == ("True", "OldestWins")
        other, theirs, own = ("younger", 8, 9) if key == older else ("older", 9, 8)
        text = (
            f"SegmentAutoScalePolicy shop/{other} sets maxSegments to {theirs} and this one to {own}: "
            "SegmentAutoScalePolicy shop/older is the oldest and wins"
        )
        assert conflict["message"] == f"{text} on 2 topics"
        assert (key.name, "Conflicted", text) in world.events
    assert effective(world.status(older))["maxSegments"] == ("9", "shop/older")
    assert "maxSegments" not in effective(world.status(younger)), "it differs among its topics"
    world.topic("t2", labels={"team": "a"})
    events = len(world.events)
    assert find_condition(await reconciled(world, younger), "Conflicted")["message"].endswith("on 3 topics")
    assert len(world.events) == events, "numbers alone are no event"
    world.policy("younger", "Topics", created=1, selector={}, maxSegments=9)
    for key in (older, younger):
        assert find_condition(await reconciled(world, key), "Conflicted") == {}
        assert world.events[-1][:2] == (key.name, "ConflictEnded")


async def test_of_three_the_oldest_is_named_everywhere_and_long_lists_are_cut(world: PolicyWorld) -> None:
    world.topic("one")
    keys = [world.policy(f"p{number}", created=number, maxSegments=10 + number) for number in range(9)]
    last = find_condition(await reconciled(world, keys[-1]), "Conflicted")["message"]
    assert last.count("SegmentAutoScalePolicy shop/p0 is the oldest and wins on 1 topic") == 5
    assert last.endswith("; and 3 more")


async def test_policies_of_different_scopes_or_values_alike_are_no_conflict(world: PolicyWorld) -> None:
    world.topic("one")
    wide = world.policy("wide", maxSegments=9)
    world.policy("same", created=1, maxSegments=9)
    world.policy("narrow", "Topics", selector={}, maxSegments=8)
    assert find_condition(await reconciled(world, wide), "Conflicted") == {}


async def test_knobs_that_contradict_each_other_stall_the_policy_that_brings_it_about(world: PolicyWorld) -> None:
    world.topic("one")
    wide, narrow = world.policy("wide", maxSegments=9), world.policy("narrow", "Topics", selector={}, minSegments=20)
    assert ready(await reconciled(world, wide)) == ("True", "Reconciled")
    status = await reconciled(world, narrow)
    assert ready(status) == ("False", "InvalidCombination")
    message = (
        "nothing is changed automatically: minSegments must not be greater than maxSegments: minSegments is 20 "
        "(SegmentAutoScalePolicy shop/narrow), maxSegments is 9 (SegmentAutoScalePolicy shop/wide)"
    )
    assert find_condition(status, "Stalled")["message"] == message
    assert ("narrow", "InvalidCombination", message) in world.events
    world.policy("wide", maxSegments=40)
    assert ready(await reconciled(world, narrow)) == ("True", "Reconciled")


@pytest.mark.parametrize("scope", ["Cluster", "PulsarNamespace", "Topics"])
async def test_R3_a_policy_without_its_connection_in_its_namespace_says_so(world: PolicyWorld, scope: str) -> None:
    extras: dict[str, dict[str, Any]] = {
        "PulsarNamespace": {"pulsarNamespace": "acme/orders"},
        "Topics": {"selector": {}},
    }
    extra = extras.get(scope, {})
    policy = world.policy("lost", scope, namespace="guest", connectionRef={"name": "main"}, **extra)
    status = await reconciled(world, policy)
    assert ready(status) == ("False", "ConnectionMissing")
    message = find_condition(status, "Stalled")["message"]
    assert message.startswith("there is no ScalableTopicConnection guest/main; ")
    assert ("in its connection's own namespace" in message) == (scope != "Topics")
    world.connection(namespace="guest")
    assert ready(await reconciled(world, policy)) == ("True", "Reconciled")


async def test_a_policy_that_cannot_be_read_says_why(world: PolicyWorld) -> None:
    world.topic("one")
    status = await reconciled(world, world.policy("bad", split={"msgRateIn": "many"}))
    assert ready(status) == ("False", "InvalidSpec")
    assert (status["matchedTopics"], status["effective"]) == (0, [])
    message = find_condition(status, "Stalled")["message"]
    assert message.startswith("the policy is ignored: spec.split.msgRateIn")


async def test_a_policy_that_is_gone_or_going_is_left_alone(world: PolicyWorld) -> None:
    policy = world.policy("gone")
    world.body(policy)["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"
    await world.controller.reconcile(policy)
    world.remove(policy)
    await world.controller.reconcile(policy)
    assert world.writes == []


async def test_many_topics_are_counted_without_holding_others_up(world: PolicyWorld) -> None:
    for number in range(1000):
        world.topic(f"t{number}")
    status = await reconciled(world, world.policy("wide", maxSegments=9))
    assert status["matchedTopics"] == 1000
