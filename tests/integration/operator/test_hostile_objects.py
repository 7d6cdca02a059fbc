"""Objects that the API server takes and that nobody in their right mind would write: they stop nobody else.

Specs and statuses are made of the definitions' own schemas. Of each object the API server refuses it, or its status
tells how it stands; no secret that stands around it is in logs, objects or Events.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeInvalid, KubeNotFound
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import (
    CONNECTIONS,
    EVENTS,
    POLICIES,
    SEGMENT_OPERATIONS,
    SUBSCRIPTIONS,
    TOPICS,
)
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.canaries import forms_in
from tests.support.crds import our_schemas
from tests.support.metrics import read_page
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import RunningOperator
from tests.support.schema_values import varied
from tests.support.waiting import eventually
from tests.support.world import World, phase
from tests.support.world_making import make_world
from tests.unit.api.manifests import MINIMAL_SPECS, SPECS, STATUSES

SEED = 20_261_130
_KINDS = (CONNECTIONS, TOPICS, POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS)
_OF_EACH = 12
_LEAST_TAKEN = 12
# What is asked of brokers is what other tests pay for.
_MOST_SEGMENTS = 3
_TOLD_SECONDS = 40.0


async def test_objects_of_any_content_stop_nobody_and_show_no_secret(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> None:
    operator = await own_operator()
    await asyncio.to_thread(operator.start)
    world = await make_world(kube, view, pulsar, operator.namespace)
    rng = random.Random(SEED)
    canary = f"canary-{rng.randrange(10**20)}/+=?"
    await world.apply(manifests.secret("canary", **dict.fromkeys(("token", "password", "username", "tls.key"), canary)))
    await world.apply(manifests.topic("before", str(world.topic_name("before"))))
    await world.until_ready("before")
    async with KubeClient(load_endpoint(), tries=1) as somebody:
        taken = await _apply_all(somebody, world, rng)
        assert len(taken) >= _LEAST_TAKEN, "most are refused at once, and nothing is tried"
        await _edit_statuses(somebody, world, rng, taken)
        await asyncio.gather(*(_until_told(somebody, world, resource, name) for resource, name in taken))
        await world.apply(manifests.topic("after", str(world.topic_name("after")), initial=2))
        await world.until_ready("after")
        await world.until_ready("before")
        assert phase(await world.operate("after", "Split", segment=0)) == "Succeeded"
        _judge(operator, canary, pulsar, await _everything(somebody, world), await read_page(operator))
        for resource, name in taken:
            await world.delete(resource, name)


async def _apply_all(kube: KubeClient, world: World, rng: random.Random) -> list[tuple[Resource, str]]:
    schemas = our_schemas()
    taken = []
    for resource in _KINDS:
        for number in range(_OF_EACH):
            base = rng.choice((*SPECS[resource.kind], MINIMAL_SPECS[resource.kind]))
            spec = _bounded(resource, world, rng, varied(rng, base, schemas[resource.kind]["properties"]["spec"], 0.06))
            body = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": f"hostile-{number}", "annotations": {"note": "\u202e\u0007 %s {0}"}},
                "spec": spec,
            }
            try:
                await kube.create(resource, world.namespace, body)
            except KubeInvalid:
                continue
            taken.append((resource, f"hostile-{number}"))
    return taken


def _bounded(resource: Resource, world: World, rng: random.Random, spec: Any) -> Any:
    """The same, about this test's own Pulsar namespace and of few segments; with Secrets that hold the canary."""
    if not isinstance(spec, dict):
        return spec
    if resource == TOPICS:
        spec["topic"] = f"{world.pulsar_namespace}/hostile-{rng.randrange(10**9)}"
        spec["connectionRef"] = {"name": "pulsar"}
        if rng.random() < 0.5:
            spec.pop("migrateFrom", None)
        segments = spec.get("segments")
        for key in ("initial", "desired"):
            if isinstance(segments, dict) and isinstance(segments.get(key), int):
                segments[key] = min(segments[key], _MOST_SEGMENTS)
    if resource == SEGMENT_OPERATIONS and "topicRef" in spec:
        spec["topicRef"] = {"name": f"hostile-{rng.randrange(_OF_EACH)}"}
    if resource == CONNECTIONS:
        spec["adminUrl"] = rng.choice((world.admin_url, spec.get("adminUrl"), "http://127.0.0.1:1"))
        spec["auth"] = rng.choice(
            ({"token": {"secretRef": {"name": "canary"}}}, {"basic": {"secretRef": {"name": "canary"}}}, {})
        )
    return spec


async def _edit_statuses(kube: KubeClient, world: World, rng: random.Random, taken: list[tuple[Resource, str]]) -> None:
    """Somebody writes into statuses what the schema lets them."""
    schemas = our_schemas()
    for resource, name in taken:
        if rng.random() < 0.6 or resource.kind not in STATUSES:
            continue
        status = varied(rng, STATUSES[resource.kind], schemas[resource.kind]["properties"]["status"], 0.04)
        # What tells that it is being looked after has to be told anew.
        status = {**status, "conditions": [], "observedGeneration": 0} if isinstance(status, dict) else {}
        try:
            await kube.merge_patch(resource, world.namespace, name, {"status": status}, subresource="status")
        except (KubeInvalid, KubeConflict, KubeNotFound):
            continue


async def _until_told(kube: KubeClient, world: World, resource: Resource, name: str) -> None:
    """Wait until an object's status tells how it stands."""

    async def conditions() -> list[Any]:
        try:
            body = await kube.get(resource, world.namespace, name)
        except KubeNotFound:
            # An operation that is over goes when its time has come, which may be at once.
            assert resource == SEGMENT_OPERATIONS
            return [{"status": "True"}]
        status = body.get("status") or {}
        if resource == SEGMENT_OPERATIONS and status.get("phase") in ("Succeeded", "Failed"):
            # So does one whose status says, whoever wrote that, that it is over: nothing more becomes of it.
            return [{"status": "True"}]
        return list(status.get("conditions") or ())

    await eventually(
        conditions,
        lambda found: any(one.get("message") or one["status"] == "True" for one in found),
        what=f"{resource.kind} {name} tells how it stands",
        within_seconds=_TOLD_SECONDS,
    )


async def _everything(kube: KubeClient, world: World) -> list[Body]:
    return [body for resource in (*_KINDS, EVENTS) for body in await kube.list_all(resource, world.namespace)]


def _judge(operator: RunningOperator, canary: str, pulsar: PulsarAccess, bodies: list[Body], metrics: str) -> None:
    assert operator.running
    log = operator.log_text()
    assert "Traceback" not in log, log[log.index("Traceback") - 2000 :][:6000]
    assert "scalable_topics_" in metrics
    shown = log + json.dumps(bodies) + metrics
    for secret in (canary, pulsar.superuser_token):
        assert forms_in(shown, secret) == []
