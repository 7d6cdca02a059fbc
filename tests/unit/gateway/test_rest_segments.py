"""R32: single segments are read through REST, and written by the operator alone."""

from __future__ import annotations

import pytest

from scalable_topics_operator.operations.errors import BackendUnavailable
from tests.unit.gateway.rest_world import SEGMENT_URL, TOPIC_URL, look, rest_world
from tests.unit.gateway.topics import created, split


async def test_a_segments_record_is_that_of_its_topic() -> None:
    async with rest_world() as world:
        world.change_topic(split(created(2), 0))
        record = (await world.ask("GET", TOPIC_URL)).body["segments"]
        for segment_id, descriptor in (("0", "0000-7fff-0"), ("1", "8000-ffff-1"), ("2", "0000-3fff-2")):
            answer = await world.ask("GET", f"/admin/v2/segments/acme/shop/orders/{descriptor}")
            assert (answer.status, answer.body) == (200, record[segment_id])


async def test_a_segments_cursors_are_as_its_broker_shows_them() -> None:
    async with rest_world() as world:
        for topic in world.brokers.looks:
            world.brokers.looks[topic] = look(consumers=2, cursors=("billing", "audit"))
        answer = await world.ask("GET", f"{SEGMENT_URL}/subscriptions")
        assert (answer.status, list(answer.body)) == (200, ["audit", "billing"])
        assert answer.body["billing"] == {"backlog": 5, "markDelete": "3:4", "consumers": 2, "counts": True}
        answer = await world.ask("GET", f"{SEGMENT_URL}/subscription/billing/backlog")
        assert (answer.status, answer.body) == (200, 5)
        answer = await world.ask("GET", f"{SEGMENT_URL}/subscription/nobody/backlog")
        assert (answer.status, answer.reason) == (404, "segment 0 has no cursor of subscription nobody")


@pytest.mark.parametrize(
    ("descriptor", "status", "words"),
    [
        ("0000-7fff-9", 404, "there is no segment 0000-7fff-9"),
        ("0000-7ffe-0", 404, "there is no segment 0000-7ffe-0"),
        ("0000-7fff", 400, "must be like"),
        ("0000-7FFF-0", 400, "must be like"),
        ("0000-7fff-00", 400, "must be like"),
    ],
)
async def test_a_segment_is_named_in_full(descriptor: str, status: int, words: str) -> None:
    async with rest_world() as world:
        answer = await world.ask("GET", f"/admin/v2/segments/acme/shop/orders/{descriptor}")
        assert (answer.status, words in answer.reason) == (status, True)


async def test_what_the_brokers_do_not_tell_is_not_told() -> None:
    async with rest_world() as world:
        assert (await world.ask("GET", f"{SEGMENT_URL}/subscriptions")).body == {}
        del world.brokers.looks[next(topic for topic in world.brokers.looks if topic.endswith("0000-7fff-0"))]
        answer = await world.ask("GET", f"{SEGMENT_URL}/subscriptions")
        assert (answer.status, "segment 0 of topic://acme/shop/orders has no topic" in answer.reason) == (404, True)
        world.brokers.error = BackendUnavailable("no answer")
        answer = await world.ask("GET", f"{SEGMENT_URL}/subscriptions")
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
        world.replica.known.leader = None
        assert (await world.ask("GET", SEGMENT_URL)).status == 200, "the record is the cache's, on any replica"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/terminate"),
        ("PUT", "/subscription/billing"),
        ("DELETE", "/subscription/billing"),
        ("POST", "/subscription/billing/seek"),
        ("POST", "/subscription/billing/skip-all"),
    ],
)
async def test_r32_segments_are_written_by_the_operator_alone(method: str, path: str) -> None:
    async with rest_world() as world:
        answer = await world.ask(method, SEGMENT_URL + path)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET")
        assert "split, merge and rebucket" in answer.reason
        assert world.kubernetes.acted == []
