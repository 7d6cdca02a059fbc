"""WebSocket sessions of callers: their bounds, their heartbeat, the rights they rest on, and their end.

Made for ten thousand idle ones: a session has one task, which waits for its client, and another only while something
is being sent; heartbeats and rights are looked after by one task for all.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress

import aiohttp
from aiohttp import WSMsgType, web

from scalable_topics_operator.gateway.access import Access
from scalable_topics_operator.gateway.admission import Admitted
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.session_places import SessionKind, SessionPlaces
from scalable_topics_operator.gateway.websockets import (
    CLOSE_SECONDS,
    FRAME_BYTES,
    SILENT_SECONDS,
    CloseCode,
    all_ended,
    close_socket,
    make_socket,
)
from scalable_topics_operator.telemetry.metrics import Metrics

WAITING_FRAMES = 16
"""A client that lets so many wait is sent away."""

_LOOK_SECONDS = 1.0
_SESSIONS_AT_ONCE = 100
_PING_SECONDS = (8.0, 12.0)
# With the age of an answer below, a right that is taken away ends a session within a minute (R33).
_JUDGE_SECONDS = (40.0, 50.0)
_ANSWER_SECONDS = 8.0
_JUDGE_AGAIN_SECONDS = (2.0, 6.0)


class Session:
    """One caller's WebSocket, which `Sessions.open` has begun and `Sessions.leave` ends."""

    __slots__ = (
        "_admitted",
        "_ending",
        "_kind",
        "_metrics",
        "_sender",
        "_sent",
        "_socket",
        "_verb",
        "_waiting",
        "heard_at_seconds",
        "judge_at_seconds",
        "ping_at_seconds",
        "request",
    )

    def __init__(
        self,
        request: web.Request,
        socket: web.WebSocketResponse,
        admitted: Admitted,
        kind: SessionKind,
        verb: str,
        metrics: Metrics,
    ) -> None:
        self.request = request
        self._socket = socket
        self._admitted = admitted
        self._kind = kind
        self._verb = verb
        self._metrics = metrics
        self._sent = metrics.gateway_session_frames.labels(kind)
        # Frames to be sent; None is a ping.
        self._waiting: list[bytes | None] = []
        self._sender: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        # Of `Sessions`, and monotonic.
        self.heard_at_seconds = self.ping_at_seconds = self.judge_at_seconds = 0.0

    @property
    def response(self) -> web.StreamResponse:
        """What the request's handler is to return in the end."""
        return self._socket

    @property
    def is_ending(self) -> bool:
        """Whether it is being closed from this side."""
        return self._ending is not None

    def send(self, frame: bytes) -> None:
        """Send a text frame, without waiting for the client. One that lets 16 of them wait is sent away (1013)."""
        if self._ending is not None:
            return
        if len(self._waiting) >= WAITING_FRAMES:
            self.end(CloseCode.TRY_AGAIN_LATER, "frames were not taken fast enough; come again", dropped="slow")
            return
        self._waiting.append(frame)
        self._begin_sending()

    def end(self, code: int, reason: str, *, dropped: str = "") -> None:
        """Close the socket, after what waits to be sent, in bounded time; `Session.receive` answers None.

        Args:
            code: of the close frame.
            reason: in it, as far as it fits.
            dropped: why, for the metrics; empty if it is no fault of the client's or its right's.
        """
        if self._ending is None:
            if dropped:
                self._metrics.gateway_sessions_dropped.labels(self._kind, dropped).inc()
            self._ending = asyncio.create_task(self._end(code, reason))

    async def receive(self) -> str | None:
        """The client's next text frame; None once the session has ended."""
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.TEXT:
                self.heard_at_seconds = time.monotonic()
                return str(message.data)
            if message.type is WSMsgType.PING:
                self.heard_at_seconds = time.monotonic()
                with suppress(aiohttp.ClientError, OSError):
                    await self._socket.pong(message.data)
            elif message.type in (WSMsgType.PONG, WSMsgType.BINARY):
                self.heard_at_seconds = time.monotonic()
            else:
                return None

    def ping(self) -> None:
        """Have the client show that it is there; needless where it is just being sent something."""
        if self._sender is None and self._ending is None:
            self._waiting.append(None)
            self._begin_sending()

    async def judge(self, access: Access) -> bool:
        """End the session if its caller has lost the right; answers whether that could be told."""
        admitted = self._admitted
        try:
            await access.require(
                admitted.authorization, self._verb, admitted.key, granted_within_seconds=_ANSWER_SECONDS
            )
        except Refusal as refusal:
            if refusal.status == 401:
                self.end(CloseCode.UNKNOWN_CALLER, refusal.reason, dropped="unknown caller")
            elif refusal.status == 403:
                self.end(CloseCode.NO_RIGHT, refusal.reason, dropped="no right")
            else:
                return False
        return True

    async def ended(self) -> None:
        """Wait until it is closed."""
        if self._ending is not None:
            await self._ending

    def _begin_sending(self) -> None:
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        try:
            # Whoever reads finds out that a connection is lost.
            with suppress(aiohttp.ClientError, OSError):
                while self._waiting:
                    frame = self._waiting.pop(0)
                    if frame is None:
                        await self._socket.ping()
                    else:
                        await self._socket.send_frame(frame, WSMsgType.TEXT)
                        self._sent.inc()
        finally:
            self._sender = None

    async def _end(self, code: int, reason: str) -> None:
        if self._sender is not None:
            await asyncio.wait((self._sender,), timeout=CLOSE_SECONDS)
        if self._sender is not None:
            self._sender.cancel()
        await close_socket(self.request, self._socket, code, reason)


class Sessions:
    """All sessions of this replica.

    Args:
        access: judges callers, again and again.
        places: how many there may be.
        metrics: count what happens to them.
    """

    def __init__(self, access: Access, places: SessionPlaces, metrics: Metrics) -> None:
        self._access = access
        self._places = places
        self._metrics = metrics
        self._sessions: dict[Session, tuple[SessionKind, str]] = {}
        self._judging: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(
        self, request: web.Request, admitted: Admitted, *, kind: SessionKind, verb: str, frame_bytes: int = FRAME_BYTES
    ) -> Session:
        """Begin a session; `leave` must follow, whatever happens.

        Args:
            request: the handshake.
            admitted: who sends it, about what.
            kind: for the metrics.
            verb: the right that was found, and is judged again as long as the session lasts.
            frame_bytes: the longest message that is taken from the client.

        Raises Refusal: 400 for what is no handshake, 429, 503 when this replica ends.
        """
        socket = make_socket(request, frame_bytes)
        if self._closed:
            raise Refusal(503, "this replica ends; ask another one")
        self._places.take(kind, admitted.caller)
        session = Session(request, socket, admitted, kind, verb, self._metrics)
        now = time.monotonic()
        session.heard_at_seconds = now
        session.ping_at_seconds = now + random.uniform(0, _PING_SECONDS[1])
        session.judge_at_seconds = now + random.uniform(*_JUDGE_SECONDS)
        try:
            await socket.prepare(request)
        except BaseException:
            self._places.give_back(kind, admitted.caller)
            raise
        self._sessions[session] = kind, admitted.caller
        return session

    async def leave(self, session: Session) -> None:
        """Have done with a session; what is still open is closed."""
        kind, caller = self._sessions.pop(session)
        self._places.give_back(kind, caller)
        session.end(CloseCode.INTERNAL_ERROR, "")
        await session.ended()

    async def run(self) -> None:
        """Ping clients, part with silent ones, and have rights judged again, until cancelled."""
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            stood_still_seconds = now - looked_at - _LOOK_SECONDS
            looked_at = now
            for count, session in enumerate(list(self._sessions)):
                if count % _SESSIONS_AT_ONCE == _SESSIONS_AT_ONCE - 1:
                    # Thousands of sessions hold up nothing else.
                    await asyncio.sleep(0)
                if stood_still_seconds > _LOOK_SECONDS:
                    # What has come meanwhile was not read yet.
                    session.heard_at_seconds += stood_still_seconds
                self._look_after(session, now)

    async def close(self) -> None:
        """Send everybody away, to another replica, in bounded time."""
        self._closed = True
        for task in self._judging:
            task.cancel()
        for session in self._sessions:
            session.end(CloseCode.GOING_AWAY, "this replica ends; ask another one")
        await all_ended((session.request, session.ended()) for session in self._sessions)

    def _look_after(self, session: Session, now: float) -> None:
        if session.is_ending:
            return
        if now - session.heard_at_seconds >= SILENT_SECONDS:
            session.end(CloseCode.GOING_AWAY, f"silent for {SILENT_SECONDS:g} s", dropped="silent")
            return
        if now >= session.ping_at_seconds:
            session.ping_at_seconds = now + random.uniform(*_PING_SECONDS)
            session.ping()
        if now >= session.judge_at_seconds:
            session.judge_at_seconds = float("inf")
            task = asyncio.create_task(self._judge(session))
            self._judging.add(task)
            task.add_done_callback(self._judging.discard)

    async def _judge(self, session: Session) -> None:
        # While nobody can tell, nobody has taken a right away either: an outage ends no session (R7).
        told = await session.judge(self._access)
        pause_seconds = random.uniform(*(_JUDGE_SECONDS if told else _JUDGE_AGAIN_SECONDS))
        session.judge_at_seconds = time.monotonic() + pause_seconds
