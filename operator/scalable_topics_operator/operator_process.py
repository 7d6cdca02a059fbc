"""One operator process: everything wired together, started and stopped."""

from __future__ import annotations

import asyncio
import logging
import platform
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from scalable_topics_operator.autoscale.policy import bucket_budget, drains_fanned_out
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.installation import Installation, find_installation
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeUnavailable
from scalable_topics_operator.cluster.leadership import Leadership
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.peer_secret import find_peer_token
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.controllers.auto_scaler import AutoScaler
from scalable_topics_operator.controllers.connections import NATIVE, ConnectionController
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.consumer_sessions import ConsumerSessions
from scalable_topics_operator.controllers.coordinator import Coordinator
from scalable_topics_operator.controllers.load_watch import LoadWatch
from scalable_topics_operator.controllers.namespace_policies import NamespacePolicies
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.operation_queue import BY_TOPIC, OperationQueue, topic_of_operation
from scalable_topics_operator.controllers.ordered_subscriptions import SUBSCRIPTIONS_BY_TOPIC, topic_text
from scalable_topics_operator.controllers.orphan_watch import OrphanWatch
from scalable_topics_operator.controllers.pipeline_keeper import PipelineKeeper
from scalable_topics_operator.controllers.policies import SegmentAutoScalePolicyController
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.policy_news import PolicyNews
from scalable_topics_operator.controllers.published_thresholds import PublishedThresholds
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.controllers.segment_operations import SegmentOperationController
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes
from scalable_topics_operator.controllers.topic_backend import backend_of_topic
from scalable_topics_operator.controllers.topic_glimpses import TopicGlimpses
from scalable_topics_operator.controllers.topic_reconciler import TopicReconciler
from scalable_topics_operator.controllers.topic_views import LeaderViews
from scalable_topics_operator.controllers.topic_work import (
    BY_CONNECTION,
    BY_NAME,
    BY_PULSAR_NAMESPACE,
    TopicWorkMaker,
    brokers_of,
    canonical_topic,
    pulsar_namespace,
)
from scalable_topics_operator.controllers.watched_fleet import WatchedFleet
from scalable_topics_operator.controllers.watching import make_registry, watch
from scalable_topics_operator.controllers.work_queue import WorkQueue
from scalable_topics_operator.gateway.consumer_sessions import ConsumerSessionRoutes
from scalable_topics_operator.gateway.parts import RouteMaker
from scalable_topics_operator.gateway.peer_client import PeerClient
from scalable_topics_operator.gateway.peer_load import OwnLoads, PeerLoads
from scalable_topics_operator.gateway.peer_transport import PeerTransport
from scalable_topics_operator.gateway.rest import RestSources, rest_routes
from scalable_topics_operator.gateway.server import Gateway, load_certificate
from scalable_topics_operator.gateway.session_places import SessionLimits
from scalable_topics_operator.load.pipeline_runners import make_runners
from scalable_topics_operator.load.supervisor_process import SupervisorProcess
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.settings import OperatorSettings
from scalable_topics_operator.starting import reached, unless
from scalable_topics_operator.telemetry.health import Pulse, limits_for, serve_telemetry
from scalable_topics_operator.telemetry.metrics import Metrics, ReconcileResult

logger = logging.getLogger(__name__)

Looks = Mapping[str, Callable[[], Coroutine[None, None, None]]]
"""What goes on besides the queue, for ever, by name."""

# In the order of the lists: what topics depend on comes first.
WATCHED = (CONNECTIONS, POLICIES, SUBSCRIPTIONS, TOPICS, SEGMENT_OPERATIONS)
_GAUGE_SECONDS = 2.0
# Topics come and go many at a time: a policy counts them once.
_POLICY_PAUSE_SECONDS = 1.0
# A cluster that refuses at once costs nobody anything; one that keeps a worker waiting does.
_HUNG_SECONDS = 5.0


class _Controller(Protocol):
    async def reconcile(self, key: ObjectKey) -> float | None: ...


class OperatorProcess:
    """The operator. `run` works until cancelled or until `stop` is set. `consumers` takes counts of consumers.

    Args:
        settings: how it runs.
        take_signals: sets the process's signal handlers; called after kopf has set its own.
    """

    def __init__(self, settings: OperatorSettings, take_signals: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._take_signals = take_signals
        self._metrics = Metrics(per_topic=settings.per_topic_metrics, per_segment=settings.per_segment_metrics)
        self._queue: WorkQueue[ObjectKey] = WorkQueue(group_of=self._connection_group)
        # Apart, with workers of its own: a probe of a cluster that does not answer holds one for a long time.
        self._probes: WorkQueue[ObjectKey] = WorkQueue()
        self._cache = ObjectCache()
        self._cache.add_index(BY_NAME, TOPICS, canonical_topic)
        self._cache.add_index(BY_PULSAR_NAMESPACE, TOPICS, pulsar_namespace)
        self._cache.add_index(BY_CONNECTION, TOPICS, lambda body: str(connection_of(body)))
        self._cache.add_index(BY_TOPIC, SEGMENT_OPERATIONS, topic_of_operation)
        self._cache.add_index(SUBSCRIPTIONS_BY_TOPIC, SUBSCRIPTIONS, topic_text)
        self._cache.listen(TOPICS, lambda key, _: self._wake_subscriptions(key))
        self._book = PolicyBook(self._cache, settings.policy_defaults)
        self._news = PolicyNews(self._cache, self._book)
        self._controllers: Mapping[str, _Controller] = {}
        self._fleet = WatchedFleet(self._cache, settings.shards, self._begin, self._forget)
        self._shards = ShardWork(self._fleet, self._metrics, settings.lease.lease_seconds)
        self._metrics.fleet.follow(TopicGlimpses(lambda: self._fleet.topics_of(self._shards.kept)))
        for resource in WATCHED:
            self._metrics.expect_kind(resource.plural)
        self._topics: TopicReconciler | None = None
        self._coordinator: Coordinator | None = None
        self._wishes: SubscriptionWishes | None = None
        self._names: dict[ObjectKey, str] = {}
        self._identity = f"{platform.node()}-{uuid.uuid4().hex[:8]}"
        self.consumers = ConsumerCounts(self._decide_soon)
        self.views: LeaderViews | None = None
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
            settings, pulse = self._settings, partial(self._pulse, relister)
            limits = limits_for(settings.relist_seconds)
            async with serve_telemetry(self._metrics, pulse, settings.bind_host, settings.bind_port, limits) as port:
                self.bound_port = port
                namespace, shards = settings.operator_namespace, settings.shards
                installation = await unless(stop, reached(lambda: find_installation(kube, namespace, shards)))
                peer_token = await unless(stop, reached(lambda: find_peer_token(kube, namespace)))
                # Nothing acts before one complete list: a half-known fleet looks like one with missing rivals.
                await unless(stop, relister.first_round())
                if installation is None or peer_token is None or stop.is_set():
                    return
                events = EventRecorder(kube)
                connections = ConnectionController(
                    *(kube, self._cache, events, self._metrics, self._shards, self._wake_topics_of),
                    NamespacePolicies(self._book),
                )
                certificate = load_certificate(settings.gateway_tls_cert, settings.gateway_tls_key)
                transport = PeerTransport(certificate.fingerprint if certificate is not None else None)
                peers = PeerLoads(PeerClient(peer_token, transport), self._shards)
                pipelines = self._make_pipelines(kube, connections, installation)
                loads = LoadWatch(
                    *(kube, self._cache, connections, self._shards, self._metrics.pipelines, pipelines, peers.ask)
                )
                self._controllers = self._make_controllers(kube, events, connections, loads, installation)
                gateway = Gateway(
                    host=settings.gateway_host,
                    port=settings.gateway_port,
                    address=settings.gateway_address,
                    certificate=certificate,
                    kube=kube,
                    cache=self._cache,
                    connections=connections,
                    leaders=self._shards,
                    transport=transport,
                    metrics=self._metrics,
                    hold_seconds=settings.operations.hold_seconds,
                    limits=SessionLimits(settings.gateway_sessions, settings.gateway_sessions_per_caller),
                    routes=(
                        self._rest(kube, connections, loads, peer_token),
                        self._consumer_sessions(kube, connections),
                    ),
                )
                orphans = self._make_orphan_watch(kube, events, connections, installation)
                try:
                    looks = {"orphans": orphans.run, "load": loads.run, "pipelines": pipelines.run}
                    if settings.pipeline_command:
                        command, folder = settings.pipeline_command, Path(settings.pipeline_folder)
                        looks["supervisor"] = SupervisorProcess(command, folder).run
                    async with transport, gateway:
                        await self._lead(relister, looks, installation, gateway.address, stop)
                finally:
                    await connections.close()

    async def _lead(
        self, relister: Relister, looks: Looks, installation: Installation, gateway: str, stop: asyncio.Event
    ) -> None:
        """Stand for election while there is work, and let others have the shards at once in the end."""
        logger.info("standing for election as %s", self._identity)
        leadership = self._make_leadership(installation, gateway)
        self._shards.follow(leadership)
        leadership.start()
        try:
            await self._work(relister, looks, leadership, stop)
        finally:
            self._shards.stop()
            await leadership.stop()

    def _make_orphan_watch(
        self, kube: KubeClient, events: EventRecorder, connections: ConnectionController, installation: Installation
    ) -> OrphanWatch:
        seconds = self._settings.times.drift_seconds
        return OrphanWatch(kube, self._cache, connections, events, self._metrics, installation, self._shards, seconds)

    def _make_leadership(
        self, installation: Installation, gateway: str, kind: type[Leadership] = Leadership
    ) -> Leadership:
        settings = self._settings
        return kind(
            settings.operator_namespace,
            self._identity,
            settings.shards,
            settings.lease,
            self._shards,
            gateway,
            # Others wait a whole lease before they take what has none.
            nobody_led_until_seconds=installation.made_at_seconds + settings.lease.lease_seconds,
        )

    def _consumer_sessions(self, kube: KubeClient, connections: ConnectionController) -> RouteMaker:
        assert self._coordinator is not None
        sessions = ConsumerSessions(kube, self._cache, connections, self._coordinator, self._shards, self._queue.add)
        return lambda parts: ConsumerSessionRoutes(parts, sessions).routes()

    def _rest(
        self, kube: KubeClient, connections: ConnectionController, loads: LoadWatch, peer_token: str
    ) -> RouteMaker:
        assert self._wishes is not None
        sources = RestSources(
            kube=kube,
            cache=self._cache,
            connections=connections,
            book=self._book,
            wishes=self._wishes,
            peer_token=peer_token,
            views=self.views,
            load=OwnLoads(loads),
            writes=self._settings.gateway_writes,
            console=self._settings.console,
            migration_enabled=self._settings.operations.migration_enabled,
            namespaces=self._settings.namespaces,
        )
        return partial(rest_routes, sources)

    def _make_pipelines(
        self, kube: KubeClient, connections: ConnectionController, installation: Installation
    ) -> PipelineKeeper:
        runners = make_runners(kube, self._settings.pipeline_folder)
        thresholds = PublishedThresholds(self._cache, self._book).of
        identity, name = self._identity, installation.installation_id[:8]
        return PipelineKeeper(
            *(kube, self._cache, connections, self._shards, runners, thresholds, self._metrics.pipelines),
            *(identity, name),
        )

    def _make_controllers(
        self,
        kube: KubeClient,
        events: EventRecorder,
        connections: ConnectionController,
        loads: LoadWatch,
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
            lambda key, body: bucket_budget(self._book.effective(key, body)),
        )
        self._coordinator = Coordinator(
            kube,
            self._cache,
            partial(brokers_of, connections),
            self.consumers,
            events,
            self._metrics,
            self._settings.sessions,
            self._shards.term_of,
            self._shards.raise_term,
            self._queue.add,
            lambda key, body: drains_fanned_out(self._book.effective(key, body)),
        )
        operations = OperationQueue(kube, self._cache, events, self._queue.add)
        scaler = AutoScaler(
            self._book,
            loads,
            self.consumers,
            self._metrics.scaling,
            self._settings.auto_scale_interval_seconds,
            self._settings.operations.max_records,
        )
        self._wishes = SubscriptionWishes(kube, self._cache, self._queue.add)
        self._topics = TopicReconciler(
            *(kube, self._cache, events, self._metrics, maker, operations, scaler, self._book, self.consumers),
            *(self._wishes, self._settings.times, lambda: self._queue.ready > self._settings.workers),
        )
        self.views = LeaderViews(self._cache, maker, self._topics.memories.get, self.consumers)
        return {
            CONNECTIONS.plural: connections,
            TOPICS.plural: self._topics,
            SUBSCRIPTIONS.plural: self._coordinator,
            SEGMENT_OPERATIONS.plural: SegmentOperationController(kube, self._cache, self._queue.add),
            POLICIES.plural: SegmentAutoScalePolicyController(kube, self._cache, events, self._book),
        }

    async def _work(self, relister: Relister, looks: Looks, leadership: Leadership, stop: asyncio.Event) -> None:
        logger.info("all objects are listed; work begins")
        tasks = [
            asyncio.create_task(coroutine, name=name)
            for name, coroutine in {
                "watch": self._watch(relister),
                "relist": relister.run(),
                "queue": self._queue.run(self._reconcile, self._settings.workers),
                "probes": self._probes.run(self._reconcile, self._settings.workers),
                **{name: look() for name, look in looks.items()},
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

    async def _watch(self, relister: Relister) -> None:
        registry = make_registry(self._cache, WATCHED, self._on_change, relister.ask)
        await watch(registry, self._settings.namespaces, self._take_signals)

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
            self._metrics.reconciles.labels(kind, ReconcileResult.NOT_LED).inc()
        except (BackendUnavailable, KubeUnavailable, StaleStatus) as error:
            hung = isinstance(error, BackendUnavailable) and time.monotonic() - started > _HUNG_SECONDS
            pause = queue.failed(key, group_suffers=hung)
            logger.info("%s: %s; again in %.1f s", key, error, pause)
            self._metrics.reconciles.labels(kind, ReconcileResult.RETRIED).inc()
        except KubeError as error:
            pause = queue.failed(key)
            logger.warning("%s: %s; again in %.1f s", key, error, pause)
            self._metrics.reconciles.labels(kind, ReconcileResult.FAILED).inc()
        except Exception:
            pause = queue.failed(key)
            logger.exception("%s: unexpected; again in %.1f s", key, pause)
            self._metrics.reconciles.labels(kind, ReconcileResult.FAILED).inc()
        else:
            queue.succeeded(key)
            if again_seconds is not None:
                queue.add_after(key, again_seconds)
            self._metrics.reconciles.labels(kind, ReconcileResult.DONE).inc()
        if _generation(self._cache, key) not in (generation, None):
            # The reply to a write of ours may have told of a newer spec; its own event is then no news any more.
            queue.add(key)
        self._pass_on(key)
        self._metrics.reconcile_seconds.labels(kind).observe(time.monotonic() - started)

    async def _led(self, key: ObjectKey, work: Coroutine[None, None, float | None]) -> float | None:
        """Work as the leader, but for what every replica does: look at connections, and forget what is gone."""
        if key.plural == CONNECTIONS.plural or self._cache.get(key) is None:
            return await work
        return await self._shards.run(key, work)

    def _begin(self, key: ObjectKey) -> None:
        self._queue_of(key).add(key)

    def _forget(self, key: ObjectKey) -> None:
        if key.plural == SUBSCRIPTIONS.plural:
            if self._coordinator is not None:
                self._coordinator.forget(key)
        elif self._topics is not None:
            self._topics.memories.forget(key)

    def _decide_soon(self, key: ObjectKey) -> None:
        """What decisions on a topic depend on has changed."""
        if self._topics is not None:
            self._topics.memories.decide_soon(key)
        self._queue.add(key)

    def _queue_of(self, key: ObjectKey) -> WorkQueue[ObjectKey]:
        return self._probes if key.plural == CONNECTIONS.plural else self._queue

    def _connection_group(self, key: ObjectKey) -> ObjectKey | None:
        """Topics share the luck of their connection."""
        body = self._cache.get(key) if key.plural == TOPICS.plural else None
        return connection_of(body) if body is not None else None

    def _on_change(self, key: ObjectKey) -> None:
        # Others' objects are news to every replica: of a large fleet they would keep this one's workers from its own.
        # What it comes to lead it begins with anew.
        if key.plural == CONNECTIONS.plural or self._cache.get(key) is None or self._shards.keeps(key):
            self._queue_of(key).add(key)
        self._pass_on(key)
        if key.plural == TOPICS.plural:
            self._wake_rivals(key)
        elif key.plural == CONNECTIONS.plural and self._cache.get(key) is None:
            self._wake_topics_of(key)

    def _wake_subscriptions(self, topic: ObjectKey) -> None:
        """Who may read what follows from a topic's record, which a reply to our own write may have told of."""
        for subscription in self._cache.keys(SUBSCRIPTIONS_BY_TOPIC, str(topic)):
            self._queue.add(subscription)

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

    def _pass_on(self, key: ObjectKey) -> None:
        """Have policies looked at that count the object; it may be known by a reply only, which is no event."""
        if key.plural == TOPICS.plural:
            self._wake_policies(self._news.topic_changed(key))
        elif key.plural == CONNECTIONS.plural:
            self._wake_policies(self._news.connection_changed(key))
        elif key.plural == POLICIES.plural:
            self._wake_topics_of_policy(key)

    def _wake_topics_of_policy(self, policy: ObjectKey) -> None:
        """Have topics decided anew whose effective policy has changed, and policies looked at that it bears on."""
        affected = self._news.policy_changed(policy)
        for topic in affected.topics:
            body = self._cache.get(topic)
            if self._topics is not None and body is not None and backend_of_topic(body) == NATIVE:
                # Brokers that own the layout have to be told.
                self._topics.memories.observe_soon(topic)
            self._decide_soon(topic)
            # Whether sealed segments are shared may be among what has changed.
            self._wake_subscriptions(topic)
        self._wake_policies(affected.policies)
        for connection in affected.connections:
            # Brokers that own layouts keep policies of Pulsar namespaces.
            self._probes.add_after(connection, _POLICY_PAUSE_SECONDS)

    def _wake_policies(self, policies: Iterable[ObjectKey]) -> None:
        for policy in policies:
            self._queue.add_after(policy, _POLICY_PAUSE_SECONDS)

    def _pulse(self, relister: Relister) -> Pulse:
        return Pulse(
            synced=all(self._cache.synced(resource) for resource in WATCHED),
            list_age_seconds=relister.seconds_since_complete,
            untaken_seconds=max(self._queue.untaken_seconds, self._probes.untaken_seconds),
            longest_work_seconds=max(self._queue.longest_work_seconds, self._probes.longest_work_seconds),
        )

    async def _show_gauges(self) -> None:
        while True:
            self._metrics.queue_waiting.set(self._queue.waiting + self._probes.waiting)
            oldest_wait_seconds = max(self._queue.oldest_wait_seconds, self._probes.oldest_wait_seconds)
            self._metrics.queue_oldest_wait_seconds.set(oldest_wait_seconds)
            self._metrics.tasks.set(len(asyncio.all_tasks()))
            for resource in WATCHED:
                self._metrics.objects.labels(resource.kind).set(self._cache.count(resource))
            await asyncio.sleep(_GAUGE_SECONDS)


def _generation(cache: ObjectCache, key: ObjectKey) -> int | None:
    body = cache.get(key)
    return body["metadata"]["generation"] if body else None
