"""R38: the peer's cases of its admin REST and of the service behind it, which are prose: each is a test here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from scalable_topics_operator.api.segment_operation import SegmentOperation
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.controllers.intents import operation_request
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object
from scalable_topics_operator.controllers.topic_memory import TopicMemories
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.simulation.run import Run
from tests.simulation.world import TOPIC, World
from tests.unit.gateway.model_kubernetes import ALICE, BOB
from tests.unit.gateway.rest_world import NAMESPACE_POLICY_URL, TOPIC_URL, rest_world

AREAS = ("Admin", "Service")
CASES = [case for case in load_cases() if case.area in AREAS]
LIST_URL = "/admin/v2/scalable/acme/shop"
# How the peer's operations are asked for.
REQUESTS: dict[str, tuple[str, str]] = {
    "create": ("PUT", f"{LIST_URL}/new"),
    "delete": ("DELETE", TOPIC_URL),
    "get metadata": ("GET", TOPIC_URL),
    "list": ("GET", LIST_URL),
    "create subscription": ("PUT", f"{TOPIC_URL}/subscriptions/billing"),
    "delete subscription": ("DELETE", f"{TOPIC_URL}/subscriptions/billing"),
    "split": ("POST", f"{TOPIC_URL}/split/0"),
}


async def _allowed(given: dict[str, Any]) -> dict[str, Any]:
    """Rights are Kubernetes verbs: a tenant's administrator has all but those to operate on segments (R33)."""
    roles = {
        "nobody": (BOB, set()),
        "tenant-admin": (ALICE, {("create", SEGMENT_OPERATIONS.plural)}),
        "super-user": (ALICE, set()),
    }
    method, path = REQUESTS[given["operation"]]
    allowed = []
    for role, (token, denied) in roles.items():
        async with rest_world(wait_seconds=0.05) as world:
            world.kubernetes.denied = denied
            if (await world.ask(method, path, token=token)).status != 403:
                allowed.append(role)
    return {"allowed": allowed}


async def _made_again(given: dict[str, Any]) -> dict[str, Any]:
    """Nothing is made because a client connects; what is recorded as active is made again by the operator."""
    world = World()
    run = Run(world)
    body = world.declare(TopicIntent(initial_segments=2))
    await run.settle()
    assert body.state.layout is not None
    name = world.name_of(body.state.layout.segment(0))
    world.drop(name)
    await run.calm()
    return {"allowed": name in world.broker.topics}


async def _unknown_segment(given: dict[str, Any]) -> dict[str, Any]:
    world = World()
    run = Run(world)
    body = world.declare(TopicIntent(initial_segments=2))
    await run.settle()
    before = set(world.broker.topics)
    assert body.state.layout is not None
    await run.calm()
    return {"allowed": bool(set(world.broker.topics) - before)}


async def _unknown_topic(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        answer = await world.ask("GET", f"{LIST_URL}/nowhere")
        return {"allowed": answer.status != 404 or world.kubernetes.acted != []}


async def _override_on_missing(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        return {"status": (await world.ask("POST", f"{LIST_URL}/nowhere/autoScalePolicy", body={})).status}


async def _override_refused(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        paths = (f"{TOPIC_URL}/autoScalePolicy", NAMESPACE_POLICY_URL)
        statuses = {(await world.ask("POST", path, body=given["override"])).status for path in paths}
        return {"status": statuses.pop() if len(statuses) == 1 else statuses}


async def _override_of_namespace(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        assert (await world.ask("POST", NAMESPACE_POLICY_URL, body=given["override"])).status == 204
        first = (await world.ask("GET", NAMESPACE_POLICY_URL)).body
        assert (await world.ask("DELETE", NAMESPACE_POLICY_URL)).status == 204
        last = (await world.ask("GET", NAMESPACE_POLICY_URL)).body
        return {"reads": ["same" if first == given["override"] else first, last]}


async def _deleted(given: dict[str, Any]) -> dict[str, Any]:
    world = World()
    run = Run(world)
    body = world.declare(TopicIntent(initial_segments=2), retain=False)
    await run.settle()
    world.stop_writing()
    body.deleting = True
    await run.settle()
    segments = [call for call in world.calls if call.verb == "delete" and "-segment-" in call.target]
    topic = {"metadata": {"name": "orders", "namespace": "shop", "uid": body.uid}}
    owners = subscription_object(topic, "billing", "Stream", latest=False)["metadata"]["ownerReferences"]
    return {
        "topic": TOPIC.persistent in world.broker.topics or not body.gone,
        # Kubernetes deletes what is owned by what is gone.
        "subscription": [owner["uid"] for owner in owners] != [body.uid],
        "segmentDeletes": ">=2" if len(segments) >= 2 else len(segments),
    }


async def _remembered(given: dict[str, Any], *names: str, forget: bool = False) -> dict[str, Any]:
    memories = TopicMemories(Metrics())
    found = []
    for name in names:
        body = {"metadata": {"uid": f"uid-{name}"}}
        key = ObjectKey(TOPICS.plural, "shop", name)
        found.append(memories.of(key, body))
        if forget:
            memories.forget(key)
    return {"same": found[0] is found[1]}


async def _no_segments(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        answer = await world.ask("PUT", f"{LIST_URL}/new?numInitialSegments=0", body={})
        assert world.kubernetes.acted == []
        return {"error": "illegal-argument" if answer.status == 400 else answer.status}


async def _reshaped(given: dict[str, Any], path: str) -> dict[str, Any]:
    """What REST makes is read by the operator's own reader, and done."""
    async with rest_world(wait_seconds=0.05) as rest:
        assert (await rest.ask("POST", TOPIC_URL + path)).status == 202
        (made,) = rest.kubernetes.all_of(SEGMENT_OPERATIONS)
    world = World()
    world.broker.retention_minutes = -1
    run = Run(world)
    body = world.declare(TopicIntent(initial_segments=2))
    await run.settle()
    world.ask(body, operation_request(SegmentOperation.model_validate(made).spec))
    await run.settle()
    assert body.state.layout is not None
    return {"epoch": body.state.layout.epoch, "total": len(body.state.layout.segments)}


Story = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
STORIES: dict[str, Story] = {
    **{f"least privilege for {operation}": _allowed for operation in REQUESTS},
    "missing parent: may not": _unknown_topic,
    "active segment may be re-created on connect": _made_again,
    "unknown id may not": _unknown_segment,
    "override on a missing topic": _override_on_missing,
    "invalid override refused at both levels": _override_refused,
    "namespace override set, read, removed": _override_of_namespace,
    "delete removes subscriptions and load records too": _deleted,
    "release then fresh controller": lambda given: _remembered(given, "a", "a", forget=True),
    "one controller per topic": lambda given: _remembered(given, "a", "a"),
    "controllers are independent": lambda given: _remembered(given, "a", "b"),
    "zero segments refused": _no_segments,
    "split through the service": lambda given: _reshaped(given, "/split/0"),
    "merge through the service": lambda given: _reshaped(given, "/merge/0/1"),
}


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_peer_case(case: PeerCase) -> None:
    """Hazard A6-25618."""
    judge(case, await STORIES[case.name](case.given))


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == {case.name for case in CASES}
