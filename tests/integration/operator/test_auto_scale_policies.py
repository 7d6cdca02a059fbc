"""Policies on a real API server: what each comes to, on how many topics, and what is wrong with it (R3, R35, R37)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.kube_errors import KubeInvalid
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.fleet import Fleet
from tests.support.world import World, condition, is_ready

EXAMPLE = Path(__file__).parents[3] / "examples" / "policies.yaml"
_QUIET_SECONDS = 10.0


def _labels(**labels: str) -> dict[str, Any]:
    return {"selector": {"matchLabels": labels}}


def _knobs(body: Body) -> dict[str, tuple[str, str]]:
    return {
        entry["knob"]: (entry["value"], entry["origin"].rpartition("/")[2]) for entry in body["status"]["effective"]
    }


async def _matches(world: World, name: str, topics: int) -> Body:
    return await world.until(
        POLICIES,
        name,
        lambda body: (body.get("status") or {}).get("matchedTopics") == topics,
        what=f"applies to {topics} topics",
    )


async def _label(world: World, name: str, **labels: str | None) -> None:
    await world.kube.merge_patch(TOPICS, world.namespace, name, {"metadata": {"labels": labels}})


async def test_policies_count_their_topics_and_show_what_comes_out(world: World) -> None:
    await world.apply(manifests.connection("counted", world.admin_url))
    target = {"connectionRef": {"name": "counted"}}
    await world.apply(manifests.policy("wide", "Cluster", target, maxSegments=9, split={"bytesRateIn": "50Mi"}))
    namespace = {**target, "pulsarNamespace": world.pulsar_namespace}
    await world.apply(manifests.policy("of-namespace", "PulsarNamespace", namespace, merge={"cooldown": "1h30m"}))
    await world.apply(manifests.policy("by-label", "Topics", {**target, **_labels(team="a")}, minSegments=2))
    for name in ("wide", "of-namespace", "by-label"):
        await world.until(POLICIES, name, is_ready, what="is Ready")
        await _matches(world, name, 0)
    for name in ("one", "two"):
        topic = manifests.topic(f"counted-{name}", f"{world.pulsar_namespace}/{name}", connection_name="counted")
        await world.apply({**topic, "metadata": {**topic["metadata"], "labels": {"team": "a"}}})
    wide = await _matches(world, "wide", 2)
    assert _knobs(wide)["split.bytesRateIn"] == ("52428800", "wide")
    assert _knobs(wide)["merge.cooldown"] == ("300", "default")
    assert _knobs(await _matches(world, "of-namespace", 2))["merge.cooldown"] == ("5400", "of-namespace")
    narrow = _knobs(await _matches(world, "by-label", 2))
    assert (narrow["minSegments"], narrow["maxSegments"], narrow["merge.cooldown"]) == (
        ("2", "by-label"),
        ("9", "wide"),
        ("5400", "of-namespace"),
    )
    await _label(world, "counted-one", team="b")
    await _matches(world, "by-label", 1)
    await _label(world, "counted-one", team="a")
    await _matches(world, "by-label", 2)
    await world.delete(TOPICS, "counted-two")
    await _matches(world, "by-label", 1)
    await _matches(world, "wide", 1)
    await world.change(POLICIES, "wide", {"maxSegments": 12})
    await world.until(
        POLICIES, "by-label", lambda body: _knobs(body)["maxSegments"] == ("12", "wide"), what="follows the wider one"
    )


async def test_a_conflict_is_told_on_both_policies_until_it_is_settled(world: World) -> None:
    target = _labels(conflict="yes")
    await world.apply(manifests.policy("older", "Topics", target, maxSegments=9))
    await _matches(world, "older", 0)
    # Creation times have whole seconds.
    await asyncio.sleep(1.1)
    await world.apply(manifests.policy("younger", "Topics", target, maxSegments=8))
    topic = manifests.topic("disputed", f"{world.pulsar_namespace}/disputed")
    await world.apply({**topic, "metadata": {**topic["metadata"], "labels": {"conflict": "yes"}}})
    for name, other, theirs, own in (("older", "younger", 8, 9), ("younger", "older", 9, 8)):
        body = await world.until(
            POLICIES, name, lambda body: condition(body, "Conflicted").get("status") == "True", what="is in conflict"
        )
        prefix = f"SegmentAutoScalePolicy {world.namespace}"
        text = (
            f"{prefix}/{other} sets maxSegments to {theirs} and this one to {own}: {prefix}/older is the oldest "
            "and wins"
        )
        assert condition(body, "Conflicted")["message"] == f"{text} on 1 topic"
        assert condition(body, "Ready")["status"] == "True"
        assert _knobs(body)["maxSegments"] == ("9", "older")
        assert await world.until_event(name, "Conflicted", resource=POLICIES) == text
    await world.change(POLICIES, "younger", {"maxSegments": 9})
    for name in ("older", "younger"):
        await world.until(POLICIES, name, lambda body: not condition(body, "Conflicted"), what="is at peace")


async def test_knobs_that_contradict_a_wider_policy_are_told_and_mended(world: World) -> None:
    with pytest.raises(KubeInvalid, match="minSegments must not be greater than maxSegments"):
        await world.apply(manifests.policy("at-once", "Topics", _labels(x="y"), minSegments=20, maxSegments=10))
    await world.apply(manifests.connection("strict", world.admin_url))
    target = {"connectionRef": {"name": "strict"}}
    await world.apply(manifests.policy("ceiling", "Cluster", target, maxSegments=10))
    await world.apply(manifests.policy("floor", "Topics", {**target, "selector": {}}, minSegments=20))
    body = await world.until_reason("floor", "InvalidCombination", resource=POLICIES)
    assert condition(body, "Stalled")["message"] == (
        "nothing is changed automatically: minSegments must not be greater than maxSegments: minSegments is 20 "
        f"(SegmentAutoScalePolicy {world.namespace}/floor), maxSegments is 10 "
        f"(SegmentAutoScalePolicy {world.namespace}/ceiling)"
    )
    assert (
        await world.until_event("floor", "InvalidCombination", resource=POLICIES)
        == condition(body, "Stalled")["message"]
    )
    await world.until(POLICIES, "ceiling", is_ready, what="is Ready")
    await world.change(POLICIES, "ceiling", {"maxSegments": 30})
    await world.until(POLICIES, "floor", is_ready, what="is Ready")


async def test_R3_a_wide_policy_counts_only_beside_its_connection(world: World, guest: World) -> None:
    await world.apply(manifests.connection("lent", world.admin_url, allow={"namespaces": [guest.namespace]}))
    target = {"connectionRef": {"name": "lent"}}
    await guest.apply(manifests.policy("usurper", "Cluster", target, maxSegments=3))
    body = await guest.until_reason("usurper", "ConnectionMissing", resource=POLICIES)
    assert condition(body, "Stalled")["message"] == (
        f"there is no ScalableTopicConnection {guest.namespace}/lent; "
        "a policy of scope Cluster counts only in its connection's own namespace"
    )
    reference = {"name": "lent", "namespace": world.namespace}
    await guest.apply(manifests.topic("borrower", f"{guest.pulsar_namespace}/borrower", connectionRef=reference))
    await world.apply(manifests.policy("rightful", "Cluster", target, maxSegments=7))
    await guest.apply(manifests.policy("of-guest", "Topics", {"selector": {}}, minSegments=2))
    await _matches(world, "rightful", 1)
    narrow = await _matches(guest, "of-guest", 1)
    assert _knobs(narrow)["maxSegments"] == ("7", "rightful")
    assert (await guest.get(POLICIES, "usurper"))["status"]["matchedTopics"] == 0


async def test_a_policy_waits_for_its_connection(world: World) -> None:
    await world.apply(manifests.policy("early", "Cluster", {"connectionRef": {"name": "late"}}, maxSegments=3))
    await world.until_reason("early", "ConnectionMissing", resource=POLICIES)
    await world.apply(manifests.connection("late", world.admin_url))
    await world.until(POLICIES, "early", is_ready, what="is Ready")
    await world.delete(CONNECTIONS, "late")
    await world.until_reason("early", "ConnectionMissing", resource=POLICIES)


async def test_the_example_is_accepted_and_in_effect(world: World) -> None:
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    for document in documents:
        await world.apply(document)
    for document in documents:
        await world.until(POLICIES, document["metadata"]["name"], is_ready, what="is Ready")


async def test_policies_at_rest_are_not_written_to(proxied: MakeProxied) -> None:
    bench = await proxied()
    fleet = Fleet(bench, 5)
    await bench.start()
    target = {"connectionRef": {"name": "pulsar"}}
    for name, knobs in (("first", {"maxSegments": 9}), ("second", {"maxSegments": 8, "minSegments": 2})):
        await bench.world.apply(manifests.policy(name, "Cluster", target, **knobs))
    await bench.world.apply(manifests.policy("narrow", "Topics", {"selector": {}}, minSegments=20))
    await fleet.create()
    for name in ("first", "second", "narrow"):
        await _matches(bench.world, name, 5)
    await fleet.settle()
    quiet = await fleet.watch(_QUIET_SECONDS)
    assert (quiet.kube_writes, quiet.changed_objects) == ([], [])
    # A label that no policy looks at, and a restart, change nothing either.
    await bench.world.nudge(TOPICS, fleet.names[0])
    kube_from = len(bench.kube.seen)
    await bench.restart()
    await fleet.watch(_QUIET_SECONDS)
    assert bench.kube.writes(kube_from) == []
