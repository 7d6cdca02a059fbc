"""A replica with the admin REST, over a Kubernetes and a Pulsar cluster in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
from aiohttp import web

from scalable_topics.layout import Segment, TopicName, classic_segment_name
from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.controllers.connection_credentials import SecretCredentials
from scalable_topics_operator.controllers.connections import ConnectionHandle
from scalable_topics_operator.controllers.consumer_sessions import ConsumerSessions
from scalable_topics_operator.gateway.consumer_sessions import ConsumerSessionRoutes
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.route import Route, Who
from scalable_topics_operator.gateway.subscription_routes import RESTORE
from scalable_topics_operator.operations.errors import BackendError, TopicMissing, Unsupported
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.protocols import CursorLook, NameState, Position, SegmentLook, TopicBackend
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.gateway.model_kubernetes import ALICE, Kubernetes, kubernetes
from tests.unit.gateway.pulsar_cluster import PULSAR, Clusters
from tests.unit.gateway.replica import Replica, make_cache, replica
from tests.unit.gateway.topics import ORDERS, created, topic_body

MAPPED = "acme/shop"
TOPIC_URL = "/admin/v2/scalable/acme/shop/orders"
NAMESPACE_POLICY_URL = "/admin/v2/namespaces/acme/shop/scalableTopicAutoScalePolicy"
SEGMENT_URL = "/admin/v2/segments/acme/shop/orders/0000-7fff-0"
READY = [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""}]

# What stands in a path for its parameters, so that every route is about something there is.
_SAMPLES = {
    "tenant": "acme",
    "namespace": "shop",
    "topic": "orders",
    "subscription": "billing",
    "descriptor": "0000-7fff-0",
    "operation": "orders-split-1",
    "segmentId": "0",
    "segmentId1": "0",
    "segmentId2": "1",
    "connection": "pulsar",
    "file": "main.mjs",
}


@dataclass
class Brokers:
    """Brokers that show segments and ordinary topics. Implements what the REST asks of a `TopicBackend`."""

    looks: dict[str, SegmentLook] = field(default_factory=dict)
    error: BackendError | None = None
    names: dict[TopicName, NameState] = field(default_factory=dict)
    surveys: dict[TopicName, LegacySurvey] = field(default_factory=dict)
    unfit: str = ""

    def segment_topic(self, topic: TopicName, segment: Segment) -> str:
        return segment.topic or classic_segment_name(topic, segment.hash_range, segment.segment_id)

    async def look(self, segment_topic: str) -> SegmentLook:
        if self.error is not None:
            raise self.error
        if segment_topic not in self.looks:
            raise TopicMissing(f"{segment_topic}: topic not found")
        return self.looks[segment_topic]

    async def read_name(self, topic: TopicName) -> NameState:
        if self.error is not None:
            raise self.error
        return self.names.get(topic, NameState(exists=False))

    async def survey(self, topic: TopicName) -> LegacySurvey | None:
        return self.surveys.get(topic)

    async def require_fit(self, topic: TopicName, *, more_topics: int) -> None:
        if self.unfit:
            raise Unsupported(self.unfit)


@dataclass
class Answer:
    """What the gateway said."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        return str(self.body["reason"])


@dataclass
class RestWorld:
    """All of it."""

    kubernetes: Kubernetes
    kube: KubeClient
    replica: Replica
    brokers: Brokers
    clusters: Clusters

    async def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = ALICE,
        body: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        at: Replica | None = None,
    ) -> Answer:
        sent = {**(headers or {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}
        url = f"http://{(at or self.replica).gateway.address}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, headers=sent, json=body, data=data) as response,
        ):
            text = await response.read()
            found = await response.json() if response.content_type == "application/json" and text else None
            return Answer(response.status, found, response.headers)

    @property
    def topic(self) -> Body:
        (found,) = (one for one in self.kubernetes.all_of(TOPICS) if one["metadata"]["name"] == "orders")
        return found

    def change_topic(self, state: TopicState | None = None, **changes: Any) -> None:
        """Have topic `orders` be another: its state, or parts of its spec."""
        body = self.topic
        if state is not None:
            self.kubernetes.set_status(body, {**topic_body(state)["status"], "conditions": READY})
        if changes:
            self.kubernetes.put({**self.topic, "spec": {**body["spec"], **changes}})


def look(*, consumers: int = 0, producers: int = 0, cursors: tuple[str, ...] = ()) -> SegmentLook:
    """A segment as its broker shows it; each cursor has five entries left."""
    return SegmentLook(
        terminated=False,
        last_confirmed=Position(3, 9),
        pending_adds=0,
        entries=10,
        producers=frozenset(f"producer-{number}" for number in range(producers)),
        cursors={
            name: CursorLook(counts=True, mark_delete=Position(3, 4), backlog=5, consumers=consumers)
            for name in cursors
        },
    )


def connection(*, mapped: bool = True, name: str = "pulsar", **spec: Any) -> Body:
    """Connection `shop/pulsar`."""
    mappings = [{"pulsarNamespace": MAPPED, "namespace": "shop"}] if mapped else []
    return {
        "apiVersion": CONNECTIONS.api_version,
        "kind": CONNECTIONS.kind,
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"adminUrl": "http://pulsar:8080", "pulsarNamespaceMappings": mappings, **spec},
    }


def sample_path(route: Route) -> str:
    """A path of a route about what there is."""
    query = {"timestamp": "1000", "buckets": "8"}
    needed = [f"{one.name}={query[one.name]}" for one in route.parameters if one.place == "query" and one.name in query]
    path = route.path.format(**_SAMPLES)
    return f"{path}?{'&'.join(needed)}" if needed else path


def sample_body(route: Route) -> Any:
    """A body for a route that takes one."""
    if route.name == RESTORE.name:
        return {"positions": [{"segment": 0, "ledgerId": 7, "entryId": 9}]}
    return {} if route.body is not None and route.who is Who.USER else None


@asynccontextmanager
async def rest_world(
    *,
    mapped: bool = True,
    writes: bool = True,
    console: bool = True,
    migration_enabled: bool = True,
    wait_seconds: float = 0.3,
) -> AsyncIterator[RestWorld]:
    """Start one with topic `orders` of two segments, which this replica leads."""
    cache = make_cache()
    async with kubernetes(cache) as (found, kube):
        brokers, spec = Brokers(), ScalableTopicConnectionSpec(admin_url="http://pulsar:8080")
        handle = ConnectionHandle(
            "uid",
            1,
            spec,
            cast(PulsarAdmin, None),
            SecretCredentials(kube, "shop", spec),
            backend=cast(TopicBackend, brokers),
            problem="",
        )
        clusters = Clusters({PULSAR: handle})
        async with replica(
            kube,
            cache=cache,
            clusters=clusters,
            writes=writes,
            console=console,
            migration_enabled=migration_enabled,
            wait_seconds=wait_seconds,
            more=(_consumer_sessions,),
        ) as one:
            one.known.leader = Peer("r-leader", one.gateway.address, is_me=True)
            one.known.view = {"topic": str(ORDERS)}
            found.put(connection(mapped=mapped))
            state = created(2)
            body = topic_body(state)
            found.put(
                {
                    **body,
                    "apiVersion": TOPICS.api_version,
                    "kind": TOPICS.kind,
                    "spec": {**body["spec"], "deletionPolicy": "Delete", "properties": {"team": "orders"}},
                    "status": {**body["status"], "conditions": READY, "observedGeneration": 1},
                }
            )
            assert state.layout is not None
            for segment in state.layout.active:
                brokers.looks[brokers.segment_topic(ORDERS, segment)] = look()
            yield RestWorld(found, kube, one, brokers, clusters)


def _consumer_sessions(parts: GatewayParts) -> Iterable[web.AbstractRouteDef]:
    """Served by the operator beside the REST; nobody registers here."""
    return ConsumerSessionRoutes(parts, cast(ConsumerSessions, None)).routes()


def made(world: RestWorld) -> list[Body]:
    """The policies and subscriptions there are."""
    return [*world.kubernetes.all_of(POLICIES), *world.kubernetes.all_of(SUBSCRIPTIONS)]
