"""pip-483: overrides of the auto-scale policy through REST, kept as SegmentAutoScalePolicies (R32)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from scalable_topics_operator.api.auto_scale_policy import SegmentAutoScalePolicy
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import POLICIES
from tests.unit.gateway.rest_world import NAMESPACE_POLICY_URL, TOPIC_URL, RestWorld, connection, rest_world

TOPIC_POLICY_URL = f"{TOPIC_URL}/autoScalePolicy"
OF_TOPIC = {"scope": "Topic", "topicRef": {"name": "orders"}}
OF_NAMESPACE = {"scope": "PulsarNamespace", "connectionRef": {"name": "pulsar"}, "pulsarNamespace": "acme/shop"}
OF_CLUSTER = {"scope": "Cluster", "connectionRef": {"name": "pulsar"}}
PLACES = pytest.mark.parametrize(
    ("url", "target"), [(TOPIC_POLICY_URL, OF_TOPIC), (NAMESPACE_POLICY_URL, OF_NAMESPACE)], ids=["topic", "namespace"]
)
CREATE, DELETE = (("alice", verb, "segmentautoscalepolicies") for verb in ("create", "delete"))
LIST = ("the operator", "list", "segmentautoscalepolicies")


def _policy(world: RestWorld, name: str, target: dict[str, Any], **spec: Any) -> Body:
    """A policy that somebody has applied."""
    return world.kubernetes.put(
        {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"target": target, **spec},
        }
    )


@PLACES
async def test_an_override_is_set_shown_replaced_and_removed(url: str, target: dict[str, Any]) -> None:
    async with rest_world() as world:
        answer = await world.ask("GET", url)
        assert (answer.status, answer.body) == (204, None)
        override = {"enabled": False, "maxSegments": 8, "splitCooldownSeconds": 90, "mergeMsgRateInThreshold": 0.5}
        assert (await world.ask("POST", url, body={**override, "minSegments": None})).status == 204
        (first,) = world.kubernetes.all_of(POLICIES)
        assert first["metadata"]["namespace"] == "shop"
        assert first["metadata"]["labels"] == {"scalabletopics.io/made-by": "rest"}
        assert SegmentAutoScalePolicy.model_validate(first).spec.max_segments == 8
        assert first["spec"] == {
            "target": target,
            "enabled": False,
            "maxSegments": 8,
            "split": {"cooldown": 90},
            "merge": {"msgRateIn": "0.5"},
        }
        answer = await world.ask("GET", url)
        assert (answer.status, answer.body) == (200, override)
        assert world.kubernetes.acted == [LIST, CREATE, LIST]

        assert (await world.ask("POST", url, body={"maxDagDepth": 5})).status == 204
        (second,) = world.kubernetes.all_of(POLICIES)
        assert second["metadata"]["uid"] != first["metadata"]["uid"], "no spec is ever edited"
        assert (await world.ask("GET", url)).body == {"maxDagDepth": 5}, "it is set in place of the former"

        assert (await world.ask("DELETE", url)).status == 204
        assert world.kubernetes.all_of(POLICIES) == []
        assert (await world.ask("GET", url)).status == 204
        assert (await world.ask("DELETE", url)).status == 204, "none is there already"


@PLACES
async def test_there_is_an_override_all_the_time_while_it_is_replaced(url: str, target: dict[str, Any]) -> None:
    async with rest_world() as world:
        assert (await world.ask("POST", url, body={"maxSegments": 8})).status == 204
        world.kubernetes.acted.clear()
        assert (await world.ask("POST", url, body={"maxSegments": 9})).status == 204
        assert [act for act in world.kubernetes.acted if act != LIST] == [CREATE, DELETE]


@PLACES
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "must be a JSON object"),
        ({"maxSegment": 8}, "there is no field 'maxSegment'; there are enabled, "),
        ({"maxSegments": "8"}, "maxSegments is no number"),
        ({"maxSegments": 8.5}, "maxSegments is no whole number"),
        ({"maxSegments": True}, "maxSegments is no number"),
        ({"enabled": 1}, "enabled is neither true nor false"),
        ({"splitMsgRateInThreshold": -1}, "is not between 0 and"),
    ],
)
async def test_what_is_no_override_sets_nothing(url: str, target: dict[str, Any], body: Any, words: str) -> None:
    async with rest_world() as world:
        answer = await world.ask("POST", url, body=body)
        assert (answer.status, words in answer.reason) == (400, True), answer.body
        assert world.kubernetes.acted == []


@PLACES
@pytest.mark.parametrize(
    "body",
    [
        {"minSegments": 9, "maxSegments": 8},
        {"splitMsgRateInThreshold": 100, "mergeMsgRateInThreshold": 100},
        {"maxSegments": 0},
    ],
)
async def test_what_contradicts_itself_is_refused_when_it_is_set(url: str, target: dict[str, Any], body: Any) -> None:
    async with rest_world() as world:
        answer = await world.ask("POST", url, body=body)
        assert (answer.status, "contradicts itself" in answer.reason) == (412, True), answer.body
        assert world.kubernetes.acted == []


@PLACES
async def test_what_contradicts_a_wider_policy_is_refused_when_it_is_set(url: str, target: dict[str, Any]) -> None:
    async with rest_world() as world:
        _policy(world, "wide", OF_CLUSTER, minSegments=9)
        answer = await world.ask("POST", url, body={"maxSegments": 8})
        assert (answer.status, "contradicts itself" in answer.reason) == (412, True)
        assert (await world.ask("POST", url, body={"maxSegments": 8, "minSegments": 2})).status == 204


@PLACES
async def test_policies_of_people_are_left_alone(url: str, target: dict[str, Any]) -> None:
    async with rest_world() as world:
        _policy(world, "by-hand", target, maxSegments=8)
        assert (await world.ask("GET", url)).body == {"maxSegments": 8}
        answer = await world.ask("POST", url, body={"maxSegments": 9})
        assert (answer.status, answer.reason) == (
            409,
            "SegmentAutoScalePolicy shop/by-hand sets maxSegments already; change or delete that",
        )
        assert (await world.ask("POST", url, body={"minSegments": 2})).status == 204, "what it leaves open may be set"
        assert (await world.ask("GET", url)).body == {"maxSegments": 8, "minSegments": 2}
        answer = await world.ask("DELETE", url)
        assert (answer.status, "sets maxSegments already" in answer.reason) == (409, True)
        assert len(world.kubernetes.all_of(POLICIES)) == 2


async def test_r32_the_spec_of_a_topic_goes_before_and_is_never_edited() -> None:
    async with rest_world() as world:
        world.change_topic(autoScale={"maxSegments": 8})
        assert (await world.ask("GET", TOPIC_POLICY_URL)).body == {"maxSegments": 8}
        answer = await world.ask("POST", TOPIC_POLICY_URL, body={"maxSegments": 9})
        assert (answer.status, "sets maxSegments in spec.autoScale" in answer.reason) == (409, True)
        answer = await world.ask("POST", TOPIC_POLICY_URL, body={"minSegments": 9})
        assert (answer.status, "contradicts itself" in answer.reason) == (412, True)
        assert (await world.ask("POST", TOPIC_POLICY_URL, body={"minSegments": 2})).status == 204
        answer = await world.ask("DELETE", TOPIC_POLICY_URL)
        assert (answer.status, "has knobs in spec.autoScale; remove them there" in answer.reason) == (409, True)
        assert world.topic["spec"]["autoScale"] == {"maxSegments": 8}
        world.change_topic(autoScale={"split": {"cooldown": "soon"}})
        answer = await world.ask("POST", TOPIC_POLICY_URL, body={"minSegments": 2})
        assert (answer.status, "correct it first" in answer.reason) == (409, True)


async def test_an_override_of_a_topic_is_its_alone() -> None:
    async with rest_world() as world:
        _policy(world, "another", {"scope": "Topic", "topicRef": {"name": "another"}}, maxSegments=3)
        _policy(world, "by-label", {"scope": "Topics", "selector": {}}, maxSegments=4)
        _policy(world, "elsewhere", {**OF_NAMESPACE, "pulsarNamespace": "acme/other"}, maxSegments=5)
        assert (await world.ask("GET", TOPIC_POLICY_URL)).status == 204
        assert (await world.ask("GET", NAMESPACE_POLICY_URL)).status == 204


async def test_the_record_of_a_topic_has_its_override() -> None:
    async with rest_world() as world:
        assert (await world.ask("POST", TOPIC_POLICY_URL, body={"mergeWindowSeconds": 30})).status == 204
        assert (await world.ask("GET", TOPIC_URL)).body["autoScalePolicy"] == {"mergeWindowSeconds": 30}


@PLACES
async def test_r32_without_a_mapping_the_manifest_is_told(url: str, target: dict[str, Any]) -> None:
    async with rest_world(mapped=False) as world:
        connected = f"{url}?connection=shop/pulsar"
        answer = await world.ask("POST", connected, body={"maxSegments": 8})
        assert (answer.status, "spec.pulsarNamespaceMappings" in answer.reason) == (405, True)
        manifest = yaml.safe_load(answer.body["manifest"])
        assert manifest["metadata"]["namespace"] == "shop"
        assert SegmentAutoScalePolicy.model_validate(manifest).spec.max_segments == 8
        assert manifest["spec"]["target"] == target
        answer = await world.ask("DELETE", connected)
        assert (answer.status, "spec.pulsarNamespaceMappings" in answer.reason) == (405, True)
        assert world.kubernetes.acted == []


async def test_a_namespace_that_nobody_maps_has_no_override() -> None:
    async with rest_world(mapped=False) as world:
        answer = await world.ask("GET", NAMESPACE_POLICY_URL)
        assert (answer.status, "no connection maps Pulsar namespace acme/shop" in answer.reason) == (404, True)


async def test_several_mappings_are_told_apart_by_the_connection() -> None:
    async with rest_world() as world:
        world.kubernetes.put(connection(name="another"))
        assert (await world.ask("POST", NAMESPACE_POLICY_URL, body={"maxSegments": 8})).status == 400
        assert (
            await world.ask("POST", f"{NAMESPACE_POLICY_URL}?connection=shop/another", body={"maxSegments": 8})
        ).status == 204
        (made,) = world.kubernetes.all_of(POLICIES)
        assert made["spec"]["target"]["connectionRef"] == {"name": "another"}
        assert (await world.ask("GET", f"{NAMESPACE_POLICY_URL}?connection=shop/pulsar")).status == 204


@PLACES
async def test_of_two_at_the_same_time_the_older_stays(url: str, target: dict[str, Any]) -> None:
    async with rest_world() as world:
        rival: list[Body] = []

        def become(body: Body) -> None:
            """Somebody else's was made a moment earlier, and is listed only after ours was made."""
            if body["kind"] == POLICIES.kind and not rival:
                metadata = {**body["metadata"], "name": "rival", "uid": "uid-0"}
                metadata["creationTimestamp"] = "2025-12-31T00:00:00Z"
                rival.append(world.kubernetes.put({**body, "metadata": metadata}))

        world.kubernetes.becomes = become
        answer = await world.ask("POST", url, body={"maxSegments": 8})
        assert (answer.status, "somebody else has just set the same" in answer.reason) == (409, True)
        assert [one["metadata"]["name"] for one in world.kubernetes.all_of(POLICIES)] == ["rival"]
