"""What replicas ask each other: with the installation's token, once, within bounds."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.gateway.peer_client import PeerClient, PeerError
from scalable_topics_operator.gateway.peer_transport import PeerTransport
from tests.unit.gateway.api_server import GOOD, api_server
from tests.unit.gateway.replica import PEER_TOKEN, replica

PULSAR = ObjectKey(CONNECTIONS.plural, "shop", "pulsar")


async def test_samples_are_read_from_the_replica_that_has_them() -> None:
    async with api_server() as (server, kube), replica(kube) as one, PeerTransport() as transport:
        one.known.samples[PULSAR] = {"sampledAt": "2026-01-01T00:00:00Z", "segments": []}
        client = PeerClient(PEER_TOKEN, transport)
        assert await client.load(one.gateway.address, PULSAR) == one.known.samples[PULSAR]
        assert await client.load(one.gateway.address, ObjectKey(CONNECTIONS.plural, "shop", "other")) is None
        assert one.count("scalable_topics_gateway_requests_total", route="load", code="200") == 1
        assert not server.asked, "peers know each other without the API server"


@pytest.mark.parametrize("token", [GOOD, PEER_TOKEN + "x", "x"])
async def test_nobody_else_reads_them(token: str) -> None:
    async with api_server() as (_, kube), replica(kube) as one, PeerTransport() as transport:
        one.known.samples[PULSAR] = {}
        with pytest.raises(PeerError, match=r"load of scalabletopicconnections shop/pulsar: replica .* answered 401"):
            await PeerClient(token, transport).load(one.gateway.address, PULSAR)


async def test_one_that_hangs_costs_a_bounded_time_and_is_asked_once() -> None:
    asked = []

    async def hang(request: web.Request) -> web.Response:
        asked.append(request.path)
        await asyncio.sleep(30)
        return web.Response()

    app = web.Application()
    app.router.add_get("/{tail:.*}", hang)
    async with TestServer(app) as server, PeerTransport(timeout_seconds=1.0) as transport:
        client = PeerClient(PEER_TOKEN, transport)
        began = time.monotonic()
        with pytest.raises(PeerError, match=r"shop/pulsar: replica at [0-9.:]+: no answer in 1 s") as error:
            await client.load(f"127.0.0.1:{server.port}", PULSAR)
        assert time.monotonic() - began < 10
        assert asked == ["/internal/load/shop/pulsar"]
        assert PEER_TOKEN not in str(error.value)


async def test_one_that_is_gone_is_said_to_be_gone() -> None:
    async with PeerTransport() as transport:
        with pytest.raises(PeerError, match=r"replica at 127\.0\.0\.1:1: ClientConnectorError"):
            await PeerClient(PEER_TOKEN, transport).load("127.0.0.1:1", PULSAR)


@pytest.mark.parametrize(
    ("response", "word"),
    [
        (web.Response(status=503), "answered 503"),
        (web.Response(status=302, headers={"Location": "/internal/load/shop/pulsar"}), "answered 302"),
        (web.Response(text="[]"), "something else than a JSON object"),
        (web.Response(text="{"), "something else than a JSON object"),
        (web.Response(body=b"x" * (65 * 1024 * 1024)), "ClientPayloadError"),
    ],
)
async def test_answers_of_no_use_are_errors_that_say_who_gave_them(response: web.Response, word: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return response

    app = web.Application()
    app.router.add_get("/{tail:.*}", answer)
    async with TestServer(app) as server, PeerTransport() as transport:
        with pytest.raises(PeerError, match=word):
            await PeerClient(PEER_TOKEN, transport).load(f"127.0.0.1:{server.port}", PULSAR)
