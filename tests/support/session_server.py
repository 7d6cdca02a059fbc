"""A gateway for tests, as far as consumer sessions go: it sends what it is told, and keeps what it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

WITHIN_SECONDS = 30.0


class GatewaySession:
    """One session, seen from the gateway.

    Attributes:
        subscription: name of the subscription.
        authorization: what the client sent as such.
        query: of the address.
    """

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        self.subscription = request.match_info["subscription"]
        self.authorization = request.headers.get("Authorization")
        self.query = dict(request.query)
        self._request = request
        self._socket = socket
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def next(self) -> dict[str, Any]:
        """The next frame of the client."""
        return await asyncio.wait_for(self.received.get(), WITHIN_SECONDS)

    async def send(self, frame: dict[str, Any]) -> None:
        """Send a frame."""
        await self._socket.send_str(json.dumps(frame))

    async def send_raw(self, text: str) -> None:
        """Send anything."""
        await self._socket.send_str(text)

    async def registered(self, *, grace_ms: int = 60_000, handover_ms: int = 30_000) -> None:
        """Answer the registration."""
        await self.send({"type": "registered", "graceMs": grace_ms, "handoverMs": handover_ms})

    async def assign(self, version: tuple[int, int, int], segments: Iterable[dict[str, Any]]) -> None:
        """Send an assignment."""
        term, epoch, counter = version
        named = {"term": term, "epoch": epoch, "counter": counter}
        await self.send({"type": "assignment", "version": named, "segments": list(segments)})

    async def refuse(self, status: int, reason: str, *, final: bool) -> None:
        """Refuse the client, and close."""
        await self.send({"type": "refused", "status": status, "reason": reason, "final": final})
        await self._socket.close()

    async def left(self) -> None:
        """Answer `leave`, and close."""
        await self.send({"type": "left"})
        await self._socket.close()

    def cut(self) -> None:
        """Break the connection."""
        transport = self._request.transport
        if transport is not None:
            transport.abort()

    async def listen(self) -> None:
        """Take what the client sends, until the connection ends."""
        try:
            async for message in self._socket:
                if message.type is WSMsgType.TEXT:
                    self.received.put_nowait(json.loads(message.data))
        finally:
            self.ended.set()


@dataclass
class SessionServer:
    """A gateway.

    Attributes:
        url: its address.
        refusals: statuses and reasons with which handshakes are refused, one after the other.
        sessions: those accepted, not yet asked for.
    """

    url: str = ""
    refusals: list[tuple[int, str]] = field(default_factory=list)
    sessions: asyncio.Queue[GatewaySession] = field(default_factory=asyncio.Queue)
    accepted: list[GatewaySession] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def next_session(self) -> GatewaySession:
        """The next session."""
        return await asyncio.wait_for(self.sessions.get(), WITHIN_SECONDS)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one handshake, and hold the session."""
        self.paths.append(request.raw_path)
        if self.refusals:
            status, reason = self.refusals.pop(0)
            return web.json_response({"reason": reason}, status=status)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        session = GatewaySession(request, socket)
        self.accepted.append(session)
        self.sessions.put_nowait(session)
        await session.listen()
        return socket


@asynccontextmanager
async def serve_sessions(*, tls: SSLContext | None = None, port: int | None = None) -> AsyncIterator[SessionServer]:
    """A gateway on loopback."""
    served = SessionServer()
    app = web.Application()
    app.router.add_get("/admin/v2/scalable/{t}/{n}/{x}/subscriptions/{subscription}/session", served.handle)
    server = TestServer(app, scheme="https" if tls else "http", port=port)
    await server.start_server(ssl=tls)
    served.url = str(server.make_url("/")).rstrip("/")
    try:
        yield served
    finally:
        for session in served.accepted:
            session.cut()
        await server.close()
