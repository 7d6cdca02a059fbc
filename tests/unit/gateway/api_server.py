"""An API server on loopback that knows some tokens and rights, and counts what it is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import KubeEndpoint
from scalable_topics_operator.cluster.reviews import AUDIENCE

GOOD, BAD, OTHER_AUDIENCE, NO_RIGHTS = "good-t0ken", "bad-t0ken", "other-audience-t0ken", "no-rights-t0ken"
_USERS = {GOOD: "alice", OTHER_AUDIENCE: "bob", NO_RIGHTS: "carol"}


@dataclass
class ApiServer:
    """What it knows and was asked.

    Args:
        asked: requests by kind.
        status: answered to everything instead, if set.
        gate: answers wait for it.
        seconds: how long an answer takes besides.
        access: the last SubjectAccessReview.
        access_names: of the objects that SubjectAccessReviews were about.
        users: by token.
        denied: verbs that not even alice has a right to.
        heard: everything it was sent, headers included.
        url: its address.
    """

    asked: Counter[str] = field(default_factory=Counter)
    status: int | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    seconds: float = 0.0
    access: dict[str, Any] = field(default_factory=dict)
    access_names: list[str] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=lambda: dict(_USERS))
    denied: set[str] = field(default_factory=set)
    heard: list[str] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        kind = request.path.rsplit("/", 1)[1]
        self.asked[kind] += 1
        self.heard.append(f"{request.headers} {await request.text()}")
        body = await request.json()
        if kind == "subjectaccessreviews":
            self.access_names.append(body["spec"]["resourceAttributes"].get("name", ""))
        await self.gate.wait()
        await asyncio.sleep(self.seconds)
        if self.status is not None:
            return web.json_response({"message": "not today"}, status=self.status)
        if kind == "tokenreviews":
            token = body["spec"]["token"]
            audiences = ["https://kubernetes.default.svc"] if token == OTHER_AUDIENCE else body["spec"]["audiences"]
            user = {"username": self.users.get(token, ""), "groups": ["people"]}
            body["status"] = {"authenticated": token in self.users, "user": user, "audiences": audiences}
            assert body["spec"]["audiences"] == [AUDIENCE]
        else:
            self.access = body["spec"]
            allowed = body["spec"]["user"] == "alice" and body["spec"]["resourceAttributes"]["verb"] not in self.denied
            body["status"] = {"allowed": allowed}
        return web.json_response(body, status=201)


@asynccontextmanager
async def api_server() -> AsyncIterator[tuple[ApiServer, KubeClient]]:
    """Start one; answers it and a client of it."""
    found = ApiServer()
    found.gate.set()
    app = web.Application()
    app.router.add_post("/{tail:.*}", found.handle)
    async with TestServer(app) as server:
        found.url = str(server.make_url("")).rstrip("/")
        endpoint = KubeEndpoint(found.url, None, {}, "default")
        async with KubeClient(endpoint) as kube:
            yield found, kube
