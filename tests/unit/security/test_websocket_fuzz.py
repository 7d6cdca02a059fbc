"""What clients say in watch and consumer sessions: nothing of it makes the gateway fail, wait or grow without bound."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given

from scalable_topics.layout import Part, SegmentLayout
from scalable_topics_operator.assignment.group import Group
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.consumer_sessions import ConsumerSessions, Membership
from scalable_topics_operator.controllers.session_room import MOST_HINTS, MOST_SAID, Outlet, Registration, Room
from scalable_topics_operator.gateway.consumer_sessions import ConsumerSessionRoutes
from scalable_topics_operator.gateway.parts import GatewayParts
from tests.support.hostile import NESTED_TEXTS, OTHER_TEXTS, fuzzing, randomness, text_of
from tests.unit.controllers.test_session_room import Wire
from tests.unit.gateway import rest_world as rest_world_module
from tests.unit.gateway.model_kubernetes import ALICE
from tests.unit.gateway.rest_world import TOPIC_URL, RestWorld, rest_world
from tests.unit.gateway.watch_gate import gate

SESSION = f"{TOPIC_URL}/subscriptions/billing/session"
LAYOUT = SegmentLayout.initial(2)
REGISTER: dict[str, Any] = {
    "type": "register",
    "consumer": "c1",
    "incarnation": "i1",
    "resume": True,
    "kind": "Stream",
    "initialPosition": "Earliest",
    "sharesSegments": True,
    "holds": [0],
    "holdsBuckets": [{"segment": 1, "buckets": [0, 1]}],
}
SAID: list[dict[str, Any]] = [
    {"type": "released", "segments": [0], "buckets": [{"segment": 1, "buckets": [0]}]},
    {"type": "drained", "segments": [1], "buckets": []},
    {"type": "leave"},
    {"type": "of a later release", "x": [1]},
]
# As they go over a socket, of which the first byte tells the kind and the second the length: broken in every way.
RAW_FRAMES = (
    b"\xf1\x80\x00\x00\x00\x00",
    b"\x83\x80\x00\x00\x00\x00",
    b"\x81\x05hello",
    b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\x80\x85\x00\x00\x00\x00hello",
    b"\x01\x85\x00\x00\x00\x00hello" * 50,
    b"\x89\xfe\x00\xff\x00\x00\x00\x00" + b"p" * 255,
    b"\x88\x81\x00\x00\x00\x00\x03",
    b"\x88\x82\x00\x00\x00\x00\x00\x00",
    b"\x81\x82\x00\x00\x00\x00\xff\xfe",
    b"GET / HTTP/1.1\r\n\r\n",
)


class OneRoom:
    """Registers everybody in a room in memory, as the coordinator does. Implements `ConsumerSessions`."""

    def __init__(self) -> None:
        self.room = Room(60.0, 30.0)
        self.group = Group()

    async def register(
        self, topic: ObjectKey, subscription: str, registration: Registration, outlet: Outlet
    ) -> Membership | None:
        session = self.room.enter(registration, outlet, self.group, "2026-01-01T00:00:00Z")
        self._commit()
        if session is None:
            return None
        outlet.send({"type": "registered"})
        return Membership(self.room, session, self._commit, lambda: 0.0)

    def _commit(self) -> None:
        for change in self.room.said:
            self.group = change(self.group)
        self.room.said.clear()
        self.group = self.group.settle(LAYOUT, 1)
        self.room.watch(self.group, 0.0)
        # What is committed is written as JSON.
        for member in self.group.members.values():
            json.dumps([member.name, member.incarnation, sorted(member.assigned), sorted(member.releasing)]).encode()


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RestWorld]:
    def routes(parts: GatewayParts) -> Iterable[web.AbstractRouteDef]:
        return ConsumerSessionRoutes(parts, cast(ConsumerSessions, OneRoom())).routes()

    monkeypatch.setattr(rest_world_module, "_consumer_sessions", routes)
    async with rest_world() as world:
        yield world


async def _converse(http: aiohttp.ClientSession, url: str, frames: Iterable[bytes]) -> None:
    """Say all of it, and wait for the end, or for an answer to a last frame that is right."""
    async with asyncio.timeout(10), http.ws_connect(url) as socket:
        try:
            for frame in frames:
                try:
                    await socket.send_str(frame.decode())
                except UnicodeDecodeError:
                    await socket.send_frame(frame, aiohttp.WSMsgType.TEXT)
            await socket.send_str('{"type":"leave"}')
        except aiohttp.ClientConnectionResetError:
            return
        async for message in socket:
            assert json.loads(message.data)["type"] in ("registered", "refused", "left")


def _no_failure(caplog: pytest.LogCaptureFixture) -> None:
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("begins_well", [False, True])
def test_consumers_say_anything(
    begins_well: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with asyncio.Runner() as runner:
        context = serving(monkeypatch)
        world = runner.run(context.__aenter__())
        url = f"http://{world.replica.gateway.address}{SESSION}"
        headers = {"Authorization": f"Bearer {ALICE}"}
        http = runner.run(_opened(headers))

        @fuzzing(25)
        @given(randomness)
        def check(rng: random.Random) -> None:
            first = json.dumps(REGISTER).encode() if begins_well else text_of(rng, REGISTER)
            runner.run(_converse(http, url, [first, *(text_of(rng, rng.choice(SAID)) for _ in range(5))]))

        check()
        for text in (*NESTED_TEXTS, *OTHER_TEXTS):
            runner.run(_converse(http, url, [text]))
        # Whoever does as it should is served as before.
        runner.run(_converse(http, url, [json.dumps(REGISTER).encode()]))
        runner.run(http.close())
        runner.run(context.__aexit__(None, None, None))
    _no_failure(caplog)


async def _opened(headers: dict[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers=headers)


@pytest.mark.parametrize("path", [SESSION, f"{TOPIC_URL}/watch"])
async def test_frames_that_are_none(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes as they go over the socket; the gateway closes, and serves the next one."""
    async with serving(monkeypatch) as world:
        host, _, port = world.replica.gateway.address.rpartition(":")
        for raw in RAW_FRAMES:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {ALICE}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
            )
            assert b" 101 " in await reader.readline()
            writer.write(raw)
            writer.write_eof()
            async with asyncio.timeout(10):
                await reader.read()
            writer.close()
    _no_failure(caplog)


async def test_watchers_say_anything(caplog: pytest.LogCaptureFixture) -> None:
    async with gate() as one, one.watching() as quiet:
        for text in (*NESTED_TEXTS, *OTHER_TEXTS, b"x" * 5000):
            async with one.watching() as socket:
                await socket.receive_json(timeout=5)
                await socket.send_frame(text, aiohttp.WSMsgType.TEXT)
                await socket.close()
        assert (await quiet.receive_json(timeout=5))["type"] == "layout"
    _no_failure(caplog)


def test_nobody_fills_the_memory_with_what_is_said() -> None:
    """While nothing can be committed, and by segments that do not exist."""
    room, wire = Room(60.0, 30.0), Wire()
    session = room.enter(Registration("c1", "i1", False), wire, Group(), "")
    assert session is not None
    for number in range(MOST_SAID + 10):
        room.released(session, [Part(number)])
    assert (len(room.said), wire.refusals[0]) == (MOST_SAID, (503, False))
    late = Wire()
    assert room.enter(Registration("c2", "i1", False), late, Group(), "") is None
    assert late.refusals == [(503, False)]
    room.drained(Part(number) for number in range(10 * MOST_HINTS))
    assert len(room.hints) == MOST_HINTS
