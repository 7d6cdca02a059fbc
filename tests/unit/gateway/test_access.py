"""R33: Kubernetes decides who sees what; it is asked once a minute, and without its word nothing is shown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import cast

import pytest
from aiohttp import web

from scalable_topics_operator.cluster.caller import Caller
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway import access as access_module
from scalable_topics_operator.gateway.access import Access
from scalable_topics_operator.gateway.parameters import Values
from scalable_topics_operator.gateway.pulsar_tokens import PulsarTokens
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Call, RestAdmission
from scalable_topics_operator.gateway.review_cache import Kept
from scalable_topics_operator.gateway.topic_directory import TopicDirectory
from scalable_topics_operator.gateway.topic_routes import LIST_TOPICS
from tests.support.waiting import until
from tests.unit.gateway.api_server import BAD, GOOD, NO_RIGHTS, OTHER_AUDIENCE, api_server
from tests.unit.gateway.pulsar_cluster import Clusters

KEY = ObjectKey(TOPICS.plural, "shop", "orders")


class Clock:
    """Stands still until it is told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def make_access(kube: KubeClient, clock: Callable[[], float] = time.monotonic) -> Access:
    """One that knows no Pulsar cluster."""
    return Access(kube, PulsarTokens(ObjectCache(), Clusters()), clock)


async def status_of(access: Access, authorization: str | None, key: ObjectKey = KEY) -> int:
    try:
        await access.require(authorization, "get", key)
    except Refusal as refusal:
        return refusal.status
    return 200


async def test_R33_only_known_tokens_for_our_audience_with_the_right_are_let_in() -> None:
    async with api_server() as (server, kube):
        access = make_access(kube)
        assert await status_of(access, f"Bearer {GOOD}") == 200
        assert server.access["resourceAttributes"] == {
            "group": "scalabletopics.io",
            "version": "v1alpha1",
            "resource": "scalabletopics",
            "namespace": "shop",
            "name": "orders",
            "verb": "get",
        }
        assert (server.access["user"], server.access["groups"]) == ("alice", ["people"])
        assert await status_of(access, f"Bearer {BAD}") == 401
        assert await status_of(access, f"Bearer {OTHER_AUDIENCE}") == 401
        assert await status_of(access, f"bearer  {NO_RIGHTS}") == 403


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", f"Basic {GOOD}", GOOD, "Bearer t\u00f6ken"])
async def test_without_a_token_nobody_is_asked(header: str | None) -> None:
    async with api_server() as (server, kube):
        assert await status_of(make_access(kube), header) == 401
        assert not server.asked


async def test_R33_an_answer_counts_for_a_minute_and_a_refusal_for_seconds() -> None:
    async with api_server() as (server, kube):
        clock = Clock()
        access = make_access(kube, clock)
        for _ in range(3):
            assert await status_of(access, f"Bearer {GOOD}") == 200
            assert await status_of(access, f"Bearer {NO_RIGHTS}") == 403
            assert await status_of(access, f"Bearer {BAD}") == 401
        assert server.asked == {"tokenreviews": 3, "subjectaccessreviews": 2}
        # A right to one topic is none to another.
        assert await status_of(access, f"Bearer {GOOD}", ObjectKey(TOPICS.plural, "shop", "other")) == 200
        assert server.asked["subjectaccessreviews"] == 3
        clock.now += 5.0
        assert await status_of(access, f"Bearer {NO_RIGHTS}") == 403
        assert await status_of(access, f"Bearer {BAD}") == 401
        assert await status_of(access, f"Bearer {GOOD}") == 200
        assert server.asked == {"tokenreviews": 4, "subjectaccessreviews": 4}
        clock.now += 55.0
        assert await status_of(access, f"Bearer {GOOD}") == 200
        assert server.asked == {"tokenreviews": 5, "subjectaccessreviews": 5}


@pytest.mark.parametrize("verb", ["lookup", "consume", "produce", "get", "delete"])
async def test_R33_each_verb_is_a_right_of_its_own(verb: str) -> None:
    async with api_server() as (server, kube):
        access = make_access(kube)
        server.denied = {verb}
        for other in {"lookup", "consume", "produce", "get"} - {verb}:
            assert await access.require(f"Bearer {GOOD}", other, KEY) == "user alice"
        with pytest.raises(Refusal) as refused:
            await access.require(f"Bearer {GOOD}", verb, KEY)
        assert (refused.value.status, server.access["resourceAttributes"]["verb"]) == (403, verb)
        assert f"bind a Role with verb {verb} on scalabletopics.scalabletopics.io" in refused.value.reason


async def test_who_wants_to_know_better_is_answered_anew() -> None:
    async with api_server() as (server, kube):
        clock = Clock()
        access = make_access(kube, clock)

        async def require(within_seconds: float) -> None:
            await access.require(f"Bearer {GOOD}", "lookup", KEY, granted_within_seconds=within_seconds)

        await require(10.0)
        clock.now += 9.0
        await require(10.0)
        assert server.asked == {"tokenreviews": 1, "subjectaccessreviews": 1}
        clock.now += 1.0
        server.users.clear()
        with pytest.raises(Refusal):
            await require(10.0)
        assert server.asked == {"tokenreviews": 2, "subjectaccessreviews": 1}
        server.users[GOOD] = "alice"
        server.denied = {"lookup"}
        clock.now += 5.0
        with pytest.raises(Refusal):
            await require(10.0)
        assert server.asked == {"tokenreviews": 3, "subjectaccessreviews": 2}
        # What has turned out to be over counts for nobody any more.
        with pytest.raises(Refusal):
            await require(60.0)


async def test_many_requests_with_one_token_make_one_review_whoever_gives_up() -> None:
    async with api_server() as (server, kube):
        access = make_access(kube)
        server.gate.clear()
        waiting = [asyncio.create_task(status_of(access, f"Bearer {GOOD}")) for _ in range(50)]
        await until(lambda: bool(server.asked), what="the API server is asked", every_seconds=0.01)
        waiting[0].cancel()
        server.gate.set()
        assert await asyncio.gather(*waiting[1:]) == [200] * 49
        assert server.asked == {"tokenreviews": 1, "subjectaccessreviews": 1}


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
async def test_R33_without_the_api_servers_word_nothing_is_shown_and_nothing_kept(status: int) -> None:
    async with api_server() as (server, kube):
        access = make_access(kube)
        server.status = status
        assert await status_of(access, f"Bearer {GOOD}") == 503
        server.status = None
        assert await status_of(access, f"Bearer {GOOD}") == 200


async def test_an_api_server_that_hangs_costs_a_bounded_time_and_tokens_reach_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(access_module, "_REVIEW_SECONDS", 0.1)
    caplog.set_level(logging.DEBUG)
    async with api_server() as (server, kube):
        access = make_access(kube)
        server.gate.clear()
        async with asyncio.timeout(3):
            # More than are asked about at a time.
            statuses = await asyncio.gather(*(status_of(access, f"Bearer {GOOD}{number}") for number in range(20)))
        assert statuses == [503] * 20
        server.gate.set()
        assert await status_of(access, f"Bearer {GOOD}") == 200
    assert "no answer in" in caplog.text
    assert "t0ken" not in caplog.text


async def test_whoever_asks_about_hundreds_of_namespaces_keeps_nobody_waiting() -> None:
    async with api_server() as (server, kube):
        access = make_access(kube)
        assert await status_of(access, f"Bearer {GOOD}", ObjectKey(TOPICS.plural, "shop", "other")) == 200
        assert await access.caller(f"Bearer {NO_RIGHTS}")
        server.gate.clear()
        keys = [ObjectKey(TOPICS.plural, f"n-{number}", "") for number in range(300)]
        shows = asyncio.gather(*(access.shows(f"Bearer {NO_RIGHTS}", "list", key) for key in keys))
        await until(lambda: server.asked["subjectaccessreviews"] >= 3, what="two are under way", every_seconds=0.01)
        bystander = asyncio.create_task(status_of(access, f"Bearer {GOOD}"))
        await until(lambda: server.asked["subjectaccessreviews"] >= 4, what="one more is asked", every_seconds=0.01)
        # Two of the 300 were under way, and the next that came to the API server was the bystander's.
        assert server.access_names[-1] == "orders"
        server.gate.set()
        assert await bystander == 200
        assert await shows == [False] * 300


async def test_the_time_of_a_review_begins_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "_REVIEW_SECONDS", 0.4)
    async with api_server() as (server, kube):
        access = make_access(kube)
        await access.caller(f"Bearer {GOOD}")
        server.seconds = 0.1
        keys = [ObjectKey(TOPICS.plural, "shop", f"t-{number}") for number in range(80)]
        # Ten rounds of eight: they take a second together.
        assert set(await asyncio.gather(*(status_of(access, f"Bearer {GOOD}", key) for key in keys))) == {200}


async def test_R33_what_is_shown_of_a_namespace_counts_for_a_minute_either_way() -> None:
    async with api_server() as (server, kube):
        clock = Clock()
        access = make_access(kube, clock)
        key = ObjectKey(TOPICS.plural, "shop", "")

        async def shown() -> list[bool]:
            return [await access.shows(f"Bearer {token}", "list", key) for token in (GOOD, NO_RIGHTS)]

        assert await shown() == [True, False]
        clock.now += 59.0
        assert await shown() == [True, False]
        assert server.asked["subjectaccessreviews"] == 2
        clock.now += 1.0
        server.denied = {"list"}
        assert await shown() == [False, False]
        assert server.asked["subjectaccessreviews"] == 4


async def _shown(access: Access, *namespaces: str) -> set[str]:
    """As a list that somebody asks the gateway for."""
    cache = ObjectCache()
    call = Call(cast(web.Request, None), LIST_TOPICS, Values({}), Caller("alice"), f"Bearer {GOOD}")
    admission = RestAdmission(access, TopicDirectory(cache), cache)
    return await admission.shown_namespaces(call, LIST_TOPICS.rights[0], namespaces)


async def test_R33_a_list_of_nothing_is_refused_by_the_same_answer_that_left_it_empty() -> None:
    async with api_server() as (server, kube):
        clock = Clock()
        access = make_access(kube, clock)
        server.denied = {"list"}
        for _ in range(2):
            # The right that is granted meanwhile is not asked about, so that nothing is shown, and that is said.
            with pytest.raises(Refusal) as refused:
                await _shown(access, "shop", "vault")
            assert refused.value.status == 403
            assert "alice lacks the right to list scalabletopics in namespace shop" in refused.value.reason
            assert server.asked["subjectaccessreviews"] == 2
            server.denied = set()
            clock.now += 10.0
        clock.now += 40.0
        assert await _shown(access, "shop", "vault") == {"shop", "vault"}
        assert server.asked["subjectaccessreviews"] == 4


async def test_R33_a_list_of_one_namespace_is_shown_soon_after_the_right_was_granted() -> None:
    async with api_server() as (server, kube):
        clock = Clock()
        access = make_access(kube, clock)
        server.denied = {"list"}
        with pytest.raises(Refusal) as refused:
            await _shown(access, "shop")
        assert refused.value.status == 403
        assert server.asked["subjectaccessreviews"] == 1
        server.denied = set()
        clock.now += 10.0
        assert await _shown(access, "shop") == {"shop"}


async def test_ending_gives_up_what_is_being_asked() -> None:
    async with api_server() as (server, kube):
        access = make_access(kube)
        server.gate.clear()
        waiting = asyncio.create_task(status_of(access, f"Bearer {GOOD}"))
        await until(lambda: bool(server.asked), what="the API server is asked", every_seconds=0.01)
        await access.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        server.gate.set()


def test_what_is_kept_is_bounded_and_the_oldest_goes() -> None:
    kept: Kept[int, str] = Kept(60.0, 3)
    for number in range(5):
        kept.put(number, "x", float(number))
        kept.put(2, "y", float(number))
    assert [kept.get(number, 5.0) for number in range(5)] == [None, None, "y", "x", "x"]
    assert kept.get(3, 63.0) is None
