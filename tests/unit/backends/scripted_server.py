"""A server on loopback that answers what a test tells it and remembers what it was sent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.backends.admin import (
    AdminHttp,
    Credentials,
    CredentialSource,
    FixedCredentials,
    HttpSettings,
    RetryPolicy,
    Token,
)

TOKEN = "t0ken-that-must-not-leak"

Reply = web.StreamResponse | Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    query: str
    authorization: str | None
    content_type: str | None
    body: str
    accept_encoding: str | None = None


@dataclass(slots=True)
class ScriptedServer:
    """Answers one reply after the other, the last one for ever."""

    replies: list[Reply] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    brokers: list[str] | web.Response | None = None
    url: str = ""

    @property
    def host_and_port(self) -> str:
        return self.url.split("://")[1]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(
            Seen(
                request.method,
                request.raw_path.split("?")[0],
                request.query_string,
                request.headers.get("Authorization"),
                request.headers.get("Content-Type"),
                await request.text(),
                request.headers.get("Accept-Encoding"),
            )
        )
        if request.path == "/admin/v2/brokers" and self.brokers is not None:
            return self.brokers if isinstance(self.brokers, web.Response) else web.json_response(self.brokers)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply if isinstance(reply, web.StreamResponse) else await reply(request)

    def calls(self, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.path == path]


@asynccontextmanager
async def serve(*replies: Reply, tls: SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(list(replies))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", scripted.handle)
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    scripted.url = str(server.make_url("/")).rstrip("/")
    try:
        yield scripted
    finally:
        await server.close()


def reason(status: int, text: str, **headers: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def reply(_: web.Request) -> web.Response:
        return web.json_response({"reason": text}, status=status, headers=headers)

    return reply


def redirect(url: str, status: int = 307) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def reply(request: web.Request) -> web.Response:
        target = url if url.count("/") > 2 or "://" not in url else url + request.raw_path
        return web.Response(status=status, headers={"Location": target})

    return reply


def ok(body: Any = None) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(status=204) if body is None else web.json_response(body)

    return reply


@dataclass(slots=True)
class FakeClock:
    """Time that only passes while somebody sleeps."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass(slots=True)
class RotatingCredentials:
    """A Secret whose content changed: `current` shows the old one until it is read again."""

    versions: Sequence[Credentials]
    read: int = 0
    refreshes: int = 0

    async def current(self) -> Credentials:
        return self.versions[self.read]

    async def refresh(self) -> Credentials:
        self.refreshes += 1
        self.read = min(self.read + 1, len(self.versions) - 1)
        return self.versions[self.read]


def connect(
    server: ScriptedServer,
    *,
    source: CredentialSource | None = None,
    clock: FakeClock | None = None,
    observed: list[tuple[str, str, float]] | None = None,
    **settings: Any,
) -> AdminHttp:
    clock = clock or FakeClock()
    settings.setdefault("request_timeout_seconds", 5.0)
    settings.setdefault("retry", RetryPolicy(attempts=4))
    return AdminHttp(
        HttpSettings(admin_url=server.url, **settings),
        source or FixedCredentials(Credentials(Token(TOKEN))),
        observe=None if observed is None else lambda *one: observed.append(one),
        sleep=clock.sleep,
        monotonic=clock.monotonic,
    )
