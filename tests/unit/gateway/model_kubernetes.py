"""A Kubernetes in memory: an API server with tokens, rights, impersonation and objects, and what becomes of these.

What a real one does with all of it is in `tests/integration/operator/test_admin_rest.py`; this one is for every status
of every route.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_login import KubeEndpoint
from scalable_topics_operator.cluster.resources import (
    CONNECTIONS,
    POLICIES,
    SEGMENT_OPERATIONS,
    SUBSCRIPTIONS,
    TOPICS,
)
from scalable_topics_operator.cluster.reviews import AUDIENCE
from scalable_topics_operator.controllers.object_cache import ObjectCache

ALICE, BOB, STRANGER, OTHER_AUDIENCE = "alice-t0ken", "bob-t0ken", "stranger-t0ken", "other-audience-t0ken"
_USERS = {ALICE: "alice", BOB: "bob", OTHER_AUDIENCE: "alice"}
_RESOURCES = {one.plural: one for one in (CONNECTIONS, TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS, POLICIES)}
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
_OPERATOR = "the operator"
_EXTRA = "impersonate-extra-"

Right = tuple[str, str]
"""Verb and plural."""


@dataclass
class Kubernetes:
    """What there is.

    Args:
        cache: of a replica that watches it.
        denied: rights that alice lacks; bob has none.
        denied_in: rights that she lacks in one namespace.
        reviewed_in: namespaces that SubjectAccessReviews were about.
        denied_at_server: rights that only the API server itself denies alice.
        no_impersonation: the operator may not act as others.
        status: answered to every write instead, if set.
        becomes: the status an object has soon after it was made; None for none.
        acted: who did what to which kind.
        extra: what tokens carry besides.
        heard_extra: what of that came along with the last call for somebody else.
        lose_replies: how many creations are done without an answer.
        before_delete: what happens while a deletion is on its way.
    """

    cache: ObjectCache
    denied: set[Right] = field(default_factory=set)
    denied_in: set[tuple[str, str, str]] = field(default_factory=set)
    reviewed_in: list[str] = field(default_factory=list)
    denied_at_server: set[Right] = field(default_factory=set)
    no_impersonation: bool = False
    status: int | None = None
    becomes: Callable[[Body], dict[str, Any] | None] = lambda body: None
    acted: list[tuple[str, str, str]] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)
    heard_extra: dict[str, list[str]] = field(default_factory=dict)
    lose_replies: int = 0
    before_delete: Callable[[], None] = lambda: None
    _objects: dict[tuple[str, str, str], Body] = field(default_factory=dict)
    _versions: itertools.count[int] = field(default_factory=lambda: itertools.count(100))

    def put(self, body: Body) -> Body:
        """Have an object, as if somebody had applied it."""
        resource = next(one for one in _RESOURCES.values() if one.kind == body["kind"])
        return self._store(resource, copy.deepcopy(body))

    def all_of(self, resource: Resource) -> list[Body]:
        """The objects of a kind, oldest first."""
        return [body for (plural, _, _), body in self._objects.items() if plural == resource.plural]

    def set_status(self, body: Body, status: dict[str, Any]) -> None:
        """Write an object's status, as the operator does."""
        resource = next(one for one in _RESOURCES.values() if one.kind == body["kind"])
        self._store(resource, {**self._objects[_key(resource, body)], "status": status})

    def remove(self, body: Body) -> None:
        """Let an object be gone."""
        resource = next(one for one in _RESOURCES.values() if one.kind == body["kind"])
        self._drop(resource, self._objects[_key(resource, body)])

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one call."""
        if request.path.endswith(("/tokenreviews", "/subjectaccessreviews")):
            return web.json_response(self._review(await request.json()), status=201)
        user, refusal = self._user(request)
        parts = request.path.split("/")
        resource = _RESOURCES[parts[6]]
        name = parts[7] if len(parts) > 7 else ""
        verb = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[
            request.method
        ]
        self.acted.append((user, verb, resource.plural))
        if refusal:
            return _failed(403, refusal)
        if self.status is not None and verb != "list":
            return _failed(self.status, "not today")
        if user != _OPERATOR and not self._may(user, (verb, resource.plural), at_server=True):
            return _failed(403, f'User "{user}" cannot {verb} resource "{resource.plural}"')
        answer: web.Response = await getattr(self, f"_{verb}")(resource, parts[5], name, request)
        if self.lose_replies and verb == "create":
            self.lose_replies -= 1
            return _failed(500, "lost")
        return answer

    def _user(self, request: web.Request) -> tuple[str, str]:
        user = request.headers.get("Impersonate-User")
        if user is None:
            return _OPERATOR, ""
        if self.no_impersonation:
            return user, 'users "alice" is forbidden: User "operator" cannot impersonate resource "users"'
        assert request.headers.getall("Impersonate-Group") == ["people", "staff"]
        names = {name for name in request.headers if name.lower().startswith(_EXTRA)}
        self.heard_extra = {unquote(name.lower().removeprefix(_EXTRA)): request.headers.getall(name) for name in names}
        return user, ""

    def _review(self, body: dict[str, Any]) -> dict[str, Any]:
        spec = body["spec"]
        if body["kind"] == "TokenReview":
            token = spec["token"]
            audiences = ["https://kubernetes.default.svc"] if token == OTHER_AUDIENCE else [AUDIENCE]
            user = {"username": _USERS.get(token, ""), "groups": ["people", "staff"], "extra": self.extra}
            return {**body, "status": {"authenticated": token in _USERS, "user": user, "audiences": audiences}}
        wanted = spec["resourceAttributes"]
        self.reviewed_in.append(wanted["namespace"])
        allowed = self._may(spec["user"], (wanted["verb"], wanted["resource"]), at_server=False)
        allowed = allowed and (wanted["verb"], wanted["resource"], wanted["namespace"]) not in self.denied_in
        return {**body, "status": {"allowed": allowed}}

    def _may(self, user: str, right: Right, *, at_server: bool) -> bool:
        return user == "alice" and right not in (self.denied | self.denied_at_server if at_server else self.denied)

    async def _list(self, resource: Resource, namespace: str, name: str, request: web.Request) -> web.Response:
        label, _, value = request.query.get("labelSelector", "").partition("=")
        found = [
            body
            for body in self.all_of(resource)
            if body["metadata"]["namespace"] == namespace
            and (not label or (body["metadata"].get("labels") or {}).get(label) == value)
        ]
        return web.json_response({"items": found, "metadata": {"resourceVersion": "1"}})

    async def _get(self, resource: Resource, namespace: str, name: str, request: web.Request) -> web.Response:
        found = self._objects.get((resource.plural, namespace, name))
        return web.json_response(found) if found is not None else _failed(404, f"{name} not found")

    async def _create(self, resource: Resource, namespace: str, name: str, request: web.Request) -> web.Response:
        body = await request.json()
        if _key(resource, body) in self._objects:
            return _failed(409, f"{body['metadata']['name']} already exists")
        made = self._store(resource, body)
        asyncio.get_running_loop().call_soon(self._become, made)
        return web.json_response(made, status=201)

    async def _patch(self, resource: Resource, namespace: str, name: str, request: web.Request) -> web.Response:
        patch = (await request.json())["metadata"]
        found = self._objects[(resource.plural, namespace, name)]
        metadata = {**found["metadata"], "annotations": patch["annotations"]}
        return web.json_response(self._store(resource, {**found, "metadata": metadata}))

    async def _delete(self, resource: Resource, namespace: str, name: str, request: web.Request) -> web.Response:
        options = await request.json()
        self.before_delete()
        found = self._objects.get((resource.plural, namespace, name))
        if found is None:
            return _failed(404, f"{name} not found")
        if options.get("preconditions", {}).get("uid") not in (None, found["metadata"]["uid"]):
            return _failed(409, "the uid is another")
        if options.get("preconditions", {}).get("resourceVersion") not in (None, found["metadata"]["resourceVersion"]):
            return _failed(409, "it has changed")
        if not options.get("dryRun"):
            self._drop(resource, found)
        return web.json_response({"kind": "Status"})

    def _become(self, made: Body) -> None:
        status = self.becomes(made)
        if status is not None:
            self.set_status(made, status)

    def _store(self, resource: Resource, body: Body) -> Body:
        version = next(self._versions)
        known = {"uid": f"uid-{version}", "generation": 1, "creationTimestamp": f"2026-01-01T00:00:{version % 60:02d}Z"}
        stored = {**body, "metadata": {**known, **body["metadata"], "resourceVersion": str(version)}}
        self._objects[_key(resource, stored)] = stored
        self.cache.observe(resource, stored)
        return stored

    def _drop(self, resource: Resource, body: Body) -> None:
        key = _key(resource, body)
        del self._objects[key]
        found = next((one for one, _ in self.cache.all(resource) if (one.namespace, one.name) == key[1:]), None)
        if found is not None:
            self.cache.remove(found, body["metadata"]["uid"])


def _key(resource: Resource, body: Body) -> tuple[str, str, str]:
    return resource.plural, body["metadata"]["namespace"], body["metadata"]["name"]


def _failed(status: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "message": message}, status=status)


@asynccontextmanager
async def kubernetes(cache: ObjectCache) -> AsyncIterator[tuple[Kubernetes, KubeClient]]:
    """Start one that a cache watches; answers it and a client of it."""
    found = Kubernetes(cache)
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", found.handle)
    async with TestServer(app) as server:
        endpoint = KubeEndpoint(str(server.make_url("")).rstrip("/"), None, {}, "default")
        async with KubeClient(endpoint, tries=1) as kube:
            yield found, kube
