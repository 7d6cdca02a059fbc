"""Passing requests on to the replica that leads their topic: once, with the caller's own Authorization header."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

import aiohttp
from aiohttp import WSMsgType, web

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.gateway.peer_transport import PeerAnswer, PeerRefused, PeerTransport, PeerUnreachable
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.session_places import SessionKind, SessionPlaces
from scalable_topics_operator.gateway.websockets import (
    CLOSE_SECONDS,
    SILENT_SECONDS,
    CloseCode,
    all_ended,
    close_reason,
    close_socket,
    make_socket,
)
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

LEADER_HEADER = "X-Scalable-Topics-Leader"
FORWARDED_HEADER = "X-Scalable-Topics-Forwarded"
_ANSWERED, _UNREACHABLE = "answered", "unreachable"
_PASSED_ON = ("Content-Type", "Retry-After", "WWW-Authenticate", "Allow", LEADER_HEADER)
# Codes that a peer reports when none was sent.
_NO_CODES = frozenset({1005, 1006, 1015})

Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse
Ending = tuple[int, str]
"""Code and reason with which a socket is closed."""


class Forwarding:
    """Passes requests on to leaders.

    Args:
        transport: reaches other replicas.
        places: how many WebSockets there may be.
        metrics: count what is passed on.
    """

    def __init__(self, transport: PeerTransport, places: SessionPlaces, metrics: Metrics) -> None:
        self._transport = transport
        self._places = places
        self._metrics = metrics
        for outcome in (_ANSWERED, _UNREACHABLE):
            # From the beginning, so that the first is seen to be one more than none.
            metrics.gateway_forwarded.labels(outcome)
        self._sockets: dict[web.WebSocketResponse, web.Request] = {}

    async def http(
        self,
        request: web.Request,
        topic: TopicName,
        leader: Peer | None,
        authorization: str,
        more_seconds: float = 0.0,
    ) -> web.StreamResponse:
        """The leader's answer to a request without a body.

        Args:
            request: the caller's.
            topic: what it is about.
            leader: of that topic, another replica; None while nobody is known to lead it.
            authorization: the caller's header, by which the leader judges again.
            more_seconds: how long the leader may take for the work itself.

        Raises Refusal: 503 where no leader can be asked.
        """
        address, headers = _destination(request, topic, leader, authorization)
        try:
            answer = await self._transport.send(
                request.method, address, request.rel_url.raw_path_qs, headers, more_seconds
            )
        except PeerUnreachable as error:
            raise self._unreachable(topic, error) from None
        return self._passed_on(answer)

    async def websocket(
        self, request: web.Request, topic: TopicName, leader: Peer | None, authorization: str
    ) -> web.StreamResponse:
        """A WebSocket of the caller with the leader through this replica, until one of the two ends it.

        Frames go through as they come, pings and pongs too, so that each end finds out by itself whether the other is
        still there; neither is read faster than the other takes it. The code and the reason with which one of them
        closes reach the other; a lost connection, a silent peer and the end of this replica are 1001.

        Args:
            request: the caller's handshake.
            topic: what it is about.
            leader: of that topic, another replica; None while nobody is known to lead it.
            authorization: the caller's header, by which the leader judges again.

        Returns the socket once it has ended, or what the leader answered to the handshake if it refused it.
        Raises Refusal: 400 for what is no handshake, 429, 503 where no leader can be asked.
        """
        outer = make_socket(request)
        address, headers = _destination(request, topic, leader, authorization)
        self._places.take(SessionKind.FORWARDED)
        try:
            return await self._pass_on(request, outer, topic, address, headers)
        finally:
            self._places.give_back(SessionKind.FORWARDED)

    async def close(self) -> None:
        """Send everybody away, to another replica."""
        await all_ended(
            (request, close_socket(request, socket, CloseCode.GOING_AWAY)) for socket, request in self._sockets.items()
        )

    async def _pass_on(
        self,
        request: web.Request,
        outer: web.WebSocketResponse,
        topic: TopicName,
        address: str,
        headers: Mapping[str, str],
    ) -> web.StreamResponse:
        try:
            inner = await self._transport.websocket(address, request.rel_url.raw_path_qs, headers)
        except PeerUnreachable as error:
            raise self._unreachable(topic, error) from None
        except PeerRefused as refused:
            return self._passed_on(refused.answer)
        self._metrics.gateway_forwarded.labels(_ANSWERED).inc()
        ending: Ending = (CloseCode.GOING_AWAY, "")
        try:
            # Without the caller, who may have left meanwhile, there is nothing to pass on.
            with suppress(ConnectionResetError):
                await outer.prepare(request)
                self._sockets[outer] = request
                ending = await _until_ended(outer, inner)
        finally:
            self._sockets.pop(outer, None)
            await _close_both(request, outer, inner, *ending)
        return outer

    def _unreachable(self, topic: TopicName, error: PeerUnreachable) -> Refusal:
        self._metrics.gateway_forwarded.labels(_UNREACHABLE).inc()
        logger.info("forwarding a request for %s to its leader: %s", topic, error)
        return Refusal(503, f"the leader of {topic} does not answer; try again")

    def _passed_on(self, answer: PeerAnswer) -> web.Response:
        self._metrics.gateway_forwarded.labels(_ANSWERED).inc()
        headers = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=headers)


def _destination(
    request: web.Request, topic: TopicName, leader: Peer | None, authorization: str
) -> tuple[str, dict[str, str]]:
    """Where the leader is, and what it is sent along. Raises Refusal: 503."""
    if leader is None:
        raise Refusal(503, f"no replica is known to lead {topic} now; try again")
    if FORWARDED_HEADER in request.headers:
        raise Refusal(503, f"{topic} has just changed its leader; try again")
    if not leader.address:
        raise Refusal(503, f"the leader of {topic} does not say where its gateway is; set --gateway-address there")
    return leader.address, {"Authorization": authorization, FORWARDED_HEADER: "true"}


async def _until_ended(outer: Socket, inner: Socket) -> Ending:
    """Pass frames both ways until one side ends; answers how."""
    pumps = [asyncio.create_task(_pump(outer, inner)), asyncio.create_task(_pump(inner, outer))]
    try:
        done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
    return next(iter(done)).result()


async def _pump(source: Socket, target: Socket) -> Ending:
    while True:
        try:
            message = await source.receive(SILENT_SECONDS)
        except TimeoutError:
            return CloseCode.GOING_AWAY, f"the other side was silent for {SILENT_SECONDS:g} s"
        try:
            if message.type is WSMsgType.TEXT:
                await target.send_str(message.data)
            elif message.type in (WSMsgType.BINARY, WSMsgType.PING, WSMsgType.PONG):
                await target.send_frame(message.data, message.type)
            elif message.type is WSMsgType.CLOSE:
                return (CloseCode.GOING_AWAY if message.data in _NO_CODES else message.data), str(message.extra or "")
            elif message.type is WSMsgType.ERROR and isinstance(message.data, aiohttp.WebSocketError):
                return message.data.code, str(message.data)
            else:
                return CloseCode.GOING_AWAY, "the other side is gone"
        except (aiohttp.ClientError, OSError):
            return CloseCode.GOING_AWAY, "the other side is gone"


async def _close_both(
    request: web.Request, outer: web.WebSocketResponse, inner: aiohttp.ClientWebSocketResponse, code: int, reason: str
) -> None:
    async def close_inner() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * CLOSE_SECONDS):
                await inner.close(code=code, message=close_reason(reason))

    # Together, as nobody waits for one that does not answer.
    await asyncio.gather(close_inner(), *([close_socket(request, outer, code, reason)] if outer.prepared else []))
