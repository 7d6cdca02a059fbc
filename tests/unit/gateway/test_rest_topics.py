"""pip-468: topics listed, created, shown and deleted, where connections map Pulsar namespaces to Kubernetes ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import from_pip468
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.object_names import object_name
from scalable_topics_operator.operations.errors import BackendUnavailable
from tests.unit.gateway.model_kubernetes import BOB
from tests.unit.gateway.rest_world import READY, TOPIC_URL, RestWorld, connection, look, rest_world
from tests.unit.gateway.topics import created, split, topic_body

LIST_URL = "/admin/v2/scalable/acme/shop"
NEW_URL = f"{LIST_URL}/payments"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _another(world: RestWorld, name: str, topic: str, *, namespace: str = "shop", **spec: Any) -> Body:
    body = topic_body(created())
    return world.kubernetes.put(
        {
            "apiVersion": TOPICS.api_version,
            "kind": TOPICS.kind,
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"topic": topic, "connectionRef": {"name": "pulsar", "namespace": "shop"}, **spec},
            "status": body["status"],
        }
    )


def _become(world: RestWorld, **condition: str) -> None:
    """What a new topic becomes: Ready, or Stalled for a reason."""
    stalled = [
        {"type": "Ready", "status": "False", **condition},
        {"type": "Stalled", "status": "True", **condition},
    ]
    conditions = stalled if condition else READY
    world.kubernetes.becomes = lambda body: {"observedGeneration": 1, "conditions": conditions}


async def test_a_list_has_the_topics_of_a_pulsar_namespace_by_their_names_and_properties() -> None:
    async with rest_world() as world:
        _another(world, "b", "acme/shop/basket", properties={"team": "basket", "tier": "gold"})
        _another(world, "c", "persistent://acme/shop/cart", properties={"team": "basket"})
        _another(world, "d", "acme/other/dust")
        for query, names in (
            ("", ["basket", "cart", "orders"]),
            ("?property=team%3Dbasket", ["basket", "cart"]),
            ("?property=team%3Dbasket&property=tier%3Dgold", ["basket"]),
            ("?property=team%3Dnobody", []),
            ("?connection=shop/pulsar", ["basket", "cart", "orders"]),
            ("?connection=shop/another", []),
        ):
            answer = await world.ask("GET", LIST_URL + query)
            assert (answer.status, answer.body) == (200, [f"topic://acme/shop/{name}" for name in names])
        assert (await world.ask("GET", "/admin/v2/scalable/no/where")).body == []
        for query in ("?property=team", "?property=%3Dgold", "?properties=a%3Db"):
            assert (await world.ask("GET", LIST_URL + query)).status == 400


async def test_a_list_shows_what_its_caller_may_list() -> None:
    async with rest_world() as world:
        _another(world, "b", "acme/shop/basket", namespace="team-b")
        world.kubernetes.denied_in = {("list", "scalabletopics", "shop")}
        assert (await world.ask("GET", LIST_URL)).body == ["topic://acme/shop/basket"]
        assert (await world.ask("GET", LIST_URL, token=BOB)).status == 403
        metadata = {"namespace": "team-b", "name": "new"}
        world.kubernetes.put({**topic_body(created()), "kind": TOPICS.kind, "metadata": metadata, "status": {}})
        assert (await world.ask("GET", LIST_URL)).body == ["topic://acme/shop/basket"], "the new one is not made yet"


async def test_a_record_is_what_pip_468_writes() -> None:
    async with rest_world() as world:
        world.change_topic(split(created(2), 0), autoScale={"maxSegments": 8, "split": {"cooldown": "90s"}})
        answer = await world.ask("GET", TOPIC_URL)
        assert answer.status == 200
        layout = from_pip468({key: value for key, value in answer.body.items() if key != "autoScalePolicy"})
        assert layout.segments.keys() == {0, 1, 2, 3}
        assert answer.body["properties"] == {"team": "orders"}
        assert answer.body["autoScalePolicy"] == {"maxSegments": 8, "splitCooldownSeconds": 90}


async def test_r32_a_lookup_of_what_is_missing_creates_nothing() -> None:
    async with rest_world() as world:
        for path in ("", "/stats", "/subscriptions", "/autoScalePolicy"):
            assert (await world.ask("GET", NEW_URL + path)).status == 404
        assert world.kubernetes.acted == []
        world.change_topic()
        world.kubernetes.set_status(world.topic, {"conditions": [{**READY[0], "status": "False", "message": "soon"}]})
        answer = await world.ask("GET", TOPIC_URL)
        assert (answer.status, "is not made yet: Reconciled: soon" in answer.reason) == (503, True)


async def test_a_topic_is_created_as_its_caller_and_waited_for() -> None:
    async with rest_world() as world:
        _become(world)
        body = {"team": "pay", "tier": "gold"}
        answer = await world.ask("PUT", f"{NEW_URL}?numInitialSegments=4", body=body)
        assert answer.status == 204
        made = world.kubernetes.all_of(TOPICS)[-1]
        assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("shop", "payments")
        assert made["spec"] == {
            "topic": "topic://acme/shop/payments",
            "connectionRef": {"name": "pulsar"},
            "segments": {"initial": 4},
            "deletionPolicy": "Delete",
            "properties": body,
        }
        assert world.kubernetes.acted == [("alice", "create", "scalabletopics")]


@pytest.mark.parametrize("data", [b"", b"null", b'""', b"{}", b"  "])
async def test_a_topic_needs_no_properties(data: bytes) -> None:
    """Brokers' own admin client sends an empty text."""
    async with rest_world() as world:
        _become(world)
        assert (await world.ask("PUT", NEW_URL, data=data)).status == 204
        assert "properties" not in world.kubernetes.all_of(TOPICS)[-1]["spec"]


@pytest.mark.parametrize(
    ("data", "query", "words"),
    [
        (b"{", "", "the body is no JSON"),
        (b"\xff", "", "the body is no JSON"),
        (b"[" * 100_000, "", "the body is no JSON"),
        (b"[]", "", "a JSON object of texts"),
        (b'{"a": 1}', "", "a JSON object of texts"),
        (json.dumps({"a": "x" * 1025}).encode(), "", "1024 characters at most"),
        (json.dumps({str(number): "" for number in range(65)}).encode(), "", "64 properties"),
        (b"{}", "?numInitialSegments=0", "between 1 and 256"),
        (b"{}", "?numInitialSegments=257", "between 1 and 256"),
        (b"{}", "?segments=2", "there is no query parameter 'segments'"),
    ],
)
async def test_bad_input_creates_nothing(data: bytes, query: str, words: str) -> None:
    async with rest_world() as world:
        answer = await world.ask("PUT", NEW_URL + query, data=data)
        assert (answer.status, words in answer.reason) == (400, True), answer.body
        assert world.kubernetes.acted == []


@pytest.mark.parametrize("name", ["orders-layout", "orders-partition-0", "a%2Fb", "x" * 201, "a%20b", "%20"])
async def test_names_that_cannot_be_create_nothing(name: str) -> None:
    async with rest_world() as world:
        assert (await world.ask("PUT", f"{LIST_URL}/{name}", body={})).status == 400
        assert world.kubernetes.acted == []


async def test_a_large_body_is_not_read() -> None:
    async with rest_world() as world:
        answer = await world.ask("PUT", NEW_URL, data=b" " * (300 * 1024))
        assert (answer.status, answer.reason) == (413, "the body is larger than 262144 bytes")


async def test_r32_without_a_mapping_the_manifest_is_told() -> None:
    async with rest_world(mapped=False) as world:
        answer = await world.ask("PUT", f"{NEW_URL}?numInitialSegments=3&connection=shop/pulsar", body={"a": "b"})
        assert answer.status == 405
        assert "spec.pulsarNamespaceMappings" in answer.reason
        manifest = yaml.safe_load(answer.body["manifest"])
        assert ScalableTopic.model_validate(manifest).spec.segments.initial == 3
        assert manifest["spec"]["connectionRef"] == {"name": "pulsar", "namespace": "shop"}
        assert (await world.ask("DELETE", TOPIC_URL)).status == 405
        assert world.kubernetes.acted == []


async def test_a_name_is_created_once() -> None:
    async with rest_world() as world:
        answer = await world.ask("PUT", TOPIC_URL, body={})
        assert (answer.status, "ScalableTopic shop/orders declares it" in answer.reason) == (409, True)
        _another(world, "payments", "acme/shop/something-else")
        answer = await world.ask("PUT", NEW_URL, body={})
        assert (answer.status, answer.reason) == (409, "payments already exists")


async def test_several_mappings_are_told_apart_by_the_connection() -> None:
    async with rest_world() as world:
        _become(world)
        world.kubernetes.put(connection(name="another"))
        answer = await world.ask("PUT", NEW_URL, body={})
        assert (answer.status, "say which with ?connection=" in answer.reason) == (400, True)
        assert (await world.ask("PUT", f"{NEW_URL}?connection=shop/another", body={})).status == 204
        assert world.kubernetes.all_of(TOPICS)[-1]["spec"]["connectionRef"] == {"name": "another"}


async def test_r3_a_connection_that_may_not_be_used_for_it_is_not() -> None:
    async with rest_world() as world:
        world.kubernetes.put(connection(allow={"pulsarNamespaces": ["acme/other"]}))
        answer = await world.ask("PUT", NEW_URL, body={})
        assert (answer.status, "may not be used for Pulsar namespace acme/shop" in answer.reason) == (403, True)


@pytest.mark.parametrize(
    ("reason", "status"),
    [("NamespaceMissing", 404), ("NotAllowed", 403), ("InvalidName", 400), ("NameTaken", 409), ("AccessDenied", 409)],
)
async def test_what_cannot_be_made_leaves_nothing_behind(reason: str, status: int) -> None:
    async with rest_world() as world:
        _become(world, reason=reason, message="why")
        answer = await world.ask("PUT", NEW_URL, body={})
        assert (answer.status, answer.reason) == (status, "topic://acme/shop/payments cannot be made: why")
        assert [one["metadata"]["name"] for one in world.kubernetes.all_of(TOPICS)] == ["orders"]
        assert world.kubernetes.acted[-1] == ("alice", "delete", "scalabletopics")


async def test_what_is_not_ready_yet_is_named() -> None:
    async with rest_world(wait_seconds=0.05) as world:
        waiting = {"type": "Ready", "status": "False", "reason": "ConnectionDown", "message": "no broker answers"}
        world.kubernetes.becomes = lambda body: {"observedGeneration": 1, "conditions": [waiting]}
        answer = await world.ask("PUT", NEW_URL, body={})
        assert answer.status == 202
        assert answer.reason.endswith("is made, and not ready yet: ConnectionDown: no broker answers")


async def test_a_topic_is_deleted_as_its_caller() -> None:
    async with rest_world() as world:
        assert (await world.ask("DELETE", TOPIC_URL)).status == 204
        assert world.kubernetes.all_of(TOPICS) == []
        assert world.kubernetes.acted == [("alice", "delete", "scalabletopics")]


async def test_r31_clients_keep_a_topic_unless_they_are_to_be_forced_off() -> None:
    async with rest_world() as world:
        for name in world.brokers.looks:
            world.brokers.looks[name] = look(producers=1, consumers=2, cursors=("billing",))
        answer = await world.ask("DELETE", TOPIC_URL)
        assert (answer.status, "2 producers and 4 consumers are attached" in answer.reason) == (412, True)
        assert world.kubernetes.acted == []
        assert (await world.ask("DELETE", f"{TOPIC_URL}?force=true")).status == 204
        assert world.kubernetes.acted == [("alice", "patch", "scalabletopics"), ("alice", "delete", "scalabletopics")]


async def test_brokers_that_do_not_answer_delete_nothing() -> None:
    async with rest_world() as world:
        world.brokers.error = BackendUnavailable("no answer")
        answer = await world.ask("DELETE", TOPIC_URL)
        assert (answer.status, "the brokers do not answer: no answer" in answer.reason) == (503, True)
        assert world.kubernetes.acted == []


async def test_a_topic_whose_data_would_stay_is_not_deleted() -> None:
    async with rest_world() as world:
        world.change_topic(deletionPolicy="Retain")
        answer = await world.ask("DELETE", TOPIC_URL)
        assert (answer.status, "deletionPolicy: Retain" in answer.reason) == (409, True)
        assert world.kubernetes.acted == []


async def test_a_deletion_that_takes_longer_goes_on() -> None:
    async with rest_world(wait_seconds=0.05) as world:
        body = world.topic
        metadata = {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        conditions = [{**READY[0], "status": "False", "reason": "ClientsAttached", "message": "1 producer"}]
        world.kubernetes.put({**body, "metadata": metadata, "status": {**body["status"], "conditions": conditions}})
        answer = await world.ask("DELETE", TOPIC_URL)
        assert answer.status == 202
        assert answer.reason == "topic://acme/shop/orders is being deleted: ClientsAttached: 1 producer"
        assert world.kubernetes.acted == []


@pytest.mark.parametrize(("local", "name"), [("orders", "orders"), ("a.b-c", "a.b-c"), ("1", "1")])
def test_a_topic_and_its_object_have_one_name_where_that_can_be(local: str, name: str) -> None:
    assert object_name(local) == name


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_every_topic_has_an_object_of_its_own(one: str, other: str) -> None:
    names = {local: object_name(local) for local in (one, other)}
    for name in names.values():
        assert _NAME.fullmatch(name)
        assert len(name) <= 253
    assert len(set(names.values())) == len(names)
