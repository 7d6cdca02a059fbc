"""Tells on each connection of scalable topics that were left behind on its brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from scalable_topics.layout import TopicName
from scalable_topics_operator.api.connection import MOST_ORPHANS_SHOWN
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.installation import Installation
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.cluster.status_store import StaleStatus, StatusStore
from scalable_topics_operator.controllers.claim_owner import owner_alive
from scalable_topics_operator.controllers.connections import ConnectionController, ConnectionHandle
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.controllers.topic_work import BY_CONNECTION, BY_NAME, canonical_topic
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.operations.orphans import Orphan, find_orphans
from scalable_topics_operator.operations.protocols import Claim
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

_WILDCARDS = frozenset("*?[")


class OrphanWatch:
    """Looks for orphans in turn, on the connections this replica leads.

    It looks where topics of the connection are or have been while this process ran, and in the Pulsar namespaces that
    `spec.allow.pulsarNamespaces` names without wildcards.

    Args:
        kube: the API server.
        cache: objects as last seen.
        connections: their clients.
        events: tells people.
        metrics: shows how many there are.
        installation: whose topics are looked for.
        shards: tells which connections this replica looks after.
        seconds: between two looks.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        connections: ConnectionController,
        events: EventRecorder,
        metrics: Metrics,
        installation: Installation,
        shards: ShardWork,
        seconds: float,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._connections = connections
        self._events = events
        self._metrics = metrics
        self._installation = installation
        self._shards = shards
        self._seconds = seconds
        self._namespaces: dict[ObjectKey, set[str]] = {}
        self._shown: set[ObjectKey] = set()

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(self._seconds)
            keys = [key for key, _ in self._cache.all(CONNECTIONS)]
            for gone in self._shown.difference(keys):
                self._hide(gone)
            for key in keys:
                try:
                    await self._shards.run(key, self._look(key))
                except NotLed:
                    self._hide(key)
                except (BackendError, KubeError, StaleStatus) as error:
                    # The next look comes soon enough, and the connection says itself that it is down.
                    logger.info("%s: not looked for orphans: %s", key, error)
                except Exception:
                    # Whatever goes wrong is this connection's alone.
                    logger.exception("%s: not looked for orphans", key)

    async def _look(self, key: ObjectKey) -> None:
        handle = self._connections.handle(key)
        if handle is None or handle.backend is None or handle.problem:
            return
        orphans = await find_orphans(
            handle.backend,
            self._where(key, handle),
            is_ours=self._is_ours,
            is_declared=lambda topic: self._is_declared(topic, handle),
            owner_alive=partial(owner_alive, self._kube),
        )
        body = self._cache.get(key)
        if body is None:
            return
        self._metrics.orphans.labels(key.namespace, key.name).set(len(orphans))
        self._shown.add(key)
        await self._tell(body, orphans)

    def _where(self, key: ObjectKey, handle: ConnectionHandle) -> set[str]:
        namespaces = self._namespaces.setdefault(key, set())
        for _, body in self._cache.find(BY_CONNECTION, str(key)):
            if (topic := canonical_topic(body)) is not None:
                namespaces.add(TopicName.parse(topic).pulsar_namespace)
        named = {name for name in handle.spec.allow.pulsar_namespaces if not _WILDCARDS.intersection(name)}
        return namespaces | named

    def _is_ours(self, claim: Claim) -> bool:
        ours = self._installation.installation_id, self._installation.kubernetes_uid
        return (claim.installation_id, claim.kubernetes_uid) == ours

    def _is_declared(self, topic: TopicName, handle: ConnectionHandle) -> bool:
        """Whether an object declares it on this cluster; one whose cluster is not known counts."""
        for _, body in self._cache.find(BY_NAME, str(topic)):
            other = self._connections.handle(connection_of(body))
            if other is None or other.probe is None or handle.probe is None:
                return True
            if other.probe.cluster_id == handle.probe.cluster_id:
                return True
        return False

    async def _tell(self, body: Body, orphans: Sequence[Orphan]) -> None:
        store = StatusStore(self._kube, CONNECTIONS, body, self._observe)
        status = dict(store.status)
        known = {entry["topic"] for entry in status.pop("orphans", ())}
        if orphans:
            status["orphans"] = [_shown(orphan) for orphan in orphans[:MOST_ORPHANS_SHOWN]]
        await store.write(status)
        for orphan in orphans[:MOST_ORPHANS_SHOWN]:
            if str(orphan.topic) not in known:
                await self._events.warning(
                    body,
                    "OrphanedTopic",
                    f"{orphan.topic} has {orphan.segments} segments and its ScalableTopic "
                    f"{orphan.claim.resource_namespace}/{orphan.claim.resource_name} is gone; declare it again to have "
                    "it looked after, with deletionPolicy Delete to get rid of it",
                )

    def _observe(self, written: Body) -> None:
        self._cache.observe(CONNECTIONS, written)

    def _hide(self, key: ObjectKey) -> None:
        if key in self._shown:
            self._shown.discard(key)
            self._metrics.orphans.remove_by_labels({"namespace": key.namespace, "name": key.name})


def _shown(orphan: Orphan) -> dict[str, Any]:
    owner = f"{orphan.claim.resource_namespace}/{orphan.claim.resource_name}"
    return {"topic": str(orphan.topic), "segments": orphan.segments, "owner": owner}
