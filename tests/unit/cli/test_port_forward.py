"""A port of a pod through the API server; on a real node it is in `tests/e2e/test_quickstart.py`."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from dev.pki import Authority
from scalable_topics_operator.cli.api_server import ApiServer
from scalable_topics_operator.cli.faults import Unreachable
from scalable_topics_operator.cli.gateway_access import reached
from scalable_topics_operator.cli.gateway_place import Place
from scalable_topics_operator.cli.kubernetes import TopicRef, parse_topic
from scalable_topics_operator.cli.port_forward import forwarded
from scalable_topics_operator.cluster.kube_login import KubeEndpoint

TOPIC = TopicRef(parse_topic("acme/shop/orders"), "shop/pulsar")
PLACE = Place("10.0.0.7", 8081, "pod-a")
LARGE = "x" * 300_000

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def _api_server(handler: Handler) -> AsyncIterator[ApiServer]:
    api = web.Application()
    api.router.add_get("/api/v1/namespaces/ops/pods/pod-a/portforward", handler)
    async with TestServer(api) as server:
        endpoint = KubeEndpoint(f"http://127.0.0.1:{server.port}", None, {"Authorization": "Bearer kubes"}, "shop")
        async with ApiServer(endpoint) as kube:
            yield kube


async def _begun(request: web.Request) -> web.WebSocketResponse:
    """A connection into the pod as kubelets begin it."""
    assert request.headers["Authorization"] == "Bearer kubes"
    assert request.query["ports"] == "8081"
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes([channel]) + struct.pack("<H", 8081))
    return socket


def _holding() -> tuple[asyncio.Event, Handler]:
    """A pod that takes connections and says nothing, and when it has taken one."""
    begun = asyncio.Event()

    async def hold(request: web.Request) -> web.StreamResponse:
        socket = await _begun(request)
        begun.set()
        async for _ in socket:
            pass
        return socket

    return begun, hold


def _leading_to(port: int) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        socket = await _begun(request)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def back() -> None:
            while chunk := await reader.read(65536):
                await socket.send_bytes(b"\0" + chunk)
            await socket.close()

        returning = asyncio.create_task(back())
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[0] == 0:
                writer.write(message.data[1:])
                await writer.drain()
        writer.close()
        returning.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await returning
        return socket

    return handle


@pytest.mark.parametrize("is_tls", [False, True])
async def test_the_gateway_hears_its_own_token_and_answers_through_the_pod(tmp_path: Path, is_tls: bool) -> None:
    """With a certificate for the names of a Service, too: the API server has led to the pod."""
    heard: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append((request.raw_path, request.headers.get("Authorization")))
        return web.json_response({"large": LARGE})

    gateway = web.Application()
    gateway.router.add_get("/{tail:.*}", answer)
    async with (
        _served(gateway, _tls(tmp_path) if is_tls else None) as port,
        _api_server(_leading_to(port)) as kube,
        reached(kube, "ops", replace(PLACE, is_tls=is_tls), "callers") as asked,
    ):
        answers = await asyncio.gather(*(asked.ask(TOPIC, "stats") for _ in range(5)))
    assert answers == [{"large": LARGE}] * 5
    assert heard == [("/admin/v2/scalable/acme/shop/orders/stats?connection=shop/pulsar", "Bearer callers")] * 5


@asynccontextmanager
async def _served(app: web.Application, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    yield server.port or 0
    await server.close()


def _tls(folder: Path) -> ssl.SSLContext:
    authority = Authority(folder / "pki")
    authority.create()
    pair = authority.server("gateway", "DNS:scalable-topics-gateway.scalable-topics.svc")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


async def test_questions_one_after_the_other_take_one_way_into_the_pod() -> None:
    ways: list[str] = []

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"large": LARGE})

    gateway = web.Application()
    gateway.router.add_get("/{tail:.*}", answer)
    async with _served(gateway, None) as port:
        lead = _leading_to(port)

        async def handle(request: web.Request) -> web.StreamResponse:
            ways.append(request.path)
            return await lead(request)

        async with _api_server(handle) as kube, reached(kube, "ops", PLACE, "callers") as asked:
            for _ in range(3):
                assert await asked.ask(TOPIC, "stats") == {"large": LARGE}
    assert len(ways) == 1


async def test_who_asks_a_gateway_that_is_let_go_of_is_told() -> None:
    """Others share it, who may find it useless meanwhile."""
    begun, hold = _holding()

    async with _api_server(hold) as kube:
        async with reached(kube, "ops", PLACE, "callers") as asked:
            asking = asyncio.create_task(asked.ask(TOPIC, "stats"))
            await begun.wait()
        with pytest.raises(Unreachable, match="the gateway of pod ops/pod-a broke off"):
            await asking
        with pytest.raises(Unreachable, match="the gateway of pod ops/pod-a is not asked any more"):
            await asked.ask(TOPIC, "stats")


async def test_connections_end_with_the_forwarding_and_nobody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    begun, hold = _holding()

    async with _api_server(hold) as kube:
        async with forwarded(kube, "ops", "pod-a", 8081) as forwarding:
            reader, writer = await asyncio.open_connection("127.0.0.1", forwarding.port)
            await begun.wait()
        assert await reader.read() == b""
        writer.close()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_why_a_pod_is_not_reached_is_told() -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        socket = await _begun(request)
        await socket.send_bytes(b"\1" + b"connection refused\n")
        async for _ in socket:
            pass
        return socket

    async with _api_server(refuse) as kube, reached(kube, "ops", PLACE, "callers") as asked:
        with pytest.raises(Unreachable, match=r"the gateway of pod ops/pod-a broke off: .*connection refused$"):
            await asked.ask(TOPIC, "stats")


async def test_a_user_without_the_right_is_told() -> None:
    async def forbid(_: web.Request) -> web.StreamResponse:
        raise web.HTTPForbidden

    async with _api_server(forbid) as kube, reached(kube, "ops", PLACE, "callers") as asked:
        with pytest.raises(Unreachable, match="forward port 8081 of pod ops/pod-a: 403"):
            await asked.ask(TOPIC, "stats")
