"""One reconcile of one ScalableTopic: spec, record and brokers brought to agree (DESIGN §6, §7)."""

from __future__ import annotations

import time
from collections.abc import Callable

from scalable_topics.layout import LayoutError
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import FINALIZER, TOPICS
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.auto_scaler import AutoScaler
from scalable_topics_operator.controllers.automatic_changes import AutomaticChanges
from scalable_topics_operator.controllers.classic_course import ClassicCourse
from scalable_topics_operator.controllers.conditions import Standing, find_condition, holds, with_aspects
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.native_course import NativeCourse
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.operation_queue import OperationQueue
from scalable_topics_operator.controllers.ordered_subscriptions import declared_by_objects, has_cursors_for
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.reconcile_times import LookTimes, ReconcileTimes
from scalable_topics_operator.controllers.refusals import refusal_reason
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes, has_unfinished
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.controllers.topic_course import Courses, Outcome
from scalable_topics_operator.controllers.topic_finalizer import TopicFinalizer
from scalable_topics_operator.controllers.topic_memory import TopicMemories, TopicMemory
from scalable_topics_operator.controllers.topic_status import (
    may_prune,
    paused_aspect,
    spec_changed,
    with_managed,
    with_standing,
)
from scalable_topics_operator.controllers.topic_work import AnyWork, Stuck, TopicWorkMaker
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, NotYet
from scalable_topics_operator.telemetry.metrics import Metrics


class TopicReconciler:
    """Reconciles ScalableTopics; holds nothing between reconciles but `memories`.

    Args:
        kube: the API server.
        cache: objects as last seen.
        events: tells people.
        metrics: of topics.
        maker: puts the work on a topic together.
        operations: SegmentOperations.
        scaler: decides on segments.
        policies: which apply to which topic.
        consumers: counts of them.
        wishes: what callers want of subscriptions.
        times: how often what is not asked for by events is looked at.
        is_busy: whether more waits to be done than is done at once.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        events: EventRecorder,
        metrics: Metrics,
        maker: TopicWorkMaker,
        operations: OperationQueue,
        scaler: AutoScaler,
        policies: PolicyBook,
        consumers: ConsumerCounts,
        wishes: SubscriptionWishes,
        times: ReconcileTimes,
        is_busy: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._events = events
        self._metrics = metrics
        self._maker = maker
        self._operations = operations
        self._scaler = scaler
        self._wishes = wishes
        self._times = times
        self.memories = TopicMemories(metrics)
        self._looks = LookTimes(times, self.memories, is_busy)
        changes = AutomaticChanges(
            cache, operations, scaler, metrics.scaling, times.prune_seconds, times.refused_retry_seconds
        )
        self._courses = Courses(
            ClassicCourse(kube, maker, operations, changes, wishes, metrics.segments, self._looks, times.prune_seconds),
            NativeCourse(kube, maker, operations, changes, policies, consumers, wishes, self._looks),
        )
        self._finalizer = TopicFinalizer(kube, cache, events, maker, self._courses)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Bring one topic forward; answers when to look again, in seconds, if no event comes first.

        Raises BackendUnavailable, StaleStatus or KubeError when it should be tried again with back-off.
        """
        body = self._cache.get(key)
        if body is None:
            self.memories.forget(key)
            return None
        is_new = self.memories.is_new(key, body)
        if is_new:
            body = await self._read_again(key)
            if body is None:
                return None
        memory = self.memories.of(key, body)
        if is_new and self._only_looking(key, body):
            self._looks.begin(memory)
        store = self._store(body)
        generation = body["metadata"]["generation"]
        if body["metadata"].get("deletionTimestamp"):
            return await self._finalizer.finalize(key, store, memory)
        if spec_changed(body):
            # Remembered, because a first attempt that fails marks the spec as seen.
            memory.drift_due = memory.scale.due = 0.0
        if self._only_looking(key, body):
            if self._scaler.is_due(memory.scale):
                await self._decide(key, body, memory)
            # What has come meanwhile has put the topic into the queue again.
            if self._settled(body, memory):
                return self._next_look(key, body, memory)
        try:
            await self._wishes.drop_objects(key, body)
            work = self._maker.make(key, store, memory)
            await self._work(work)
            return self._next_look(key, self._cache.get(key) or body, memory)
        except NotYet as waiting:
            return waiting.retry_seconds
        except Stuck as stuck:
            if stuck.standing is not None:
                await self._stand(key, store, stuck.standing, generation)
            return stuck.retry_seconds
        except BackendUnavailable as error:
            if memory.published.behind or not self._only_looking(key, store.body):
                await self._stand(key, store, Standing.working("BrokerUnavailable", str(error)), generation)
            raise
        except BackendRefused as error:
            await self._stand(key, store, Standing.stuck(refusal_reason(error), str(error)), generation)
        except LayoutError as error:
            await self._stand(key, store, Standing.stuck("InvalidRecord", str(error)), generation)
        return self._times.refused_retry_seconds

    async def _decide(self, key: ObjectKey, body: Body, memory: TopicMemory) -> None:
        """Decide on a topic of which nothing else is to be done: mostly that is all, without a call or a write."""
        subject = memory.scale.subject = self._maker.subject(key, body, memory.scale.subject)
        if subject is None:
            self._scaler.put_off(memory.scale)
        else:
            memory.shown = str(subject.topic)
            await self._scaler.look(subject, memory.scale)

    async def _work(self, work: AnyWork) -> None:
        body = await self._finalizer.ensure(work.key, work.store.body)
        if body is not work.store.body:
            work = self._maker.make(work.key, self._store(body), work.memory)
        await self._courses.require_same_cluster(work)
        await self._show_done(work, await self._courses.advance(work))

    async def _show_done(self, work: AnyWork, outcome: Outcome) -> None:
        layout, problem = work.store.state.layout, outcome.problem
        if layout is not None:
            work.memory.next_segment_id = layout.next_segment_id
            work.memory.shown = str(work.topic)
            self._metrics.show_layout(str(work.topic), layout)
        if work.spec.paused:
            self.memories.stop_looking(work.key)
        generation, now = work.generation, timestamp_now()
        status = with_standing(work.store.status, problem or Standing.healthy(), generation=generation, now=now)
        aspects = (
            *self._scaler.aspects(status, work.memory.scale),
            paused_aspect(paused=work.spec.paused),
            *outcome.aspects,
        )
        status = with_aspects(status, aspects, generation=generation, now=now)
        if outcome.managed is not None:
            status = with_managed(status, outcome.managed)
        before = find_condition(work.store.status, "Ready").get("reason")
        await work.store.write_status(status)
        if problem is not None and before != problem.reason:
            await self._events.warning(work.store.body, problem.reason, problem.message)

    async def _stand(self, key: ObjectKey, store: StatusStore, standing: Standing, generation: int) -> None:
        """Write why the topic is not worked on, tell of it once, and let its SegmentOperations wait."""
        body = self._cache.get(key)
        if body is None:
            return
        if standing.stalled:
            self.memories.stop_looking(key)
        before = find_condition(store.status, "Ready")
        await store.write(with_standing(store.status, standing, generation=generation, now=timestamp_now()))
        if standing.stalled and (before.get("reason"), before.get("status")) != (standing.reason, "False"):
            await self._events.warning(body, standing.reason, standing.message)
        await self._operations.show_waiting(key, f"ScalableTopic {key.name}: {standing.message}")

    def _settled(self, body: Body, memory: TopicMemory) -> bool:
        """Whether not even a look at the brokers is due; what most reconciles of a large fleet find, without a call."""
        now = time.monotonic()
        # A record that lacks something is told of by whoever reads all of it.
        next_segment_id = ((body.get("status") or {}).get("layout") or {}).get("nextSegmentId")
        return (
            next_segment_id is not None
            and not memory.may_be_outdated(next_segment_id)
            and memory.published.is_known
            and not memory.scale.pending
            and not self._scaler.has_news(body["status"], memory.scale)
            and (now < memory.prune_due or not may_prune(body["status"]))
            and not self._looks.is_due(memory)
        )

    def _only_looking(self, key: ObjectKey, body: Body) -> bool:
        """Whether all that is left are looks at the brokers: a failed look is no news worth a status write."""
        status = body.get("status") or {}
        metadata, spec = body["metadata"], body["spec"]
        desired = (spec.get("segments") or {}).get("desired")
        return bool(
            status.get("observedGeneration") == metadata["generation"]
            and holds(status, "Ready")
            and not holds(status, "Reconciling")
            and FINALIZER in (metadata.get("finalizers") or [])
            and status.get("layout")
            and not status.get("operation")
            and (desired is None or desired == (status.get("segments") or {}).get("active"))
            and not self._operations.pending(key)
            and not self._wishes.pending(key)
            and not has_unfinished(body)
            and has_cursors_for(status, declared_by_objects(self._cache, key))
        )

    def _next_look(self, key: ObjectKey, body: Body, memory: TopicMemory) -> float | None:
        if body["spec"].get("paused"):
            return None
        now = time.monotonic()
        due = min(memory.drift_due, memory.scale.due)
        due = min(due, now + self._wishes.next_look_seconds(key, body))
        if may_prune(body.get("status") or {}):
            due = min(due, memory.prune_due)
        return max(0.0, due - now)

    async def _read_again(self, key: ObjectKey) -> Body | None:
        """The object as it is now, or None if it is gone.

        Another replica may have led it until a moment ago, and what it did last may not have come over the watch yet:
        of an object that is gone the topic must not be made again.
        """
        try:
            body = await self._kube.get(TOPICS, key.namespace, key.name)
        except KubeNotFound:
            self._cache.remove(key)
            self.memories.forget(key)
            return None
        self._observe(body)
        return self._cache.get(key)

    def _store(self, body: Body) -> StatusStore:
        return StatusStore(self._kube, TOPICS, body, self._observe)

    def _observe(self, written: Body) -> None:
        self._cache.observe(TOPICS, written)
