"""A WebSocket goes through a replica that does not lead its topic, to the one that does (R21)."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType, web

from dev.pki import Authority
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.gateway import forwarding as forwarding_module
from scalable_topics_operator.gateway.admission import TOPIC_PATH
from scalable_topics_operator.gateway.forwarding import FORWARDED_HEADER
from scalable_topics_operator.gateway.parts import GatewayParts, RouteMaker
from scalable_topics_operator.gateway.server import Certificate, load_certificate
from scalable_topics_operator.gateway.session_places import SessionLimits
from scalable_topics_operator.gateway.websockets import FRAME_BYTES, make_socket
from tests.unit.gateway.api_server import GOOD, ApiServer, api_server
from tests.unit.gateway.replica import Replica, replica

ECHO = "/admin/v2/scalable/acme/shop/orders/echo"


class EchoLeader:
    """Sends back what it gets, and notes what reaches it; `close 4001 why` makes it close."""

    def __init__(self) -> None:
        self.sockets: list[web.WebSocketResponse] = []
        self.closed: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        self.control: list[WSMsgType] = []
        self.received_bytes = 0
        self.may_read = asyncio.Event()
        self.may_read.set()

    def routes(self, parts: GatewayParts) -> Iterable[web.AbstractRouteDef]:
        async def handle(request: web.Request) -> web.StreamResponse:
            admitted = await parts.admission.admit(request, "get")
            leader = parts.leaders.leader_of(admitted.key)
            if leader is None or not leader.is_me:
                return await parts.forwarding.websocket(request, admitted.topic, leader, admitted.authorization)
            return await self._echo(request)

        return [web.get(TOPIC_PATH + "/echo", handle, name="echo", allow_head=False)]

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        socket = make_socket(request)
        await socket.prepare(request)
        self.sockets.append(socket)
        while True:
            await self.may_read.wait()
            message = await socket.receive()
            if message.type is WSMsgType.TEXT and message.data.startswith("close "):
                _, code, reason = message.data.split(" ", 2)
                await socket.close(code=int(code), message=reason.encode())
                return socket
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                self.received_bytes += len(message.data)
                if len(message.data) < 1000:
                    await socket.send_frame(
                        message.data.encode() if isinstance(message.data, str) else message.data, message.type
                    )
            elif message.type is WSMsgType.PING:
                self.control.append(message.type)
                await socket.pong(message.data)
            elif message.type is WSMsgType.PONG:
                self.control.append(message.type)
            else:
                reason = message.extra if message.type is WSMsgType.CLOSE else message.type.name
                self.closed.put_nowait((socket.close_code or 0, str(reason)))
                return socket


@asynccontextmanager
async def through_follower(
    certificate: Certificate | None = None, limits: SessionLimits | None = None
) -> AsyncIterator[tuple[Replica, Replica, EchoLeader, ApiServer]]:
    echo = EchoLeader()
    more: list[RouteMaker] = [echo.routes]
    async with (
        api_server() as (server, kube),
        replica(kube, certificate=certificate, more=more) as leader,
        replica(kube, certificate=certificate, more=more, limits=limits or SessionLimits()) as follower,
    ):
        leader.known.leader = Peer("r-leader", leader.gateway.address, is_me=True)
        follower.known.leader = Peer("r-leader", leader.gateway.address, is_me=False)
        yield leader, follower, echo, server


@asynccontextmanager
async def connected(
    one: Replica, token: str = GOOD, **options: object
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        session.ws_connect(f"http://{one.gateway.address}{ECHO}", **options) as socket,  # type: ignore[call-overload]
    ):
        yield socket


async def test_R21_frames_go_both_ways_as_they_are() -> None:
    async with through_follower() as (leader, follower, _, server), connected(follower) as socket:
        await socket.send_str("grüße")
        await socket.send_bytes(b"\x00\xff")
        assert (await socket.receive_str(), await socket.receive_bytes()) == ("grüße", b"\x00\xff")
        assert server.asked == {"tokenreviews": 2, "subjectaccessreviews": 2}, "the leader judges again"
        assert follower.count("scalable_topics_gateway_forwarded_total", outcome="answered") == 1
        await socket.close()
    assert follower.count("scalable_topics_gateway_requests_total", route="echo", code="101") == 1
    assert leader.count("scalable_topics_gateway_requests_total", route="echo", code="101") == 1
    # A session is no request that takes long.
    assert follower.count("scalable_topics_gateway_request_seconds_count", route="echo") == 0


async def test_pings_of_either_side_are_answered_by_the_other() -> None:
    async with through_follower() as (_, follower, echo, _), connected(follower, autoping=False) as socket:
        await socket.ping(b"there?")
        answer = await socket.receive(5)
        assert (answer.type, answer.data) == (WSMsgType.PONG, b"there?")
        await echo.sockets[0].ping(b"and you?")
        question = await socket.receive(5)
        assert (question.type, question.data) == (WSMsgType.PING, b"and you?")
        await socket.pong(question.data)
        await socket.send_str("done")
        assert await socket.receive_str(timeout=5) == "done"
        assert echo.control == [WSMsgType.PING, WSMsgType.PONG]


async def test_the_code_and_the_reason_of_a_close_reach_the_other_side() -> None:
    async with through_follower() as (_, follower, echo, _):
        async with connected(follower, autoclose=False) as socket:
            await socket.send_str("close 4403 the right was taken away")
            told = await socket.receive(5)
            assert (told.type, told.data, told.extra) == (WSMsgType.CLOSE, 4403, "the right was taken away")
        async with connected(follower) as socket:
            await socket.send_str("x")
            await socket.receive_str()
            await socket.close(code=4001, message=b"leaving")
        assert await asyncio.wait_for(echo.closed.get(), 5) == (4001, "leaving")


async def test_when_one_side_is_lost_the_other_is_sent_away() -> None:
    async with through_follower() as (leader, follower, echo, _):
        async with connected(follower) as socket:
            await socket.send_str("x")
            await socket.receive_str()
            transport = socket.get_extra_info("socket")
            assert transport is not None
            transport.shutdown(2)
        assert (await asyncio.wait_for(echo.closed.get(), 5))[0] == WSCloseCode.GOING_AWAY
        async with connected(follower) as socket:
            await socket.send_str("x")
            await socket.receive_str()
            await leader.gateway.__aexit__()
            told = await socket.receive(5)
            assert (told.type, socket.close_code) == (WSMsgType.CLOSE, WSCloseCode.GOING_AWAY)


async def test_a_replica_that_ends_sends_its_callers_to_another_at_once() -> None:
    async with through_follower() as (_, follower, echo, _), connected(follower) as socket:
        await socket.send_str("x")
        await socket.receive_str()
        began = time.monotonic()
        await asyncio.gather(follower.gateway.__aexit__(), told := asyncio.ensure_future(socket.receive(5)))
        assert (told.result().type, socket.close_code) == (WSMsgType.CLOSE, WSCloseCode.GOING_AWAY)
        assert (await asyncio.wait_for(echo.closed.get(), 5))[0] == WSCloseCode.GOING_AWAY
        assert time.monotonic() - began < 3


async def test_a_peer_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding_module, "SILENT_SECONDS", 0.3)
    async with through_follower() as (_, follower, echo, _), connected(follower) as socket:
        told = await socket.receive(5)
        assert (told.type, socket.close_code) == (WSMsgType.CLOSE, WSCloseCode.GOING_AWAY)
        assert "silent" in str(told.extra)
        assert (await asyncio.wait_for(echo.closed.get(), 5))[0] == WSCloseCode.GOING_AWAY


async def test_a_message_that_is_too_long_ends_both_sides() -> None:
    async with through_follower() as (_, follower, echo, _), connected(follower) as socket:
        await socket.send_bytes(bytes(FRAME_BYTES + 1))
        told = await socket.receive(5)
        assert (told.type, socket.close_code) == (WSMsgType.CLOSE, WSCloseCode.MESSAGE_TOO_BIG)
        assert (await asyncio.wait_for(echo.closed.get(), 5))[0] == WSCloseCode.MESSAGE_TOO_BIG
        assert echo.received_bytes == 0


async def test_what_a_leader_does_not_read_waits_at_the_caller() -> None:
    """Back-pressure: neither replica buffers more than the sockets do."""
    async with through_follower() as (_, follower, echo, _), connected(follower) as socket:
        await socket.send_str("x")
        await socket.receive_str()
        echo.may_read.clear()
        await socket.send_str("y")
        await socket.receive_str()
        chunk, sent, waits = bytes(256 * 1024), 0, False
        while not waits:
            assert sent < 64 * FRAME_BYTES
            # What is cancelled while it waits was written, too.
            sent += len(chunk)
            try:
                await asyncio.wait_for(socket.send_bytes(chunk), 1)
            except TimeoutError:
                waits = True
        echo.may_read.set()
        before = echo.received_bytes
        async with asyncio.timeout(10):
            while echo.received_bytes < sent:
                await asyncio.sleep(0.01)
        assert before < sent


_HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


async def test_a_refused_handshake_is_answered_as_the_leader_answered_it() -> None:
    async with through_follower() as (leader, follower, _, _):
        leader.known.leader = None
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {GOOD}", **_HANDSHAKE}) as session,
            session.get(f"http://{follower.gateway.address}{ECHO}") as response,
        ):
            assert (response.status, response.headers["Retry-After"]) == (503, "3")
            assert (await response.json())["reason"].startswith("no replica is known to lead")
        assert leader.count("scalable_topics_gateway_requests_total", route="echo", code="503") == 1


@pytest.mark.parametrize(
    ("leader", "headers", "status", "words"),
    [
        (None, _HANDSHAKE, 503, "no replica is known to lead"),
        (Peer("r-silent", "", is_me=False), _HANDSHAKE, 503, "--gateway-address"),
        (Peer("r-gone", "127.0.0.1:1", is_me=False), _HANDSHAKE, 503, "does not answer"),
        (
            Peer("r-other", "127.0.0.1:1", is_me=False),
            {**_HANDSHAKE, FORWARDED_HEADER: "true"},
            503,
            "has just changed its leader",
        ),
        (Peer("r-other", "127.0.0.1:1", is_me=False), {}, 400, "is a WebSocket"),
    ],
)
async def test_without_a_leader_that_can_be_asked_a_handshake_is_refused_as_any_request_is(
    leader: Peer | None, headers: dict[str, str], status: int, words: str
) -> None:
    async with through_follower() as (_, follower, _, _):
        follower.known.leader = leader
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {GOOD}", **headers}) as session,
            session.get(f"http://{follower.gateway.address}{ECHO}") as response,
        ):
            assert response.status == status
            assert ("Retry-After" in response.headers) == (status == 503)
            assert words in (await response.json())["reason"]


async def test_a_leader_that_does_not_answer_the_handshake_costs_a_bounded_time() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with through_follower() as (_, follower, _, _):
        hung = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        follower.known.leader = Peer("r-hung", f"127.0.0.1:{hung.sockets[0].getsockname()[1]}", is_me=False)
        began = time.monotonic()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with connected(follower):
                pass
        assert refused.value.status == 503
        assert time.monotonic() - began < 5
        assert follower.count("scalable_topics_gateway_forwarded_total", outcome="unreachable") == 1
        hung.close()


async def test_sockets_that_are_passed_on_count_too() -> None:
    async with through_follower(limits=SessionLimits(most=1)) as (_, follower, _, _):
        async with connected(follower) as socket:
            await socket.send_str("x")
            await socket.receive_str()
            assert follower.count("scalable_topics_gateway_sessions", kind="forwarded") == 1
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with connected(follower):
                    pass
            assert refused.value.status == 429
        async with asyncio.timeout(5):
            while follower.count("scalable_topics_gateway_sessions", kind="forwarded"):
                await asyncio.sleep(0.01)


async def test_replicas_with_a_certificate_know_each_other_by_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    certificates = []
    for name in ("shared", "other"):
        pair = authority.server(name, "DNS:gateway.example")
        certificates.append(load_certificate(str(pair.certificate), str(pair.key)))
    shared, other = certificates
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE

    async def ask(one: Replica) -> str:
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {GOOD}"}) as session,
            session.ws_connect(f"https://{one.gateway.address}{ECHO}", ssl=unchecked) as socket,
        ):
            await socket.send_str("x")
            return await socket.receive_str(timeout=5)

    async with through_follower(shared) as (leader, follower, echo, _), api_server() as (_, kube):
        assert await ask(follower) == "x"
        async with replica(kube, certificate=other, more=[echo.routes]) as stranger:
            stranger.known.leader = Peer("r-leader", leader.gateway.address, is_me=False)
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await ask(stranger)
            assert refused.value.status == 503
