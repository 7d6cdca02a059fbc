"""A gateway on loopback with everything around it told by a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import SUBSCRIPTIONS_BY_TOPIC, topic_text
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes
from scalable_topics_operator.controllers.topic_work import (
    BY_CONNECTION,
    BY_NAME,
    BY_PULSAR_NAMESPACE,
    canonical_topic,
    pulsar_namespace,
)
from scalable_topics_operator.gateway.parts import RouteMaker
from scalable_topics_operator.gateway.peer_transport import PeerTransport
from scalable_topics_operator.gateway.rest import RestSources, rest_routes
from scalable_topics_operator.gateway.server import Certificate, Gateway
from scalable_topics_operator.gateway.session_places import SessionLimits
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.unit.gateway.pulsar_cluster import Clusters
from tests.unit.gateway.topics import created, topic_body

_LIMITS = SessionLimits()
PEER_TOKEN = "peer-t0ken-of-thirty-two-characters"


@dataclass
class Known:
    """What a replica knows, as a test sets it. Implements `Leaders`, `TopicViews` and `LoadSource`."""

    leader: Peer | None = None
    view: Mapping[str, Any] | None = None
    samples: dict[ObjectKey, Mapping[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self, key: ObjectKey) -> None:
        """Have an object reconciled."""
        self.woken.set()

    def leader_of(self, key: ObjectKey) -> Peer | None:
        return self.leader

    def stats(self, key: ObjectKey) -> Mapping[str, Any] | None:
        self.asked.append(f"stats {key}")
        return self.view

    def explain(self, key: ObjectKey) -> Mapping[str, Any] | None:
        self.asked.append(f"explain {key}")
        return self.view

    def policy(self, key: ObjectKey) -> Mapping[str, Any] | None:
        self.asked.append(f"policy {key}")
        return self.view

    async def sample(self, key: ObjectKey) -> bytes | None:
        found = self.samples.get(key)
        return json.dumps(found).encode() if found is not None else None


@dataclass
class Replica:
    """One that serves."""

    gateway: Gateway
    known: Known
    metrics: Metrics
    cache: ObjectCache
    wishes: SubscriptionWishes

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


def make_cache() -> ObjectCache:
    """A cache with the indexes of an operator's."""
    cache = ObjectCache()
    cache.add_index(BY_NAME, TOPICS, canonical_topic)
    cache.add_index(BY_PULSAR_NAMESPACE, TOPICS, pulsar_namespace)
    cache.add_index(BY_CONNECTION, TOPICS, lambda body: str(connection_of(body)))
    cache.add_index(SUBSCRIPTIONS_BY_TOPIC, SUBSCRIPTIONS, topic_text)
    return cache


@asynccontextmanager
async def replica(
    kube: KubeClient,
    *,
    certificate: Certificate | None = None,
    timeout_seconds: float = 1.0,
    without: bool = False,
    address: str = "",
    host: str = "127.0.0.1",
    port: int = 0,
    more: Iterable[RouteMaker] = (),
    clusters: Clusters | None = None,
    limits: SessionLimits = _LIMITS,
    cache: ObjectCache | None = None,
    writes: bool = True,
    console: bool = True,
    migration_enabled: bool = True,
    wait_seconds: float = 1.0,
) -> AsyncIterator[Replica]:
    """Start one that knows topic `topic://acme/shop/orders` unless it is given a cache; without views and samples if
    `without`.
    """
    known, metrics, clusters = Known(), Metrics(), clusters or Clusters()
    if cache is None:
        cache = make_cache()
        cache.observe(TOPICS, topic_body(created()))
    wishes = SubscriptionWishes(kube, cache, known.wake)
    sources = RestSources(
        kube=kube,
        cache=cache,
        connections=clusters,
        book=PolicyBook(cache, None),
        wishes=wishes,
        peer_token=PEER_TOKEN,
        views=None if without else known,
        load=None if without else known,
        writes=writes,
        console=console,
        migration_enabled=migration_enabled,
        wait_seconds=wait_seconds,
    )
    fingerprint = certificate.fingerprint if certificate is not None else None
    async with (
        PeerTransport(fingerprint, timeout_seconds) as transport,
        Gateway(
            host=host,
            port=port,
            address=address,
            certificate=certificate,
            kube=kube,
            cache=cache,
            connections=clusters,
            leaders=known,
            transport=transport,
            metrics=metrics,
            hold_seconds=10.0,
            limits=limits,
            routes=(partial(rest_routes, sources), *more),
        ) as gateway,
    ):
        yield Replica(gateway, known, metrics, cache, wishes)
