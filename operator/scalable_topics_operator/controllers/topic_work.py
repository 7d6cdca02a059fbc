"""Everything one reconcile of one ScalableTopic works with, or why it cannot begin (R1–R3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from pydantic import ValidationError

from scalable_topics.layout import LayoutError, TopicName, validate_scalable_name
from scalable_topics_operator.api.scalable_topic import ScalableTopic, ScalableTopicSpec
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.installation import Installation
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.status_store import StaleStatus, StatusStore
from scalable_topics_operator.controllers.auto_scaler import Subject
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.connection_access import why_not_allowed
from scalable_topics_operator.controllers.connections import (
    NATIVE,
    NOT_PROBED,
    ConnectionController,
    ConnectionHandle,
)
from scalable_topics_operator.controllers.intents import topic_intent
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import TopicReaders, declared_by_objects
from scalable_topics_operator.controllers.topic_backend import backend_of_topic, wanted_backend
from scalable_topics_operator.controllers.topic_memory import TopicMemory
from scalable_topics_operator.controllers.topic_status import TopicFacts
from scalable_topics_operator.controllers.topic_store import StatusTopicStore
from scalable_topics_operator.operations.context import (
    OperationContext,
    OperationSettings,
    TopicContext,
)
from scalable_topics_operator.operations.journal import Request
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.protocols import ScalableBackend
from scalable_topics_operator.operations.protocols import Claim, TopicBackend
from scalable_topics_operator.operations.topic_state import read_state
from scalable_topics_operator.telemetry.metrics import Metrics

BY_NAME = "topics-by-name"
BY_CONNECTION = "topics-by-connection"
BY_PULSAR_NAMESPACE = "topics-by-pulsar-namespace"


class Stuck(Exception):
    """The topic cannot be worked on until something outside changes.

    Args:
        standing: what its conditions shall say; None to leave its status alone.
        retry_seconds: when to look again; None when an event will come.
    """

    def __init__(self, standing: Standing | None, retry_seconds: float | None = None) -> None:
        super().__init__(standing.message if standing else "")
        self.standing = standing
        self.retry_seconds = retry_seconds


class SystemClock:
    """The real time."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_seconds(self) -> float:
        """Never goes back; compares within one process only."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWork:
    """One topic, ready to be worked on; `generation` is that of `spec`, whatever the object has become since.

    `moved_from` is the Pulsar cluster that the status names where the connection leads to another, if only by name:
    what a cluster is called depends on what the token may ask.
    """

    key: ObjectKey
    spec: ScalableTopicSpec
    generation: int
    topic: TopicName
    handle: ConnectionHandle
    store: StatusTopicStore
    memory: TopicMemory
    request: Request
    ctx: TopicContext
    moved_from: str = ""

    async def require_cluster_of(self, claim: Claim | None) -> None:
        """Make sure that the topic is where its connection leads to, given the claim found there. Raises Stuck.

        A topic tells by its claim: no other cluster has one with this object's uid.
        """
        if claim is None or claim.resource_uid != self.store.facts.uid:
            raise Stuck(
                Standing.stuck(
                    "ConnectionChanged",
                    f"the topic is on Pulsar cluster {self.moved_from}, but the connection leads to "
                    f"{self.store.facts.cluster_id}; point the connection back or create another ScalableTopic",
                ),
                60.0,
            )
        # Writes the cluster's new name.
        await self.store.commit(self.store.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicWork(TopicWork):
    """One topic whose layout the operator owns."""

    ctx: OperationContext


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeWork(TopicWork):
    """One topic whose layout the brokers own."""

    ctx: NativeContext

    @classmethod
    def of(cls, work: TopicWork, ctx: NativeContext) -> NativeWork:
        """The same work with another context."""
        return cls(**{**{one.name: getattr(work, one.name) for one in fields(TopicWork)}, "ctx": ctx})


AnyWork = ClassicWork | NativeWork
WorkT = TypeVar("WorkT", bound=TopicWork)
WorkT_contra = TypeVar("WorkT_contra", bound=TopicWork, contravariant=True)


def canonical_topic(body: Body) -> str | None:
    """Index function: the canonical name of a ScalableTopic's topic."""
    try:
        return str(TopicName.parse(body["spec"]["topic"]))
    except LayoutError:
        return None


def pulsar_namespace(body: Body) -> str | None:
    """Index function: `tenant/namespace` of a ScalableTopic's topic."""
    try:
        return TopicName.parse(body["spec"]["topic"]).pulsar_namespace
    except LayoutError:
        return None


def brokers_of(connections: ConnectionController, body: Body) -> TopicBackend | None:
    """The brokers of a ScalableTopic; None while they cannot be asked."""
    handle = connections.handle(connection_of(body))
    return handle.backend if handle is not None and not handle.problem else None


class TopicWorkMaker:
    """Checks a ScalableTopic against everything that must hold before the brokers are asked for anything.

    Args:
        cache: objects as last seen.
        connections: to Pulsar clusters.
        events: tell people.
        installation: whose claims are ours.
        settings: times and bounds of operations.
        metrics: count what is written.
        term_of: of a topic's leadership.
        raise_term: called with a term that a later leader has written.
        budget_of: entry buckets of a topic, as policies have it.
    """

    def __init__(
        self,
        cache: ObjectCache,
        connections: ConnectionController,
        events: EventRecorder,
        installation: Installation,
        settings: OperationSettings,
        metrics: Metrics,
        term_of: Callable[[ObjectKey], int],
        raise_term: Callable[[ObjectKey, int], None],
        budget_of: Callable[[ObjectKey, Body], int],
    ) -> None:
        self._cache = cache
        self._term_of = term_of
        self._raise_term = raise_term
        self._budget_of = budget_of
        self._connections = connections
        self._events = events
        self._installation = installation
        self._settings = settings
        self._metrics = metrics

    def make(self, key: ObjectKey, store: StatusStore, memory: TopicMemory) -> AnyWork:
        """Put together the work on a topic.

        Raises Stuck with what its conditions shall say, StaleStatus when a later leader has been here (R5).
        """
        body = store.body
        spec = _parse(body)
        topic = _topic_name(spec)
        handle, backend = self._connected(body)
        self._check_use(key, body, spec, topic, handle)
        self._check_rivals(key, body, topic, handle)
        metadata = body["metadata"]
        cluster_id = handle.probe.cluster_id if handle.probe else ""
        recorded = (body.get("status") or {}).get("clusterId")
        kind = wanted_backend(body, handle)
        facts = TopicFacts(metadata["uid"], metadata["generation"], str(topic), kind, cluster_id)
        topic_store = self._store(key, store, facts)
        native, backend = _native(handle) if kind == NATIVE else (None, backend)
        ctx = OperationContext(
            topic=topic,
            store=topic_store,
            declared=topic_intent(
                spec, declared_by_objects(self._cache, key), bucket_budget=self._budget_of(key, body)
            ),
            claim=Claim(
                installation_id=self._installation.installation_id,
                kubernetes_uid=self._installation.kubernetes_uid,
                resource_uid=metadata["uid"],
                resource_namespace=key.namespace,
                resource_name=key.name,
                backend=kind,
            ),
            clock=SystemClock(),
            settings=self._settings,
            report=_Reporter(self._events, body),
            term=self._term_of(key),
            backend=backend,
            published=memory.published,
            readers=TopicReaders(self._cache, key),
            opened_here=memory.opened_here,
        )
        work = ClassicWork(
            key=key,
            spec=spec,
            generation=metadata["generation"],
            topic=topic,
            handle=handle,
            store=topic_store,
            memory=memory,
            request=Request("ScalableTopic", key.name, metadata["uid"]),
            moved_from=recorded if recorded and recorded != cluster_id else "",
            ctx=ctx,
        )
        return work if native is None else NativeWork.of(work, NativeContext.around(ctx, native))

    def _store(self, key: ObjectKey, store: StatusStore, facts: TopicFacts) -> StatusTopicStore:
        """The topic's record. Raises Stuck for one that is broken, StaleStatus for one of a later leader (R5)."""
        try:
            topic_store = StatusTopicStore(store, facts, self._metrics)
        except (LayoutError, KeyError, ValueError) as error:
            raise Stuck(
                Standing.stuck("InvalidRecord", f"status is not a valid record and nothing acts on it: {error}")
            ) from error
        term = self._term_of(key)
        operation = topic_store.state.operation
        if operation is not None and operation.term > term:
            self._raise_term(key, operation.term)
            raise StaleStatus(f"{key} was worked on in term {operation.term}, after this replica's {term}")
        return topic_store

    def subject(self, key: ObjectKey, body: Body, last: Subject | None = None) -> Subject | None:
        """A topic as decisions see it; None where it or its connection are not in a state to be decided on.

        Args:
            key: of the object.
            body: the object as the cache has it, which is changed by nobody.
            last: what this has answered before: as long as the object is the same, nothing is read anew.
        """
        handle = self._connections.handle(connection_of(body))
        if handle is None or handle.problem:
            return None
        if last is not None and last.body is body and last.handle is handle:
            return last
        try:
            spec = _parse(body)
            topic = _topic_name(spec)
            state = read_state(body.get("status") or {})
        except (Stuck, LayoutError, KeyError, ValueError):
            return None
        return Subject.of(key, body, spec, topic, state, handle, backend_of_topic(body))

    def why_forbidden(self, work: TopicWork, operation: str) -> str:
        """Why a connection does not let the topic `Adopt`, `Migrate` or `Delete`; empty if it does."""
        connection = connection_of(work.store.body)
        return why_not_allowed(
            work.handle.spec.allow,
            connection_namespace=connection.namespace,
            topic_namespace=work.key.namespace,
            topic=work.topic,
            operation=operation,
        )

    def _connected(self, body: Body) -> tuple[ConnectionHandle, TopicBackend]:
        key = connection_of(body)
        if self._cache.get(key) is None:
            raise Stuck(
                Standing.stuck(
                    "ConnectionMissing",
                    f"there is no ScalableTopicConnection {key.namespace}/{key.name}; create it or correct "
                    "spec.connectionRef",
                )
            )
        handle = self._connections.handle(key)
        if handle is None or handle.problem == NOT_PROBED:
            raise Stuck(None)
        if handle.problem or handle.backend is None:
            raise Stuck(Standing.working("ConnectionDown", f"connection {key.namespace}/{key.name}: {handle.problem}"))
        return handle, handle.backend

    def _check_use(
        self, key: ObjectKey, body: Body, spec: ScalableTopicSpec, topic: TopicName, handle: ConnectionHandle
    ) -> None:
        connection = connection_of(body)
        why = why_not_allowed(
            handle.spec.allow,
            connection_namespace=connection.namespace,
            topic_namespace=key.namespace,
            topic=topic,
        )
        if why:
            raise Stuck(Standing.stuck("NotAllowed", f"connection {connection.namespace}/{connection.name}: {why}"))
        if spec.migrate_from is not None and (why := wants_other_topic(spec.migrate_from.topic, topic)):
            raise Stuck(Standing.stuck("InvalidSpec", why))

    def _check_rivals(self, key: ObjectKey, body: Body, topic: TopicName, handle: ConnectionHandle) -> None:
        """Of two objects for one topic on one Pulsar cluster the older one wins, then the lower uid (R1)."""
        if (body.get("status") or {}).get("layout"):
            # It holds the claim already; the broker's atomic create has decided.
            return
        cluster_id = handle.probe.cluster_id if handle.probe else ""
        for rival_key, rival in self._cache.find(BY_NAME, str(topic)):
            if rival_key == key or rival["metadata"].get("deletionTimestamp"):
                continue
            rival_handle = self._connections.handle(connection_of(rival))
            if rival_handle is None or rival_handle.probe is None:
                continue
            if rival_handle.probe.cluster_id == cluster_id and _seniority(rival) < _seniority(body):
                raise Stuck(
                    Standing.stuck(
                        "Conflict",
                        f"{topic} is already declared by ScalableTopic {rival_key.namespace}/{rival_key.name}, "
                        "which is older; remove one of them",
                    )
                )


def wants_other_topic(migrate_from: str, topic: TopicName) -> str:
    """Why `spec.migrateFrom.topic` cannot be migrated into a topic; empty if it is the same. Pure."""
    try:
        named = TopicName.parse(migrate_from)
    except LayoutError as error:
        return f"spec.migrateFrom.topic: {error}"
    if named == topic:
        return ""
    return (
        f"spec.migrateFrom.topic is {migrate_from}, but the topic is {topic}: a migrated topic keeps its name; make "
        "them the same"
    )


def _parse(body: Body) -> ScalableTopicSpec:
    try:
        return ScalableTopic.model_validate(body).spec
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Stuck(Standing.stuck("InvalidSpec", f"{where}: {first['msg']}")) from error


def _topic_name(spec: ScalableTopicSpec) -> TopicName:
    try:
        topic = TopicName.parse(spec.topic)
        validate_scalable_name(topic)
    except LayoutError as error:
        raise Stuck(Standing.stuck("InvalidName", str(error))) from error
    return topic


def _native(handle: ConnectionHandle) -> tuple[ScalableBackend, TopicBackend]:
    """The brokers as owners of layouts, and of ordinary topics beside. Raises Stuck where they own no layouts."""
    if handle.native is None or handle.ordinary is None:
        version = handle.probe.version if handle.probe else "unknown"
        raise Stuck(
            Standing.stuck(
                "BackendUnavailable",
                f"the topic was made with backend Native and keeps it, but the brokers (version {version}) have no "
                "scalable topics of their own; they come with Pulsar 5",
            ),
            60.0,
        )
    return handle.native, handle.ordinary


def _seniority(body: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    return body["metadata"]["creationTimestamp"], body["metadata"]["uid"]


@dataclass(frozen=True, slots=True)
class _Reporter:
    events: EventRecorder
    about: Body

    async def __call__(self, reason: str, message: str, *, warning: bool = True) -> None:
        await (self.events.warning if warning else self.events.normal)(self.about, reason, message)
