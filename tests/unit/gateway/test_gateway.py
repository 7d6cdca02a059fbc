"""Two replicas' gateways: who answers, who forwards, and what is said when nobody can."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.gateway.forwarding import FORWARDED_HEADER, LEADER_HEADER
from tests.unit.gateway.api_server import BAD, GOOD, NO_RIGHTS, ApiServer, api_server
from tests.unit.gateway.replica import PEER_TOKEN, Replica, replica

ORDERS = "/admin/v2/scalable/acme/shop/orders"
EXPLAIN = f"{ORDERS}/autoScale/explain"


@asynccontextmanager
async def leader_and_follower() -> AsyncIterator[tuple[Replica, Replica, ApiServer]]:
    async with api_server() as (server, kube), replica(kube) as leader, replica(kube) as follower:
        address = leader.gateway.address
        leader.known.leader = Peer("r-leader", address, is_me=True)
        leader.known.view = {"topic": "topic://acme/shop/orders"}
        follower.known.leader = Peer("r-leader", address, is_me=False)
        yield leader, follower, server


async def ask(
    one: Replica, path: str, token: str | None = GOOD, method: str = "GET", **headers: str
) -> tuple[int, Any, Any]:
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    url = f"http://{one.gateway.address}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as response:
        return response.status, await response.json(), response.headers


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize(
    ("path", "what"),
    [("/stats", "stats"), ("/autoScale/explain", "explain"), ("/autoScalePolicy/effective", "policy")],
)
async def test_the_leader_answers_whoever_is_asked(path: str, what: str) -> None:
    async with leader_and_follower() as (leader, follower, _):
        for one in (leader, follower):
            status, body, headers = await ask(one, ORDERS + path)
            assert (status, body) == (200, {"topic": "topic://acme/shop/orders"})
            assert headers[LEADER_HEADER] == "r-leader"
        assert leader.known.asked == [f"{what} scalabletopics shop/orders"] * 2
        assert follower.known.asked == []
        assert follower.count("scalable_topics_gateway_forwarded_total", outcome="answered") == 1
        assert leader.count("scalable_topics_gateway_requests_total", route=what, code="200") == 2
        assert leader.count("scalable_topics_gateway_request_seconds_count", route=what) == 2


async def test_errors_are_told_as_pulsar_does_and_in_an_order_that_tells_strangers_nothing() -> None:
    async with leader_and_follower() as (leader, follower, _):
        for one in (leader, follower):
            for path, token, expected in (
                (EXPLAIN, None, 401),
                (EXPLAIN, BAD, 401),
                ("/admin/v2/scalable/acme/shop/nothing/stats", BAD, 401),
                ("/admin/v2/scalable/acme/shop/nothing/stats", NO_RIGHTS, 404),
                ("/admin/v2/scalable/acme/shop/a%2Fb/stats", GOOD, 400),
                (f"{EXPLAIN}?connection=nonsense", GOOD, 400),
                (f"{EXPLAIN}?connection=shop/pulsar", GOOD, 200),
                (EXPLAIN, NO_RIGHTS, 403),
                ("/admin/v2/persistent/acme/shop/orders", GOOD, 404),
                ("/", None, 404),
            ):
                status, body, headers = await ask(one, path, token)
                assert status == expected, path
                assert expected == 200 or body["reason"]
                assert ("WWW-Authenticate" in headers) == (expected == 401)
            assert (await ask(one, EXPLAIN, method="POST"))[0] == 405


async def test_a_caller_is_judged_by_the_leader_again() -> None:
    """Its own Authorization header goes along, and nothing else of it."""
    async with leader_and_follower() as (_, follower, server):
        assert (await ask(follower, EXPLAIN))[0] == 200
        assert server.asked == {"tokenreviews": 2, "subjectaccessreviews": 2}


async def test_what_is_not_known_yet_is_said_by_the_leader() -> None:
    async with leader_and_follower() as (leader, follower, _):
        leader.known.view = None
        for one in (leader, follower):
            status, body, headers = await ask(one, EXPLAIN)
            assert status == 503
            assert "nothing is known yet" in body["reason"]
            assert headers["Retry-After"] == "3"
            assert headers[LEADER_HEADER] == "r-leader"


async def test_a_request_is_forwarded_once_only() -> None:
    """Two replicas that take each other for the leader do not send it to and fro."""
    async with leader_and_follower() as (first, second, _):
        first.known.leader = Peer("r-other", second.gateway.address, is_me=False)
        second.known.leader = Peer("r-leader", first.gateway.address, is_me=False)
        status, body, headers = await ask(first, EXPLAIN)
        assert status == 503
        assert "has just changed its leader" in body["reason"]
        assert "Retry-After" in headers
        assert first.count("scalable_topics_gateway_requests_total", route="explain", code="503") == 1
        assert second.count("scalable_topics_gateway_requests_total", route="explain", code="503") == 1
        assert (await ask(second, EXPLAIN, **{FORWARDED_HEADER: "true"}))[0] == 503


async def test_while_nobody_leads_or_the_leader_is_not_reached_one_is_to_come_again() -> None:
    async with leader_and_follower() as (leader, follower, _):
        hung = await asyncio.start_server(_say_nothing, "127.0.0.1", 0)
        port = hung.sockets[0].getsockname()[1]
        for peer, word in (
            (None, "no replica is known"),
            (Peer("r-silent", "", is_me=False), "--gateway-address"),
            (Peer("r-hung", f"127.0.0.1:{port}", is_me=False), "does not answer"),
            (Peer("r-gone", "127.0.0.1:1", is_me=False), "does not answer"),
        ):
            follower.known.leader = peer
            status, body, headers = await ask(follower, EXPLAIN)
            assert (status, headers["Retry-After"]) == (503, "3")
            assert word in body["reason"]
        assert follower.count("scalable_topics_gateway_forwarded_total", outcome="unreachable") == 2
        hung.close()
        assert leader.known.asked == []


async def test_views_that_do_not_exist_yet_answer_as_not_known_and_one_that_fails_ends_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    async with api_server() as (_, kube), replica(kube, without=True) as bare, replica(kube) as failing:
        for one in (bare, failing):
            one.known.leader = Peer("me", one.gateway.address, is_me=True)
        assert (await ask(bare, EXPLAIN))[0] == 503
        assert (await ask(bare, "/internal/load/shop/pulsar", PEER_TOKEN))[0] == 503
        failing.known.view = {"topic": object()}
        status, body, _ = await ask(failing, EXPLAIN)
        assert (status, body["reason"]) == (500, "unexpected; the operator's log says more")
    assert "unexpected, at GET" in caplog.text
    assert "t0ken" not in caplog.text
