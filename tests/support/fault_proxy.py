"""A proxy between the operator and a real server, for faults at a chosen call.

Killing the operator while a call is held puts the kill exactly before or after that side effect; releasing the
call later makes it a late effect of a dead process. The proxy also plays a server that is down, that cannot be
reached, or whose watches fall silent, and it remembers every call, so that a test can count writes.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import aiohttp
from aiohttp import web
from yarl import URL

from tests.support.waiting import eventually

_HOST = "127.0.0.1"
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "host", "te", "upgrade"}
_LEASE = re.compile(r"/leases(/|$)")
_WRITES = {"POST", "PUT", "PATCH", "DELETE"}
_TEMPORARY_REDIRECT = 307
_MOST_REDIRECTS = 5
_LARGEST_BODY_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class SeenCall:
    """One call that reached the proxy; `status` is 0 until the server has answered."""

    method: str
    path: str
    query: str
    body: str
    status: int = 0

    @property
    def is_write(self) -> bool:
        """Whether the call may change something."""
        return self.method in _WRITES

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.body[:300]} -> {self.status}"


@dataclass(slots=True)
class Hold:
    """One call to be held.

    Args:
        method: HTTP method.
        path: regular expression the path must match.
        body: regular expression the body must match.
        after: hold the reply instead of the request.
        skip: let so many matching calls pass first.
        orphaned: its caller is dead; from then on the same call is another one's.
    """

    method: str
    path: str
    body: str = ""
    after: bool = False
    skip: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    call: SeenCall | None = None
    dropped: bool = False
    orphaned: bool = False

    def drop(self) -> None:
        """Throw the held call away: the server never sees it (or its caller never sees the reply)."""
        self.dropped = True
        self.released.set()

    def is_repeated_by(self, call: SeenCall) -> bool:
        """Whether a call is the held one sent again, because its caller has lost patience."""
        return (
            self.call is not None
            and not self.orphaned
            and not self.released.is_set()
            and (call.method, call.path, call.body) == (self.call.method, self.call.path, self.call.body)
        )

    def matches(self, call: SeenCall) -> bool:
        """Whether this is the call to hold; counts those to be skipped."""
        if self.call is not None or not is_call(call, self.method, self.path, self.body):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.call = call
        return True


def is_call(call: SeenCall, method: str, path: str, body: str = "") -> bool:
    """Whether a call has this method and its path and body match these regular expressions."""
    return call.method == method and bool(re.search(path, call.path)) and bool(re.search(body, call.body))


@dataclass(slots=True, eq=False)
class _Stream:
    """An open watch."""

    response: web.StreamResponse
    silenced: bool = False


class FaultProxy:
    """Forwards everything to one server over HTTP; streams replies, so watches work through it.

    Args:
        target: base URL of the server.
        ssl_context: for an https target.
        headers: added to each forwarded request.
        follow_redirects: follow redirects itself, with all headers; only for servers that all are the test's own.
        remembers: keep every call in `seen`; a run of hours has no room for that.
    """

    def __init__(
        self,
        target: str,
        ssl_context: ssl.SSLContext | None = None,
        headers: dict[str, str] | None = None,
        *,
        follow_redirects: bool = False,
        remembers: bool = True,
    ) -> None:
        self._target = target.rstrip("/")
        self._ssl = ssl_context
        self._headers = headers or {}
        self._follow_redirects = follow_redirects
        self._remembers = remembers
        self._holds: list[Hold] = []
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._port = 0
        self._session: aiohttp.ClientSession | None = None
        self._forwards: set[asyncio.Task[web.StreamResponse]] = set()
        self._down = False
        self._speaks = asyncio.Event()
        self._speaks.set()
        self._redirects: list[tuple[str, str]] = []
        self._connections: set[asyncio.Transport] = set()
        self._open_streams: set[_Stream] = set()
        self._stream_delay_seconds = 0.0
        self.seen: list[SeenCall] = []

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            connector=aiohttp.TCPConnector(limit=0),
        )
        app = web.Application(client_max_size=_LARGEST_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        for hold in self._holds:
            hold.drop()
        self.cut_connections()
        for forward in self._forwards:
            forward.cancel()
        await asyncio.gather(*self._forwards, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where the proxy listens; the same after `refuse` and `listen`."""
        return f"http://{_HOST}:{self._port}"

    def hold(self, method: str, path: str, *, body: str = "", after: bool = False, skip: int = 0) -> Hold:
        """Hold the next matching call; await `arrived`, later set `released` or call `drop`.

        Meanwhile the same call sent again does not pass either.
        """
        hold = Hold(method, path, body, after, skip)
        self._holds = [*(known for known in self._holds if not known.answered.is_set()), hold]
        return hold

    def withdraw(self, hold: Hold) -> None:
        """Hold that call no more: let go of it if it has come, and of none that comes later."""
        self._holds = [known for known in self._holds if known is not hold]
        hold.released.set()

    async def until_quiet(self, seconds: float = 2.5) -> None:
        """Wait until nobody has called for a while, but for Leases."""
        before = -1
        while before != (now := sum(not _LEASE.search(call.path) for call in self.seen)):
            before = now
            await asyncio.sleep(seconds)

    def writes(self, since: int = 0) -> Sequence[SeenCall]:
        """The writing calls seen, from number `since` of all calls on, but for renewals of Leases."""
        return [call for call in self.seen[since:] if call.is_write and not _LEASE.search(call.path)]

    def lease_writes(self, since: int = 0) -> Sequence[SeenCall]:
        """Writes of Leases."""
        return [call for call in self.seen[since:] if call.is_write and _LEASE.search(call.path)]

    def redirect(self, path: str, target: str) -> None:
        """Answer calls whose path matches a regular expression with a redirect to another server's base URL."""
        self._redirects.append((path, target.rstrip("/")))

    def go_down(self) -> None:
        """Answer everything 503 from now on."""
        self._down = True

    def fall_silent(self) -> None:
        """Take every call and answer none from now on."""
        self._speaks.clear()

    def come_up(self) -> None:
        """Forward everything again, also what came while it was silent."""
        self._down = False
        self._speaks.set()
        self._redirects.clear()

    async def refuse(self) -> None:
        """Cut every connection and accept none: the server is gone."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        self.cut_connections()

    async def listen(self) -> None:
        """Accept connections, after `refuse` on the same port as before."""
        if self._runner is None:
            raise RuntimeError("use FaultProxy as a context manager")
        self._site = web.TCPSite(self._runner, _HOST, self._port)
        await self._site.start()
        self._port = self._runner.addresses[0][1]

    async def silence_streams(self, count: int) -> None:
        """Wait until so many watches are open, and let these stay open and never say a word again."""

        async def opened() -> int:
            return len(self._open_streams)

        await eventually(opened, lambda number: number == count, what=f"{count} watches are open")
        for stream in self._open_streams:
            stream.silenced = True

    async def say_on_streams(self, line: str) -> None:
        """Send a line on every watch that is open, as if the server had."""
        for stream in self._open_streams:
            await stream.response.write(line.encode() + b"\n")

    def delay_streams(self, seconds: float) -> None:
        """Let everything that watches tell come so late."""
        self._stream_delay_seconds = seconds

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self._connections = {known for known in self._connections if not known.is_closing()}
            self._connections.add(request.transport)
        body = await request.read()
        call = SeenCall(request.method, request.path, request.query_string, body.decode(errors="replace"))
        if self._remembers:
            self.seen.append(call)
        await self._speaks.wait()
        if self._down:
            return web.Response(status=503, text="the proxy plays a server that is down")
        target = next((target for path, target in self._redirects if re.search(path, call.path)), None)
        if target is not None:
            call.status = _TEMPORARY_REDIRECT
            return web.Response(status=_TEMPORARY_REDIRECT, headers={"Location": target + request.raw_path})
        held = next((hold for hold in self._holds if hold.is_repeated_by(call)), None)
        if held is not None:
            await held.released.wait()
            return self._cut(request)
        hold = next((hold for hold in self._holds if hold.matches(call)), None)
        try:
            # A task of its own, shielded: a client that dies does not take back what it has sent.
            forward = asyncio.create_task(self._forward(request, body, call, hold))
            self._forwards.add(forward)
            forward.add_done_callback(self._forwards.discard)
            return await asyncio.shield(forward)
        except (aiohttp.ClientError, ConnectionError, asyncio.CancelledError):
            # The server is gone, or the caller is: in both cases there is nobody to talk to.
            return self._cut(request)
        finally:
            if hold is not None:
                hold.answered.set()

    async def _forward(
        self, request: web.Request, body: bytes, call: SeenCall, hold: Hold | None
    ) -> web.StreamResponse:
        if hold is not None and not hold.after:
            await self._await_release(hold)
            if hold.dropped:
                return self._cut(request)
        async with await self._ask_server(request, body) as reply:
            call.status = reply.status
            if hold is not None and hold.after:
                await self._await_release(hold)
                if hold.dropped:
                    return self._cut(request)
            kept = {
                name: value for name, value in reply.headers.items() if name.lower() not in _HOP - {"content-encoding"}
            }
            response = web.StreamResponse(status=reply.status, headers=kept)
            await response.prepare(request)
            if "watch=true" in call.query:
                await self._stream(reply, response)
            else:
                async for chunk in reply.content.iter_any():
                    await response.write(chunk)
            await response.write_eof()
            return response

    async def _ask_server(self, request: web.Request, body: bytes) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("use FaultProxy as a context manager")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP} | self._headers
        url = self._target + request.raw_path
        for _ in range(_MOST_REDIRECTS):
            reply = await self._session.request(
                request.method,
                URL(url, encoded=True),
                data=body or None,
                headers=headers,
                ssl=self._ssl or True,
                allow_redirects=False,
            )
            if reply.status != _TEMPORARY_REDIRECT or not self._follow_redirects:
                return reply
            url = reply.headers["Location"]
            reply.release()
        raise aiohttp.ClientError(f"{request.path}: redirected in circles")

    async def _stream(self, reply: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        stream = _Stream(response)
        self._open_streams.add(stream)
        try:
            async for chunk in reply.content.iter_any():
                await asyncio.sleep(self._stream_delay_seconds)
                if not stream.silenced:
                    await response.write(chunk)
        finally:
            self._open_streams.discard(stream)

    @staticmethod
    async def _await_release(hold: Hold) -> None:
        hold.arrived.set()
        await hold.released.wait()

    @staticmethod
    def _cut(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    def cut_connections(self) -> None:
        """Cut every connection, and so every watch; new ones are accepted."""
        for connection in self._connections:
            connection.abort()
        self._connections.clear()
