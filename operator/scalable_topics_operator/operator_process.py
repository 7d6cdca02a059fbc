"""One operator process: everything wired together, started and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Protocol, TypeVar

from aiohttp import web

from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.installation import Installation, find_installation
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeUnavailable
from scalable_topics_operator.cluster.leadership import Leadership
from scalable_topics_operator.cluster.resources import CONNECTIONS, SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.controllers.connections import ConnectionController
from scalable_topics_operator.controllers.object_cache import ObjectCache, ObjectKey
from scalable_topics_operator.controllers.operation_queue import BY_TOPIC, OperationQueue, topic_of_operation
from scalable_topics_operator.controllers.orphan_watch import OrphanWatch
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.controllers.segment_operations import SegmentOperationController
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.controllers.topic_reconciler import TopicReconciler
from scalable_topics_operator.controllers.topic_work import (
    BY_CONNECTION,
    BY_NAME,
    TopicWorkMaker,
    canonical_topic,
    connection_of,
)
from scalable_topics_operator.controllers.watched_fleet import WatchedFleet
from scalable_topics_operator.controllers.watching import make_registry, watch
from scalable_topics_operator.controllers.work_queue import WorkQueue
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.settings import OperatorSettings
from scalable_topics_operator.telemetry.health import Pulse, PulseLimits, make_telemetry_app
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

T = TypeVar("T")

WATCHED = (CONNECTIONS, TOPICS, SEGMENT_OPERATIONS)
_GAUGE_SECONDS = 2.0
_START_RETRY_SECONDS = 2.0
# A cluster that refuses at once costs nobody anything; one that keeps a worker waiting does.
_HUNG_SECONDS = 5.0


class _Controller(Protocol):
    async def reconcile(self, key: ObjectKey) -> float | None: ...


class OperatorProcess:
    """The operator. `run` works until cancelled or until `stop` is set.

    Args:
        settings: how it runs.
        take_signals: sets the process's signal handlers; called after kopf has set its own.
    """

    def __init__(self, settings: OperatorSettings, take_signals: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._take_signals = take_signals
        self._metrics = Metrics(per_topic=settings.per_topic_metrics)
        self._queue: WorkQueue[ObjectKey] = WorkQueue(group_of=self._connection_group)
        # Apart, with workers of its own: a probe of a cluster that does not answer holds one for a long time.
        self._probes: WorkQueue[ObjectKey] = WorkQueue()
        self._cache = ObjectCache()
        self._cache.add_index(BY_NAME, TOPICS, canonical_topic)
        self._cache.add_index(BY_CONNECTION, TOPICS, lambda body: str(connection_of(body)))
        self._cache.add_index(BY_TOPIC, SEGMENT_OPERATIONS, topic_of_operation)
        self._controllers: Mapping[str, _Controller] = {}
        self._fleet = WatchedFleet(self._cache, settings.shards, self._begin, self._forget)
        self._shards = ShardWork(self._fleet, self._metrics, settings.lease.lease_seconds)
        self._topics: TopicReconciler | None = None
        self._names: dict[ObjectKey, str] = {}
        self.bound_port = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Raises KubeError when the API server refuses what cannot be done without."""
        async with KubeClient() as kube:
            relister = Relister(
                kube,
                self._cache,
                WATCHED,
                self._settings.namespaces,
                self._settings.relist_seconds,
                self._on_change,
            )
            async with self._telemetry(relister):
                namespace, shards = self._settings.operator_namespace, self._settings.shards
                installation = await _unless(stop, _find_installation(kube, namespace, shards))
                # Nothing acts before one complete list: a half-known fleet looks like one with missing rivals.
                await _unless(stop, relister.first_round())
                if installation is None or stop.is_set():
                    return
                events = EventRecorder(kube)
                connections = ConnectionController(
                    kube, self._cache, events, self._metrics, self._shards, self._wake_topics_of
                )
                self._controllers = self._make_controllers(kube, events, connections, installation)
                orphans = OrphanWatch(
                    kube,
                    self._cache,
                    connections,
                    events,
                    self._metrics,
                    installation,
                    self._shards,
                    self._settings.times.drift_seconds,
                )
                try:
                    await self._lead(relister, orphans, stop)
                finally:
                    await connections.close()

    async def _lead(self, relister: Relister, orphans: OrphanWatch, stop: asyncio.Event) -> None:
        """Stand for election while there is work, and let others have the shards at once in the end."""
        identity = f"{platform.node()}-{uuid.uuid4().hex[:8]}"
        settings = self._settings
        logger.info("standing for election as %s", identity)
        leadership = Leadership(settings.operator_namespace, identity, settings.shards, settings.lease, self._shards)
        self._shards.follow(leadership)
        leadership.start()
        try:
            await self._work(relister, orphans, leadership, stop)
        finally:
            self._shards.stop()
            await leadership.stop()

    def _make_controllers(
        self,
        kube: KubeClient,
        events: EventRecorder,
        connections: ConnectionController,
        installation: Installation,
    ) -> Mapping[str, _Controller]:
        maker = TopicWorkMaker(
            self._cache,
            connections,
            events,
            installation,
            self._settings.operations,
            self._metrics,
            self._shards.term_of,
            self._shards.raise_term,
        )
        operations = OperationQueue(kube, self._cache, events, self._queue.add)
        self._topics = TopicReconciler(
            kube, self._cache, events, self._metrics, maker, operations, self._settings.times
        )
        return {
            CONNECTIONS.plural: connections,
            TOPICS.plural: self._topics,
            SEGMENT_OPERATIONS.plural: SegmentOperationController(kube, self._cache, self._queue.add),
        }

    async def _work(
        self, relister: Relister, orphans: OrphanWatch, leadership: Leadership, stop: asyncio.Event
    ) -> None:
        registry = make_registry(self._cache, WATCHED, self._on_change, relister.ask)
        logger.info("all objects are listed; work begins")
        tasks = [
            asyncio.create_task(coroutine, name=name)
            for name, coroutine in {
                "watch": watch(registry, self._settings.namespaces, self._take_signals),
                "relist": relister.run(),
                "queue": self._queue.run(self._reconcile, self._settings.workers),
                "probes": self._probes.run(self._reconcile, self._settings.workers),
                "orphans": orphans.run(),
                # Rather started again by Kubernetes than a replica that never leads.
                "leadership": leadership.ended(),
                "gauges": self._show_gauges(),
                "stop": stop.wait(),
            }.items()
        ]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _reconcile(self, key: ObjectKey) -> None:
        """Work on one key; whatever goes wrong is this key's alone."""
        started = time.monotonic()
        kind, queue = key.plural, self._queue_of(key)
        generation = _generation(self._cache, key)
        try:
            again_seconds = await self._led(key, self._controllers[kind].reconcile(key))
        except NotLed:
            # Whoever leads it works on it, and this replica once it does.
            queue.passed_on(key)
            if self._shards.keeps(key):
                # Its renewal is late: should it come through after all, nobody will say that work begins anew.
                queue.add_after(key, self._settings.lease.renew_seconds)
            self._metrics.reconciles.labels(kind, "not led").inc()
        except (BackendUnavailable, KubeUnavailable, StaleStatus) as error:
            hung = isinstance(error, BackendUnavailable) and time.monotonic() - started > _HUNG_SECONDS
            pause = queue.failed(key, group_suffers=hung)
            logger.info("%s: %s; again in %.1f s", key, error, pause)
            self._metrics.reconciles.labels(kind, "retried").inc()
        except KubeError as error:
            pause = queue.failed(key)
            logger.warning("%s: %s; again in %.1f s", key, error, pause)
            self._metrics.reconciles.labels(kind, "failed").inc()
        except Exception:
            pause = queue.failed(key)
            logger.exception("%s: unexpected; again in %.1f s", key, pause)
            self._metrics.reconciles.labels(kind, "failed").inc()
        else:
            queue.succeeded(key)
            if again_seconds is not None:
                queue.add_after(key, again_seconds)
            self._metrics.reconciles.labels(kind, "done").inc()
        if _generation(self._cache, key) not in (generation, None):
            # The reply to a write of ours may have told of a newer spec; its own event is then no news any more.
            queue.add(key)
        self._metrics.reconcile_seconds.labels(kind).observe(time.monotonic() - started)

    async def _led(self, key: ObjectKey, work: Coroutine[None, None, float | None]) -> float | None:
        """Work as the leader, but for what every replica does: look at connections, and forget what is gone."""
        if key.plural == CONNECTIONS.plural or self._cache.get(key) is None:
            return await work
        return await self._shards.run(key, work)

    def _begin(self, key: ObjectKey) -> None:
        self._queue_of(key).add(key)

    def _forget(self, key: ObjectKey) -> None:
        if self._topics is not None:
            self._topics.forget(key)

    def _queue_of(self, key: ObjectKey) -> WorkQueue[ObjectKey]:
        return self._probes if key.plural == CONNECTIONS.plural else self._queue

    def _connection_group(self, key: ObjectKey) -> ObjectKey | None:
        """Topics share the luck of their connection."""
        body = self._cache.get(key) if key.plural == TOPICS.plural else None
        return connection_of(body) if body is not None else None

    def _on_change(self, key: ObjectKey) -> None:
        self._queue_of(key).add(key)
        if key.plural == TOPICS.plural:
            self._wake_rivals(key)
        elif key.plural == CONNECTIONS.plural and self._cache.get(key) is None:
            self._wake_topics_of(key)

    def _wake_rivals(self, key: ObjectKey) -> None:
        """A topic that goes away, or is new, may decide who owns its name (R1) or what its operations wait for."""
        body = self._cache.get(key)
        name = canonical_topic(body) if body else self._names.pop(key, None)
        if body is not None and name is not None:
            if self._names.get(key) == name:
                return
            self._names[key] = name
        if name is not None:
            for rival, _ in self._cache.find(BY_NAME, name):
                if rival != key:
                    self._queue.add(rival)
        for operation, _ in self._cache.find(BY_TOPIC, f"{key.namespace}/{key.name}"):
            self._queue.add(operation)

    def _wake_topics_of(self, connection: ObjectKey) -> None:
        for topic, _ in self._cache.find(BY_CONNECTION, str(connection)):
            self._queue.add(topic)

    @contextlib.asynccontextmanager
    async def _telemetry(self, relister: Relister) -> AsyncIterator[None]:
        def pulse() -> Pulse:
            return Pulse(
                synced=all(self._cache.synced(resource) for resource in WATCHED),
                list_age_seconds=relister.seconds_since_complete,
                oldest_wait_seconds=self._oldest_wait_seconds,
                longest_work_seconds=max(self._queue.longest_work_seconds, self._probes.longest_work_seconds),
            )

        runner = web.AppRunner(make_telemetry_app(self._metrics, pulse, PulseLimits()), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._settings.bind_host, self._settings.bind_port)
            await site.start()
            self.bound_port = runner.addresses[0][1]
            logger.info("metrics and health on %s:%d", self._settings.bind_host, self.bound_port)
            yield
        finally:
            await runner.cleanup()

    @property
    def _oldest_wait_seconds(self) -> float:
        return max(self._queue.oldest_wait_seconds, self._probes.oldest_wait_seconds)

    async def _show_gauges(self) -> None:
        while True:
            self._metrics.queue_waiting.set(self._queue.waiting + self._probes.waiting)
            self._metrics.queue_oldest_wait_seconds.set(self._oldest_wait_seconds)
            for resource in WATCHED:
                self._metrics.objects.labels(resource.kind).set(sum(1 for _ in self._cache.all(resource)))
            await asyncio.sleep(_GAUGE_SECONDS)


def _generation(cache: ObjectCache, key: ObjectKey) -> int | None:
    body = cache.get(key)
    return body["metadata"]["generation"] if body else None


async def _find_installation(kube: KubeClient, namespace: str, shards: int) -> Installation:
    """The API server may come up after us: wait for it, but not for a refusal."""
    while True:
        try:
            return await find_installation(kube, namespace, shards)
        except KubeUnavailable as error:
            logger.warning("%s; again in %.0f s", error, _START_RETRY_SECONDS)
            await asyncio.sleep(_START_RETRY_SECONDS)


async def _unless(stop: asyncio.Event, work: Coroutine[None, None, T]) -> T | None:
    """The result of `work`, or None if `stop` is set first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    done, pending = await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return working.result() if working in done else None
