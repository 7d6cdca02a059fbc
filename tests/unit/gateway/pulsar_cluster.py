"""A Pulsar cluster on loopback that knows some tokens, answers lookups, and remembers what it was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.backends.admin import (
    AdminHttp,
    Credentials,
    FixedCredentials,
    HttpSettings,
    PulsarAdmin,
    RetryPolicy,
    Token,
)
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.controllers.connection_credentials import SecretCredentials
from scalable_topics_operator.controllers.connections import ConnectionHandle

OPERATOR, CLIENT, OUTSIDER, UNKNOWN = "operator-t0ken", "client-t0ken", "outsider-t0ken", "unknown-t0ken"
PULSAR = ObjectKey(CONNECTIONS.plural, "shop", "pulsar")
BROKER = "pulsar://broker-1:6650"


@dataclass
class PulsarCluster:
    """What it knows and was asked.

    Args:
        asked: lookups by the token they were made with.
        paths: of all requests.
        may: tokens whose bearers may look topics up.
        known: tokens besides these.
        status: answered to everything instead, if set.
    """

    asked: Counter[str] = field(default_factory=Counter)
    paths: list[str] = field(default_factory=list)
    may: set[str] = field(default_factory=lambda: {OPERATOR, CLIENT})
    known: set[str] = field(default_factory=lambda: {OUTSIDER})
    status: int | None = None

    async def handle(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        assert scheme == "Bearer"
        self.asked[token] += 1
        self.paths.append(request.path)
        if self.status is not None:
            return web.json_response({"reason": "not today"}, status=self.status)
        if token in self.may:
            return web.json_response({"brokerUrl": BROKER, "httpUrl": "http://broker-1:8080"})
        reason = "Unauthorized to validateTopicOperation" if token in self.known else "Authentication required"
        return web.json_response({"reason": reason}, status=401)


@dataclass
class Clusters:
    """Connections by key. Implements `Connections`."""

    handles: dict[ObjectKey, ConnectionHandle] = field(default_factory=dict)

    def handle(self, key: ObjectKey) -> ConnectionHandle | None:
        return self.handles.get(key)


@asynccontextmanager
async def pulsar_cluster(kube: KubeClient) -> AsyncIterator[tuple[PulsarCluster, Clusters]]:
    """Start one; answers it and connection `shop/pulsar`, which leads to it."""
    found = PulsarCluster()
    app = web.Application()
    app.router.add_get("/{tail:.*}", found.handle)
    async with TestServer(app) as server:
        url = str(server.make_url("")).rstrip("/")
        spec = ScalableTopicConnectionSpec(admin_url=url)
        settings = HttpSettings(admin_url=url, request_timeout_seconds=1.0, retry=RetryPolicy(attempts=1))
        async with PulsarAdmin(AdminHttp(settings, FixedCredentials(Credentials(Token(OPERATOR))))) as admin:
            credentials = SecretCredentials(kube, PULSAR.namespace, spec)
            yield found, Clusters({PULSAR: ConnectionHandle("uid", 1, spec, admin, credentials)})
