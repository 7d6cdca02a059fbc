"""R33: a token of Pulsar is judged by the topic's own cluster, and shown to nobody else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway.access import Access
from scalable_topics_operator.gateway.admission import TOPIC_PATH
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.pulsar_tokens import PulsarTokens
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.gateway.api_server import GOOD, ApiServer, api_server
from tests.unit.gateway.pulsar_cluster import (
    CLIENT,
    OUTSIDER,
    PULSAR,
    UNKNOWN,
    Clusters,
    PulsarCluster,
    pulsar_cluster,
)
from tests.unit.gateway.replica import replica
from tests.unit.gateway.test_access import Clock
from tests.unit.gateway.topics import KEY, created, topic_body

LOOKUP_PATH = "/lookup/v2/topic/persistent/acme/shop/orders-segment-0000-ffff-0"


@asynccontextmanager
async def world(
    clock: Clock | None = None, state: TopicState | None = None
) -> AsyncIterator[tuple[Access, PulsarCluster, ApiServer, Clusters]]:
    cache = ObjectCache()
    cache.observe(TOPICS, topic_body(state or created()))
    async with api_server() as (server, kube), pulsar_cluster(kube) as (cluster, clusters):
        yield make(kube, cache, clusters, clock or Clock()), cluster, server, clusters


def make(kube: KubeClient, cache: ObjectCache, clusters: Clusters, clock: Clock) -> Access:
    return Access(kube, PulsarTokens(cache, clusters, clock), clock)


async def outcome(access: Access, token: str, verb: str = "lookup", within_seconds: float = 60.0) -> int:
    try:
        await access.require(f"Pulsar {token}", verb, KEY, granted_within_seconds=within_seconds)
    except Refusal as refusal:
        return refusal.status
    return 200


async def test_R33_it_is_judged_by_a_lookup_of_a_segment_made_with_it() -> None:
    async with world() as (access, cluster, server, _):
        assert await outcome(access, CLIENT) == 200
        assert cluster.paths == [LOOKUP_PATH]
        assert await outcome(access, UNKNOWN) == 401
        assert await outcome(access, OUTSIDER) == 403
        assert cluster.asked == {CLIENT: 1, UNKNOWN: 1, OUTSIDER: 1}
        assert not server.asked


@pytest.mark.parametrize("verb", ["produce", "get", "list", "create", "update", "patch", "delete"])
async def test_R33_it_is_good_for_lookup_and_consume_only(verb: str) -> None:
    async with world() as (access, cluster, server, _):
        assert await outcome(access, CLIENT, "consume") == 200
        with pytest.raises(Refusal, match=f"good to lookup and to consume only; to {verb}, send") as refused:
            await access.require(f"Pulsar {CLIENT}", verb, KEY)
        assert refused.value.status == 403
        with pytest.raises(Refusal, match="good to lookup and to consume only"):
            await access.recognize(f"Pulsar {CLIENT}", verb)
        assert sum(cluster.asked.values()) == 1
        assert not server.asked


async def test_R33_no_token_is_shown_to_the_other_side() -> None:
    async with world() as (access, cluster, server, _):
        await access.require(f"Bearer {GOOD}", "lookup", KEY)
        await access.require(f"pulsar {CLIENT}", "lookup", KEY)
        # A token of one kind that is sent as the other is no good, and is seen by that other one alone.
        with pytest.raises(Refusal):
            await access.require(f"Bearer {CLIENT}1", "lookup", KEY)
        assert await outcome(access, f"{GOOD}1") == 401
        assert cluster.asked == {CLIENT: 1, f"{GOOD}1": 1}
        heard = "\n".join(server.heard)
        assert GOOD in heard
        assert f"{CLIENT}1" in heard
        assert f"{CLIENT}" not in heard.replace(f"{CLIENT}1", "")
        assert f"{GOOD}1" not in heard


async def test_R33_an_answer_counts_for_a_minute_a_refusal_for_seconds_and_neither_for_another_connection() -> None:
    clock = Clock()
    async with world(clock) as (access, cluster, _, clusters):
        for _ in range(3):
            assert await outcome(access, CLIENT, "lookup") == 200
            assert await outcome(access, CLIENT, "consume") == 200
            assert await outcome(access, OUTSIDER) == 403
        assert cluster.asked == {CLIENT: 1, OUTSIDER: 1}
        clock.now += 5.0
        cluster.may.add(OUTSIDER)
        assert await outcome(access, OUTSIDER) == 200
        cluster.may.discard(CLIENT)
        assert await outcome(access, CLIENT) == 200
        assert await outcome(access, CLIENT, within_seconds=5.0) == 401
        clusters.handles[PULSAR].generation += 1
        cluster.may.discard(OUTSIDER)
        assert await outcome(access, OUTSIDER) == 403


async def test_many_requests_with_one_token_make_one_lookup() -> None:
    async with world() as (access, cluster, _, _):
        assert await asyncio.gather(*(outcome(access, CLIENT) for _ in range(50))) == [200] * 50
        assert cluster.asked == {CLIENT: 1}


async def test_without_the_clusters_word_nobody_is_let_in_and_nothing_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with world() as (access, cluster, _, clusters):
        cluster.status = 503
        assert await outcome(access, CLIENT) == 503
        cluster.status = 404
        assert await outcome(access, CLIENT) == 503
        cluster.status = None
        assert await outcome(access, CLIENT) == 200
        handle = clusters.handles.pop(PULSAR)
        assert await outcome(access, OUTSIDER) == 503
        clusters.handles[PULSAR] = handle
        assert await outcome(access, OUTSIDER) == 403
    async with world(state=TopicState()) as (access, cluster, _, _):
        assert await outcome(access, CLIENT) == 503
        assert not cluster.asked
    assert "judging a token of Pulsar failed" in caplog.text
    assert "t0ken" not in caplog.text


def _look_route(parts: GatewayParts) -> Iterable[web.AbstractRouteDef]:
    async def handle(request: web.Request) -> web.StreamResponse:
        admitted = await parts.admission.admit(request, "lookup")
        leader = parts.leaders.leader_of(admitted.key)
        if leader is None or not leader.is_me:
            return await parts.forwarding.http(request, admitted.topic, leader, admitted.authorization)
        return web.json_response({"caller": admitted.caller})

    return [web.get(TOPIC_PATH + "/look", handle, name="look", allow_head=False)]


async def test_R33_whoever_nobody_knows_learns_not_even_which_topics_there_are() -> None:
    async with (
        api_server() as (server, kube),
        pulsar_cluster(kube) as (_, clusters),
        replica(kube, clusters=clusters, more=[_look_route]) as one,
        aiohttp.ClientSession(f"http://{one.gateway.address}") as session,
    ):
        one.known.leader = Peer("me", one.gateway.address, is_me=True)

        async def ask(topic: str, token: str, what: str = "look") -> tuple[int, str]:
            headers = {"Authorization": f"Pulsar {token}"}
            async with session.get(f"/admin/v2/scalable/acme/shop/{topic}/{what}", headers=headers) as response:
                body = await response.json()
                return response.status, body.get("reason") or body.get("caller")

        assert (await ask("orders", CLIENT))[0] == 200
        unknown = await ask("orders", UNKNOWN)
        assert unknown[0] == 401
        # Neither what there is not, nor which of several it is.
        assert await ask("nothing", UNKNOWN) == unknown
        assert await ask("nothing", CLIENT) == unknown
        one.cache.observe(TOPICS, topic_body(created(), name="twin", uid="uid-2", connection="other"))
        assert await ask("orders", UNKNOWN) == unknown
        assert await ask("orders", CLIENT) == unknown
        assert (await ask("orders", CLIENT, "look?connection=shop/pulsar"))[0] == 200
        status, reason = await ask("orders", CLIENT, "stats")
        assert (status, "good to lookup and to consume only" in reason) == (403, True)
        assert not server.asked


async def test_a_leader_judges_a_forwarded_token_again_by_the_same_cluster() -> None:
    async with (
        api_server() as (server, kube),
        pulsar_cluster(kube) as (cluster, clusters),
        replica(kube, clusters=clusters, more=[_look_route]) as leader,
        replica(kube, clusters=clusters, more=[_look_route]) as follower,
        aiohttp.ClientSession(f"http://{follower.gateway.address}") as session,
    ):
        leader.known.leader = Peer("r", leader.gateway.address, is_me=True)
        follower.known.leader = Peer("r", leader.gateway.address, is_me=False)
        headers = {"Authorization": f"Pulsar {CLIENT}"}
        async with session.get("/admin/v2/scalable/acme/shop/orders/look", headers=headers) as response:
            assert response.status == 200
            # By what a caller is counted tells nothing of the token.
            assert CLIENT not in (await response.json())["caller"]
        assert cluster.asked == {CLIENT: 2}
        assert not server.asked
