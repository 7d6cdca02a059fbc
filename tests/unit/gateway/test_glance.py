"""How topics stand, as the console shows it: the fleet in lines, one topic, and what the caller may do with it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.fleet_rows import FleetRows
from tests.unit.gateway.model_kubernetes import BOB
from tests.unit.gateway.replica import make_cache
from tests.unit.gateway.rest_world import READY, TOPIC_URL, RestWorld, rest_world
from tests.unit.gateway.topics import created, split, topic_body

FLEET_URL = "/admin/v2/scalable"
STALLED = [
    {"type": "Ready", "status": "False", "reason": "ForeignClaim", "message": "somebody else has it"},
    {"type": "Stalled", "status": "True", "reason": "ForeignClaim", "message": "somebody else has it"},
]


def _body(name: str, *, namespace: str = "shop", version: int = 1, **status: Any) -> Body:
    body = topic_body(split(created(2), 0), version)
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {**body["metadata"], "namespace": namespace, "name": name, "uid": f"uid-of-{name}"},
        "spec": {"topic": f"acme/shop/{name}", "connectionRef": {"name": "pulsar", "namespace": "shop"}},
        "status": {**body["status"], "conditions": READY, "segments": {"active": 3, "sealed": 1}, **status},
    }


def _add(world: RestWorld, name: str, *, namespace: str = "shop", **status: Any) -> None:
    body = _body(name, namespace=namespace, **status)
    world.kubernetes.put({**body, "metadata": {"namespace": namespace, "name": name}})


def _names(answer: Any) -> list[str]:
    return [f"{one['namespace']}/{one['name']}" for one in answer.body["topics"]]


async def test_the_fleet_has_a_line_of_each_topic_with_how_it_stands() -> None:
    async with rest_world() as world:
        _add(world, "basket", conditions=STALLED, backend="Classic", lastAction="Split of 0", reports=[{"reason": "R"}])
        answer = await world.ask("GET", FLEET_URL)
        assert answer.status == 200
        basket, orders = answer.body["topics"]
        assert basket == {
            "namespace": "shop",
            "name": "basket",
            "topic": "topic://acme/shop/basket",
            "connection": "shop/pulsar",
            "backend": "Classic",
            "createdAt": basket["createdAt"],
            "epoch": 1,
            "activeSegments": 3,
            "sealedSegments": 1,
            "subscriptions": 0,
            "operation": "",
            "lastAction": "Split of 0",
            "conditions": {"Ready": "False", "Stalled": "True"},
            "reason": "ForeignClaim",
            "message": "somebody else has it",
            "reports": 1,
            "paused": False,
            "deleting": False,
        }
        assert (orders["name"], orders["reason"], orders["conditions"]) == ("orders", "Reconciled", {"Ready": "True"})
        assert answer.body["next"] is None


async def test_the_fleet_is_read_page_by_page() -> None:
    async with rest_world() as world:
        for name in ("a", "b", "c", "d"):
            _add(world, name)
        seen, after = [], ""
        for _ in range(3):
            answer = await world.ask("GET", f"{FLEET_URL}?limit=2{after}")
            seen += _names(answer)
            after = f"&after={answer.body['next']}"
        assert seen == ["shop/a", "shop/b", "shop/c", "shop/d", "shop/orders"]
        assert answer.body["next"] is None
        assert (await world.ask("GET", f"{FLEET_URL}?limit=1001")).status == 400
        assert (await world.ask("GET", f"{FLEET_URL}?after=nowhere")).status == 400


async def test_r33_the_fleet_shows_the_namespaces_in_which_the_caller_may_list_topics() -> None:
    async with rest_world() as world:
        _add(world, "hidden", namespace="vault")
        assert _names(await world.ask("GET", FLEET_URL)) == ["shop/orders", "vault/hidden"]
        refused = await world.ask("GET", FLEET_URL, token=BOB)
        assert refused.status == 403
        assert "list scalabletopics" in refused.reason
    async with rest_world() as world:
        _add(world, "hidden", namespace="vault")
        world.kubernetes.denied_in = {("list", "scalabletopics", ""), ("list", "scalabletopics", "vault")}
        assert _names(await world.ask("GET", FLEET_URL)) == ["shop/orders"]


async def test_r33_only_as_many_namespaces_are_asked_about_as_fill_the_page() -> None:
    async with rest_world() as world:
        for number in range(40):
            _add(world, "t", namespace=f"n-{number:02}")
        world.kubernetes.denied_in = {("list", "scalabletopics", one) for one in ("", "n-01", "n-04")}
        first = await world.ask("GET", f"{FLEET_URL}?limit=3")
        assert _names(first) == ["n-00/t", "n-02/t", "n-03/t"]
        # n-05 tells that there are more.
        assert sorted(world.kubernetes.reviewed_in) == ["", *(f"n-0{number}" for number in range(6))]
        second = await world.ask("GET", f"{FLEET_URL}?limit=3&after={first.body['next']}")
        assert _names(second) == ["n-05/t", "n-06/t", "n-07/t"]
        asked = len(world.kubernetes.reviewed_in)
        assert _names(await world.ask("GET", f"{FLEET_URL}?limit=3")) == _names(first)
        assert len(world.kubernetes.reviewed_in) == asked, "all of that page was known"
        beyond = await world.ask("GET", f"{FLEET_URL}?after=zz/last")
        assert (beyond.status, beyond.body) == (200, {"topics": [], "next": None})


async def test_an_answer_that_the_caller_has_already_is_not_sent_again() -> None:
    async with rest_world() as world:
        for url in (FLEET_URL, TOPIC_URL, f"{TOPIC_URL}/status"):
            first = await world.ask("GET", url)
            again = await world.ask("GET", url, headers={"If-None-Match": first.headers["ETag"]})
            assert (first.status, again.status, again.body) == (200, 304, None)
            assert again.headers["ETag"] == first.headers["ETag"]
            other = await world.ask("GET", url, headers={"If-None-Match": '"another"'})
            assert (other.status, other.body) == (200, first.body)
        before = await world.ask("GET", FLEET_URL)
        _add(world, "new")
        after = await world.ask("GET", FLEET_URL, headers={"If-None-Match": before.headers["ETag"]})
        assert _names(after) == ["shop/new", "shop/orders"]


async def test_the_leaders_answer_that_is_known_is_not_sent_again_either() -> None:
    async with rest_world() as world:
        first = await world.ask("GET", f"{TOPIC_URL}/stats")
        again = await world.ask("GET", f"{TOPIC_URL}/stats", headers={"If-None-Match": first.headers["ETag"]})
        assert again.status == 304
        assert again.headers["X-Scalable-Topics-Leader"] == "r-leader"


async def test_a_topic_tells_what_was_done_and_why() -> None:
    action = {"id": "split-0", "kind": "Split", "epoch": 1, "result": "Succeeded", "reason": "msgRateIn 12 > 10"}
    async with rest_world() as world:
        body = world.topic
        world.kubernetes.set_status(body, {**body["status"], "actions": [action], "backend": "Classic"})
        world.change_topic(paused=True, segments={"initial": 2, "desired": 4})
        found = (await world.ask("GET", f"{TOPIC_URL}/status")).body
        assert (found["namespace"], found["name"], found["topic"]) == ("shop", "orders", "topic://acme/shop/orders")
        assert (found["backend"], found["paused"], found["desiredSegments"]) == ("Classic", True, 4)
        assert found["actions"] == [action]
        assert found["conditions"] == READY
        assert (found["operation"], found["reports"], found["pruning"], found["pruned"]) == (None, [], [], [])


async def test_r33_callers_are_told_which_routes_they_may_use() -> None:
    async with rest_world() as world:
        world.kubernetes.denied = {("create", "segmentoperations"), ("consume", "scalabletopics")}
        found = (await world.ask("GET", f"{TOPIC_URL}/rights")).body
        assert found["user"] == "alice"
        assert {"stats", "delete-topic", "create-subscription", "watch"} <= set(found["may"])
        assert not {"split", "merge", "migrate", "consumer-session"} & set(found["may"])
    async with rest_world() as world:
        assert {"split", "merge", "rebucket"} <= set((await world.ask("GET", f"{TOPIC_URL}/rights")).body["may"])


async def test_r32_nothing_that_writes_is_named_where_writes_are_switched_off() -> None:
    async with rest_world(writes=False) as world:
        found = (await world.ask("GET", f"{TOPIC_URL}/rights")).body
        assert "stats" in found["may"]
        assert not {"split", "delete-topic", "create-subscription"} & set(found["may"])


async def test_lines_are_made_anew_for_what_has_changed_alone() -> None:
    cache = make_cache()
    cache.observe(TOPICS, _body("a"))
    rows = FleetRows(cache)
    cache.observe(TOPICS, _body("b"))
    first = (await rows.page({"shop"}, None, 10)).rows
    assert [json.loads(row)["name"] for row in first] == ["a", "b"]
    cache.observe(TOPICS, _body("b", version=2, lastAction="Merge of 1 and 2"))
    second = (await rows.page({"shop"}, None, 10)).rows
    assert second[0] is first[0]
    assert json.loads(second[1])["lastAction"] == "Merge of 1 and 2"
    cache.remove(ObjectKey(TOPICS.plural, "shop", "a"))
    assert len((await rows.page({"shop"}, None, 10)).rows) == 1
    assert rows.lines(None) == {"shop": 1}
    assert rows.lines(("shop", "b")) == {}


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_pages_leave_nothing_out_and_tell_nothing_twice(limit: int) -> None:
    cache = make_cache()
    for number in range(6):
        cache.observe(TOPICS, _body(f"t-{number}", namespace=f"n-{number % 3}"))
    rows, after, seen = FleetRows(cache), None, []
    while True:
        page = await rows.page({"n-0", "n-2"}, after, limit)
        seen += [json.loads(row)["name"] for row in page.rows]
        after = page.last
        if after is None:
            break
    assert seen == ["t-0", "t-3", "t-2", "t-5"]


async def test_others_have_their_turn_while_a_long_page_is_written() -> None:
    cache = make_cache()
    for number in range(250):
        cache.observe(TOPICS, _body(f"t-{number:03}"))
    rows, turns = FleetRows(cache), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns == 1:
                cache.remove(ObjectKey(TOPICS.plural, "shop", "t-240"))
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    page = await rows.page({"shop"}, None, 250)
    other.cancel()
    assert turns == 2
    names = [json.loads(row)["name"] for row in page.rows]
    assert names == [f"t-{number:03}" for number in range(250) if number != 240], "one has gone meanwhile"
