"""A gateway whose watch sessions are watched over real sockets, and all that stands around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import WSMsgType

from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.session_places import SessionLimits
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.gateway.api_server import GOOD, ApiServer, api_server
from tests.unit.gateway.pulsar_cluster import PulsarCluster, pulsar_cluster
from tests.unit.gateway.replica import Replica, replica
from tests.unit.gateway.topics import topic_body

WATCH = "/admin/v2/scalable/acme/shop/orders/watch"
Socket = aiohttp.ClientWebSocketResponse


class Gate:
    """A replica, the API server and the Pulsar cluster it asks, and the topic it knows."""

    def __init__(self, one: Replica, server: ApiServer, cluster: PulsarCluster) -> None:
        self.replica = one
        self.server = server
        self.cluster = cluster
        self.version = 10

    def commit(self, state: TopicState, **body: Any) -> None:
        self.version += 1
        self.replica.cache.observe(TOPICS, topic_body(state, self.version, **body))

    @asynccontextmanager
    async def watching(
        self, query: str = "", authorization: str = f"Bearer {GOOD}", *, path: str = WATCH, **options: Any
    ) -> AsyncIterator[Socket]:
        async with (
            aiohttp.ClientSession(headers={"Authorization": authorization}) as session,
            session.ws_connect(f"http://{self.replica.gateway.address}{path}{query}", **options) as socket,
        ):
            yield socket

    async def refused(
        self, query: str = "", authorization: str = f"Bearer {GOOD}", *, path: str = WATCH
    ) -> tuple[int, str]:
        headers = {
            "Authorization": authorization,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
        url = f"http://{self.replica.gateway.address}{path}{query}"
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
            assert ("Retry-After" in response.headers) == (response.status in (429, 503))
            return response.status, (await response.json())["reason"]

    def sessions(self) -> float:
        return self.replica.count("scalable_topics_gateway_sessions", kind="watch")

    def dropped(self, reason: str) -> float:
        return self.replica.count("scalable_topics_gateway_sessions_dropped_total", kind="watch", reason=reason)


@asynccontextmanager
async def gate(limits: SessionLimits | None = None) -> AsyncIterator[Gate]:
    async with (
        api_server() as (server, kube),
        pulsar_cluster(kube) as (cluster, clusters),
        replica(kube, clusters=clusters, limits=limits or SessionLimits()) as one,
    ):
        one.known.leader = Peer("r-other", "127.0.0.1:1", is_me=False, term=3)
        yield Gate(one, server, cluster)


async def frame(socket: Socket) -> dict[str, Any]:
    found: dict[str, Any] = await socket.receive_json(timeout=5)
    return found


async def ending(socket: Socket) -> tuple[int, str]:
    """How the server ends it, whatever it says before."""
    while True:
        message = await socket.receive(10)
        if message.type is WSMsgType.CLOSE:
            return message.data, message.extra or ""
        assert message.type in (WSMsgType.TEXT, WSMsgType.PING), message
