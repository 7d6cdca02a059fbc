"""Callers who hang up before they are answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from scalable_topics_operator.gateway.app import make_app
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.support.waiting import until

_Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
_REQUEST = (
    b"GET /session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@asynccontextmanager
async def _served(handler: _Answer, metrics: Metrics) -> AsyncIterator[int]:
    """Serve it as the gateway does; aiohttp's test server would cancel the handler when its caller goes."""
    runner = web.AppRunner(make_app([web.get("/session", handler)], metrics))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _answer_late(request: web.Request) -> web.StreamResponse:
    return web.json_response({"topic": "t"})


async def _open_session(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    return socket


async def _write(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"x")
    return response


@pytest.mark.timeout(20)
@pytest.mark.parametrize("answer", [_answer_late, _open_session, _write])
async def test_whoever_hangs_up_is_no_fault_of_ours(answer: _Answer, caplog: pytest.LogCaptureFixture) -> None:
    """A replica that was stopped for a while finds many of them when it goes on (seen in a soak)."""
    caplog.set_level(logging.DEBUG)
    arrived, done = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await until(lambda: request.transport is None, what="the caller is gone")
        try:
            return await answer(request)
        finally:
            done.set()

    async with _served(handle, metrics := Metrics()) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_REQUEST)
        await arrived.wait()
        writer.transport.abort()
        await done.wait()
        requests = "scalable_topics_gateway_requests_total"
        await until(lambda: _count(metrics, requests) == 1, what="it is counted")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("answer", [_open_session, _write])
async def test_whoever_is_seen_to_be_gone_while_we_answer_is_none_either(
    answer: _Answer, caplog: pytest.LogCaptureFixture
) -> None:
    """A write that fails ends the connection, and aiohttp is told of that a turn of the event loop later."""
    caplog.set_level(logging.DEBUG)

    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return await answer(request)

    async with _served(handle, metrics := Metrics()) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_REQUEST)
        requests = "scalable_topics_gateway_requests_total"
        await until(lambda: _count(metrics, requests) == 1, what="it is counted")
        writer.close()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_connection_of_ours_that_breaks_is_one(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        raise ConnectionResetError("to another server")

    async with _served(handle, Metrics()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_REQUEST)
        assert b" 500 " in await reader.readline()
        writer.close()
    assert "unexpected, at GET /session" in caplog.text


def _count(metrics: Metrics, name: str) -> float:
    return sum(
        sample.value for family in metrics.registry.collect() for sample in family.samples if sample.name == name
    )
