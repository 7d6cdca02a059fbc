"""A gateway that answers what a test tells it, and what its document says of the requests it hears."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics.admin import GatewayOptions

TOKEN = "s3cret-t0ken"
DOCUMENT: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8")
)
OPERATIONS: dict[tuple[str, str], dict[str, Any]] = {
    (method.upper(), path): operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}


@dataclass(frozen=True)
class Heard:
    """One request."""

    operation: tuple[str, str]
    path: Mapping[str, str]
    query: Mapping[str, list[str]]
    body: Any
    authorization: str


@dataclass
class Reply:
    """What is answered."""

    status: int = 204
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None


@dataclass
class GatewayInTest:
    """One that listens on loopback.

    Args:
        reply: what is answered to a request.
        before: done before that.
        heard: the requests.
        url: of the gateway.
    """

    reply: Callable[[Heard], Reply] = lambda heard: Reply()
    before: Callable[[Heard], Awaitable[None]] | None = None
    heard: list[Heard] = field(default_factory=list)
    url: str = ""

    def options(self, **more: Any) -> GatewayOptions:
        return GatewayOptions(self.url, **{"token": TOKEN, **more})

    def answers(self, *replies: Reply) -> None:
        """Answer one after the other, the last one for ever."""
        self.reply = lambda heard: replies[min(len(self.heard), len(replies)) - 1]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        operation, path = operation_of(request.method, request.rel_url.raw_path)
        heard = Heard(
            operation,
            path,
            {name: request.query.getall(name) for name in request.query},
            await request.json() if request.can_read_body else None,
            request.headers["Authorization"],
        )
        self.heard.append(heard)
        if self.before is not None:
            await self.before(heard)
        reply = self.reply(heard)
        if reply.text is not None:
            return web.Response(status=reply.status, text=reply.text, headers=reply.headers)
        if reply.body is None:
            return web.Response(status=reply.status, headers=reply.headers)
        return web.json_response(reply.body, status=reply.status, headers=reply.headers)


def operation_of(method: str, raw_path: str) -> tuple[tuple[str, str], dict[str, str]]:
    """Which operation of the document a request is, and the parts of its path as they were sent."""
    for asked, path in OPERATIONS:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
        if asked == method and (match := re.fullmatch(pattern, raw_path)):
            return (asked, path), match.groupdict()
    raise AssertionError(f"{method} {raw_path} is no operation of the document")


@asynccontextmanager
async def gateway_in_test(port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[GatewayInTest]:
    """Start one, at a port if that matters, with TLS if it is given."""
    gateway = GatewayInTest()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", gateway.handle)
    server = TestServer(application, host="127.0.0.1", port=port or None, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    try:
        gateway.url = f"{server.scheme}://127.0.0.1:{server.port}"
        yield gateway
    finally:
        await server.close()
