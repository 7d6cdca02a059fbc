"""R16, R18, R31, R32, R33: the admin REST of two replicas on a real API server and a real broker.

What comes of it is looked up there, not asked of the REST.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.layout import from_pip468
from scalable_topics_operator.cluster.kube_client import Resource
from scalable_topics_operator.cluster.resources import POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from tests.support import manifests
from tests.support.pulsar_client import close
from tests.support.rest_bench import RestBench, rest_bench
from tests.support.waiting import eventually
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

_ADMISSION = "admissionregistration.k8s.io"
_ADMISSION_POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy")
_ADMISSION_BINDINGS = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rest(
    pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RestBench]:
    # Sealed segments are to be seen.
    flags = ("--settle-window-seconds=600", "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")
    async with rest_bench(pulsar, kube_environment, tmp_path_factory.mktemp("rest"), *flags) as bench:
        yield bench


async def test_a_topic_comes_and_goes(rest: RestBench) -> None:
    world, url = rest.world, rest.url("comes")
    await rest.create("comes", 2, {"team": "shop", "tier": "gold"})
    body = await world.get(TOPICS, "comes")
    assert body["spec"]["deletionPolicy"] == "Delete"
    await world.assert_brokers_agree("comes", "comes", set())
    claim = world.topic_name("comes").persistent
    assert (await world.pulsar.properties(claim))["team"] == "shop"
    record = (await rest.ask("GET", url)).body
    assert from_pip468(record).segments == (await world.layout("comes")).segments
    assert (await rest.ask("PUT", url, body={})).status == 409

    await rest.create("other", 1, {"team": "else"})
    for query, names in (("", {"comes", "other"}), ("?property=team%3Dshop", {"comes"})):
        listed = (await rest.ask("GET", rest.url() + query)).body
        assert {name.rpartition("/")[2] for name in listed} & {"comes", "other"} == names

    with rest.application() as application:
        producer = await application.producer((await world.segment_topics("comes"))[0])
        answer = await rest.ask("DELETE", url)
        assert (answer.status, "1 producers" in answer.reason) == (412, True)
        await world.assert_brokers_agree("comes", "comes", set())
        await close(producer)
    answer = await eventually(
        lambda: rest.ask("DELETE", url), lambda answer: answer.status != 412, what="the producer is gone"
    )
    assert answer.status == 204
    await world.until_gone(TOPICS, "comes")
    assert await world.segment_topics("comes") == []
    assert not await world.pulsar.exists(claim)


async def test_r31_a_topic_in_use_goes_if_it_must(rest: RestBench) -> None:
    # Else a client that is sent away would come back and have the broker make what was deleted.
    await rest.world.pulsar.call(
        "POST", f"namespaces/{rest.world.pulsar_namespace}/autoTopicCreation", {"allowAutoTopicCreation": False}
    )
    await rest.create("forced", 2)
    with rest.application() as application:
        for topic in await rest.world.segment_topics("forced"):
            await application.producer(topic)
            await application.consumer(topic, "reader")
        assert (await rest.ask("DELETE", rest.url("forced"))).status == 412
        assert (await rest.ask("DELETE", f"{rest.url('forced')}?force=true")).status == 204
    await rest.world.until_gone(TOPICS, "forced")
    assert await rest.world.segment_topics("forced") == []


async def test_r32_asking_for_what_is_missing_creates_nothing(rest: RestBench) -> None:
    for path in (
        "",
        "/stats",
        "/autoScale/explain",
        "/autoScalePolicy",
        "/subscriptions",
        "/subscriptions/x",
        "/watch",
    ):
        assert (await rest.ask("GET", rest.url("nowhere") + path)).status == 404, path
    descriptor = f"/admin/v2/segments/{rest.world.pulsar_namespace}/nowhere/0000-ffff-0"
    assert (await rest.ask("GET", descriptor)).status == 404
    assert not any("nowhere" in topic for topic in await rest.world.pulsar.topics(rest.world.pulsar_namespace))
    assert not any(one["metadata"]["name"] == "nowhere" for one in await _all(rest.world, TOPICS))


async def test_what_brokers_refuse_is_told_and_leaves_nothing(rest: RestBench) -> None:
    claim = rest.world.topic_name("taken").persistent
    await rest.world.pulsar.create_topic(claim)
    answer = await rest.ask("PUT", rest.url("taken"), body={})
    assert (answer.status, "taken" in answer.reason) == (409, True)
    await rest.world.until_gone(TOPICS, "taken")
    assert await rest.world.pulsar.exists(claim)


@pytest.mark.both_lines
async def test_segments_are_split_merged_and_rebucketed(rest: RestBench) -> None:
    world, url = rest.world, rest.url("shaped")
    await rest.create("shaped", 1)

    planned = await rest.ask("POST", f"{url}/split/0?at=4096&dryRun=true")
    assert planned.status == 200
    assert planned.body["plan"]["children"]
    assert len((await world.layout("shaped")).segments) == 1

    answer = await rest.ask("POST", f"{url}/split/0?at=4096")
    assert answer.status == 204
    operation = await world.get(SEGMENT_OPERATIONS, answer.operation.partition("/")[2])
    assert operation["status"]["phase"] == "Succeeded"
    assert (operation["spec"]["split"]["segment"], operation["spec"]["split"]["at"]) == (0, 4096)
    active = (await world.layout("shaped")).active
    assert [str(one.hash_range) for one in active] == ["[0000, 0fff]", "[1000, ffff]"]

    await rest.until_shown(url, segments=3)
    assert (await rest.ask("POST", f"{url}/split/{active[1].segment_id}?into=3")).status == 204
    await rest.until_shown(url, segments=6)
    first, *others = (await world.layout("shaped")).active
    more = "&".join(f"segmentId={one.segment_id}" for one in others[1:])
    assert (await rest.ask("POST", f"{url}/merge/{first.segment_id}/{others[0].segment_id}?{more}")).status == 204
    await rest.until_shown(url, segments=7)
    (whole,) = (await world.layout("shaped")).active
    assert (await rest.ask("POST", f"{url}/rebucket/{whole.segment_id}?bucketCount=8")).status == 204
    (last,) = (await world.layout("shaped")).active
    assert (str(last.hash_range), last.buckets) == ("[0000, ffff]", 8)
    await world.assert_brokers_agree("shaped", "shaped", set())

    operations = len(await _all(world, SEGMENT_OPERATIONS))
    await rest.until_shown(url, segments=8)
    for path, status in (
        ("/split/99", 404),
        (f"/split/{last.segment_id}?at=0", 400),
        ("/merge/1/1", 400),
        (f"/rebucket/{last.segment_id}?buckets=0", 400),
    ):
        assert (await rest.ask("POST", url + path)).status == status, path
    assert len(await _all(world, SEGMENT_OPERATIONS)) == operations
    for path, status, words in (
        ("/split/0", 412, "sealed"),
        (f"/rebucket/{last.segment_id}?buckets=8", 400, "already has 8 entry buckets"),
        ("/migrate", 409, "a scalable topic already"),
    ):
        answer = await rest.ask("POST", url + path)
        assert (answer.status, words in answer.reason) == (status, True), answer
    await world.assert_brokers_agree("shaped", "shaped", set())


async def test_r18_a_shared_subscription_is_made_moved_and_deleted(rest: RestBench) -> None:
    """Hazard A1-25717a."""
    world, url = rest.world, rest.url("shared")
    await rest.create("shared", 1)
    billing = f"{url}/subscriptions/billing"
    assert (await rest.ask("PUT", f"{billing}?type=QUEUE")).status == 204
    assert await rest.backlogs("shared", "billing") == {0: 0}
    with rest.application() as application:
        topics = await world.segment_names("shared", "shared")
        await application.send(topics[0], "m0", "m1", "m2")
        await asyncio.sleep(0.05)
        between_ms = time.time_ns() // 1_000_000
        await asyncio.sleep(0.05)
        await application.send(topics[0], "m3", "m4")
        await _until_left(rest, "shared", {0: 5})
        assert (await rest.ask("POST", f"{billing}/skip-all")).status == 204
        await _until_left(rest, "shared", {0: 0})
        assert (await rest.ask("POST", f"{url}/split/0")).status == 204
        topics = await world.segment_names("shared", "shared")
        await application.send(topics[1], "m5")
        await _until_left(rest, "shared", {0: 0, 1: 1, 2: 0})
        await rest.until_shown(url, segments=3)

        planned = await rest.ask("POST", f"{billing}/seek?timestamp={between_ms}&dryRun=true")
        assert planned.status == 200
        assert planned.body["plan"]["notes"] == [
            "segment 1: its cursor goes to the beginning",
            "segment 2: its cursor goes to the beginning",
            "segment 0: its cursor goes to the time",
        ]
        assert (await rest.ask("POST", f"{billing}/seek?timestamp={between_ms}")).status == 204
        await _until_left(rest, "shared", {0: 2, 1: 1, 2: 0})
        assert (await rest.ask("POST", f"{billing}/seek?timestamp=0")).status == 204
        await _until_left(rest, "shared", {0: 5, 1: 1, 2: 0})
        answer = await rest.ask("POST", f"{url}/subscriptions/nobody/seek?timestamp=0")
        assert (answer.status, "there is no subscription nobody" in answer.reason) == (404, True)

        assert (await rest.ask("PUT", f"{url}/subscriptions/late?type=QUEUE&initialPosition=latest")).status == 204
        assert await rest.backlogs("shared", "late") == {0: None, 1: 0, 2: 0}
        await rest.until_shown(f"{url}/subscriptions/late")
        await eventually(
            lambda: rest.ask("GET", f"{url}/subscriptions/late"),
            lambda answer: answer.body["outOfScope"] == [0],
            what="what is sealed is not for it",
        )
        assert "subscriptions" not in (await world.get(TOPICS, "shared"))["spec"]

        consumer = await application.consumer(topics[1], "billing")
        answer = await rest.ask("DELETE", billing)
        assert (answer.status, "1 consumers" in answer.reason) == (412, True)
        assert await rest.backlogs("shared", "billing") == {0: 5, 1: 1, 2: 0}
        assert (await rest.ask("DELETE", f"{billing}?force=true")).status == 204
        # A consumer that is sent away would come back and make the cursor anew, as it does on any topic.
        await close(consumer)
    assert (await rest.backlogs("shared", "billing"))[0] is None
    assert await rest.backlogs("shared", "late") == {0: None, 1: 0, 2: 0}


async def test_r18_readers_let_go_before_the_cursors_of_an_ordered_subscription_move(rest: RestBench) -> None:
    world, billing = rest.world, f"{rest.url('ordered')}/subscriptions/billing"
    await rest.create("ordered", 2)
    assert (await rest.ask("PUT", f"{billing}?type=STREAM")).status == 204
    name = subscription_object_name("ordered", "billing")
    assert (await world.get(SUBSCRIPTIONS, name))["spec"]["type"] == "Stream"
    answer = await rest.ask("PUT", f"{billing}?type=QUEUE")
    assert (answer.status, "of type STREAM" in answer.reason) == (409, True)
    with rest.application() as application:
        for topic in (await world.segment_names("ordered", "ordered")).values():
            await application.send(topic, "m0", "m1")
    await _until_left(rest, "ordered", {0: 2, 1: 2})

    async with rest.session("ordered", "billing", "a") as reader:
        await reader.until_assigned({0, 1})
        shown = await eventually(
            lambda: rest.ask("GET", billing),
            lambda answer: bool(answer.body.get("assignment", {}).get("consumers")),
            what="the assignment is shown",
        )
        assert shown.body["type"] == "STREAM"
        (consumer,) = shown.body["assignment"]["consumers"]
        assert (consumer["name"], [one["segment"] for one in consumer["segments"]]) == ("a", [0, 1])

        for path, left in (("skip-all", 0), ("seek?timestamp=0", 2)):
            asked = asyncio.create_task(rest.ask("POST", f"{billing}/{path}"))
            await reader.until_assigned(set())
            assert await rest.backlogs("ordered", "billing") == {0: 2 - left, 1: 2 - left}, "nothing has moved yet"
            assert not asked.done()
            await reader.say("released", segments=[0, 1])
            assert (await asked).status == 204
            await reader.until_assigned({0, 1})
            await _until_left(rest, "ordered", {0: left, 1: left})

        answer = await rest.ask("DELETE", billing)
        assert (answer.status, "1 consumers" in answer.reason) == (412, True)
        assert (await rest.ask("DELETE", f"{billing}?force=true")).status == 204
    await world.until_gone(SUBSCRIPTIONS, name)
    assert await rest.backlogs("ordered", "billing") == {0: None, 1: None}
    for operator in rest.two.operators:
        await eventually(
            lambda operator=operator: rest.ask("GET", billing, at=operator),  # type: ignore[misc]
            lambda answer: answer.status == 404,
            what=f"{operator.identity} knows that it is gone",
        )


async def test_pip_483_overrides_of_a_topic_and_a_namespace(rest: RestBench) -> None:
    world, url = rest.world, rest.url("scaled")
    await rest.create("scaled", 2)
    of_namespace = f"/admin/v2/namespaces/{world.pulsar_namespace}/scalableTopicAutoScalePolicy"
    for path, override in (
        (of_namespace, {"maxSegments": 9, "splitCooldownSeconds": 77}),
        (f"{url}/autoScalePolicy", {"maxSegments": 5}),
    ):
        assert (await rest.ask("GET", path)).status == 204
        answer = await rest.ask("POST", path, body={"minSegments": 4, "maxSegments": 3})
        assert (answer.status, "contradicts itself" in answer.reason) == (412, True)
        assert (await rest.ask("POST", path, body={"maxSegments": 6})).status == 204
        assert (await rest.ask("POST", path, body=override)).status == 204
        await _until_answered(rest, path, override)
    made = {one["spec"]["target"]["scope"]: one["spec"] for one in await _all(world, POLICIES)}
    assert made["Topic"] == {"target": {"scope": "Topic", "topicRef": {"name": "scaled"}}, "maxSegments": 5}
    assert made["PulsarNamespace"]["split"] == {"cooldown": 77}
    assert len(await _all(world, POLICIES)) == 2

    def as_set(answer: Any) -> bool:
        knobs = {one["knob"]: one["value"] for one in answer.body.get("knobs", ())}
        return (knobs.get("maxSegments"), knobs.get("split.cooldown")) == (5, 77)

    await eventually(lambda: rest.ask("GET", f"{url}/autoScalePolicy/effective"), as_set, what="both are in effect")
    by_hand = manifests.policy("by-hand", "Topic", {"topicRef": {"name": "scaled"}}, maxDagDepth=4)
    await world.apply(by_hand)
    await _until_answered(rest, f"{url}/autoScalePolicy", {"maxSegments": 5, "maxDagDepth": 4})
    assert (await rest.ask("DELETE", f"{url}/autoScalePolicy")).status == 409
    await world.delete(POLICIES, "by-hand")
    await _until_answered(rest, f"{url}/autoScalePolicy", {"maxSegments": 5})
    for path in (f"{url}/autoScalePolicy", of_namespace):
        assert (await rest.ask("DELETE", path)).status == 204
    assert await _all(world, POLICIES) == []


async def test_r32_single_segments_are_read_and_written_by_the_operator_alone(rest: RestBench) -> None:
    await rest.create("read", 2)
    world, segment = rest.world, f"/admin/v2/segments/{rest.world.pulsar_namespace}/read/0000-7fff-0"
    topic = (await world.segment_names("read", "read"))[0]
    await world.pulsar.create_subscription(topic, "billing")
    with rest.application() as application:
        await application.send(topic, "m0", "m1")
    record = (await rest.ask("GET", rest.url("read"))).body["segments"]["0"]
    assert (await rest.ask("GET", segment)).body == record
    await eventually(
        lambda: rest.ask("GET", f"{segment}/subscription/billing/backlog"),
        lambda answer: answer.body == 2,
        what="the backlog is what the broker has",
    )
    assert (await rest.ask("GET", f"{segment}/subscriptions")).body["billing"]["backlog"] == 2
    for method, path in (("DELETE", ""), ("POST", "/terminate"), ("POST", "/subscription/billing/skip-all")):
        assert (await rest.ask(method, segment + path)).status == 405
    assert await rest.backlogs("read", "billing") == {0: 2, 1: None}
    assert not await world.pulsar.terminated(topic)


async def test_r33_every_right_is_asked_for(rest: RestBench) -> None:
    await rest.create("guarded", 2)
    url = rest.url("guarded")
    writes: tuple[tuple[str, str, Any, str], ...] = (
        ("PUT", rest.url("another"), {}, "create scalabletopics"),
        ("DELETE", url, None, "delete scalabletopics"),
        ("POST", f"{url}/split/0", None, "create segmentoperations"),
        ("POST", f"{url}/subscriptions/x/skip-all", None, "create segmentoperations"),
        ("PUT", f"{url}/subscriptions/x", None, "create scalabletopicsubscriptions"),
        ("DELETE", f"{url}/subscriptions/x", None, "delete scalabletopicsubscriptions"),
        ("POST", f"{url}/autoScalePolicy", {}, "create segmentautoscalepolicies"),
    )
    for method, path, body, right in writes:
        answer = await rest.ask(method, path, body=body, token=rest.viewer)
        verb, plural = right.split()
        assert (answer.status, verb in answer.reason, plural in answer.reason) == (403, True, True), answer
        assert (await rest.ask(method, path, body=body, token=rest.stranger)).status == 403
        assert (await rest.ask(method, path, body=body, token=None)).status == 401
        assert (await rest.ask(method, path, body=body, token="nonsense")).status == 401
    for path in ("", "/subscriptions", "/stats"):
        assert (await rest.ask("GET", url + path, token=rest.viewer)).status in (200, 503)
        assert (await rest.ask("GET", url + path, token=rest.stranger)).status == 403
    assert len((await rest.world.layout("guarded")).segments) == 2
    for resource in (POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS):
        assert not any("guarded" in str(one["spec"]) for one in await _all(rest.world, resource))
    for operator in rest.two.operators:
        for token in (rest.admin, rest.viewer, rest.stranger):
            assert token not in operator.log_text()


async def test_r32_the_api_server_knows_who_asked(rest: RestBench) -> None:
    """An admission policy sees the caller, not the operator, and keeps one of them from what RBAC lets both do."""
    world = rest.world
    await rest.create("judged", 1)
    path = f"{rest.url('judged')}/split/0?dryRun=true"
    assert (await rest.ask("POST", path)).status == 200
    async with _kept_out(world, f"system:serviceaccount:{world.namespace}:admin"):
        answer = await eventually(
            lambda: rest.ask("POST", path), lambda answer: answer.status == 403, what="the policy is in effect"
        )
        assert "not for this one" in answer.reason, answer


@asynccontextmanager
async def _kept_out(world: World, user: str) -> AsyncIterator[None]:
    name = f"{world.namespace}-not-for-this-one"
    rule = {
        "apiGroups": [SEGMENT_OPERATIONS.group],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": [SEGMENT_OPERATIONS.plural],
    }
    expression = f"request.userInfo.username != '{user}'"
    policy = {
        "apiVersion": _ADMISSION_POLICIES.api_version,
        "kind": _ADMISSION_POLICIES.kind,
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "not for this one", "reason": "Forbidden"}],
        },
    }
    binding = {
        "apiVersion": _ADMISSION_BINDINGS.api_version,
        "kind": _ADMISSION_BINDINGS.kind,
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}},
        },
    }
    await world.kube.create(_ADMISSION_POLICIES, None, policy)
    await world.kube.create(_ADMISSION_BINDINGS, None, binding)
    try:
        yield
    finally:
        await world.kube.delete(_ADMISSION_BINDINGS, None, name)
        await world.kube.delete(_ADMISSION_POLICIES, None, name)


async def _until_left(rest: RestBench, topic: str, backlogs: dict[int, int | None]) -> None:
    await eventually(
        lambda: rest.backlogs(topic, "billing"),
        lambda found: found == backlogs,
        what=f"{backlogs} messages are left of {topic}",
    )


async def _until_answered(rest: RestBench, path: str, body: Any) -> None:
    for operator in rest.two.operators:
        await eventually(
            lambda operator=operator: rest.ask("GET", path, at=operator),  # type: ignore[misc]
            lambda answer: answer.body == body,
            what=f"{operator.identity} answers {body}",
        )


async def _all(world: World, resource: Resource) -> list[dict[str, Any]]:
    return await world.kube.list_all(resource, world.namespace)
