"""The sample overlays of `examples/gitops`: the API server takes them, the operator makes them true, tools see it."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
import yaml

from dev.access import KubernetesAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, SEGMENT_OPERATIONS, TOPICS
from tests.integration.chart.cluster import apply
from tests.support import manifests
from tests.support.crds import our_schemas
from tests.support.gitops import OVERLAYS, SAMPLES, Judgement, built, judge
from tests.support.waiting import eventually
from tests.support.world import World, phase
from tests.support.world_making import create_namespace

_RESOURCES = {resource.kind: resource for resource in (CONNECTIONS, POLICIES, SEGMENT_OPERATIONS, TOPICS)}


@pytest.mark.parametrize("name", sorted(folder.name for folder in OVERLAYS.iterdir()))
async def test_the_api_server_takes_an_overlay_as_it_is(
    kube: KubeClient, kube_environment: KubernetesAccess, name: str
) -> None:
    objects = built(OVERLAYS / name)
    (namespace,) = {one["metadata"]["namespace"] for one in objects}
    with suppress(KubeConflict):
        await create_namespace(kube, namespace)
    assert apply(kube_environment, objects, "--server-side", "--dry-run=server", "--validate=strict") == ""
    kinds = [one["kind"] for one in objects]
    assert {"ScalableTopicConnection", "SegmentAutoScalePolicy", "ScalableTopic"} == set(kinds)
    connections = {one["metadata"]["name"] for one in objects if one["kind"] == "ScalableTopicConnection"}
    for one in objects:
        if one["kind"] == "ScalableTopic":
            assert one["spec"]["connectionRef"]["name"] in connections
        elif one["kind"] == "SegmentAutoScalePolicy":
            assert one["spec"]["target"]["connectionRef"]["name"] in connections


def test_references_between_objects_are_fields_that_there_are() -> None:
    """Or a prefix of names would not reach those who name them."""
    schemas = our_schemas()
    text = (SAMPLES / "kustomize" / "base" / "references.yaml").read_text()
    for reference in yaml.safe_load(text)["nameReference"]:
        for field in reference["fieldSpecs"]:
            schema = schemas[field["kind"]]
            for part in field["path"].split("/"):
                schema = schema["properties"][part]
            assert schema["type"] == "string", field


async def test_an_overlay_becomes_healthy_and_tools_see_what_goes_wrong(world: World) -> None:
    """Argo CD, Flux and kstatus on the objects themselves, from their first status to their end."""
    objects = [_here(one, world) for one in built(OVERLAYS / "staging")]
    for one in objects:
        await world.apply(one)
    for one in objects:
        await _until(world, one["kind"], one["metadata"]["name"], Judgement("Current", "Current", "Healthy", ""))
    topic = "staging-orders"
    split = await world.operate(topic, "Split", segment=0)
    assert phase(split) == "Succeeded"
    operation = split["metadata"]["name"]
    await _until(world, "SegmentOperation", operation, Judgement("Current", "Current", "Healthy", ""))
    refused = await world.operate(topic, "Merge", segments=[0, 77])
    name = refused["metadata"]["name"]
    await _until(world, "SegmentOperation", name, Judgement("Failed", "Failed", "Degraded", ""))

    await world.change(TOPICS, topic, {"paused": True})
    await _until(world, "ScalableTopic", topic, Judgement("Current", "Current", "Suspended", ""))
    await world.change(TOPICS, topic, {"paused": False})
    await _until(world, "ScalableTopic", topic, Judgement("Current", "Current", "Healthy", ""))
    await world.apply(manifests.topic("twin", str(world.topic_name("staging-orders"))))
    await _until(world, "ScalableTopic", "twin", Judgement("Failed", "Failed", "Degraded", ""))


def _here(manifest: dict[str, Any], world: World) -> dict[str, Any]:
    """An object of the overlay with the brokers, and the Pulsar namespace, of this test."""
    made = deepcopy(manifest)
    made["metadata"]["namespace"] = world.namespace
    if made["kind"] == "ScalableTopicConnection":
        made["spec"]["adminUrl"] = world.admin_url
    elif made["kind"] == "ScalableTopic":
        local = made["spec"]["topic"].rsplit("/", 1)[1]
        made["spec"]["topic"] = str(world.topic_name(local))
    return made


async def _until(world: World, kind: str, name: str, expected: Judgement) -> None:
    """Wait until tools judge an object so; the message does not count."""

    async def found() -> Judgement:
        said = judge(await world.get(_RESOURCES[kind], name))
        return Judgement(said.kstatus, said.flux, said.argocd, "")

    await eventually(found, lambda said: said == expected, what=f"{kind} {name} is judged", every_seconds=0.3)
