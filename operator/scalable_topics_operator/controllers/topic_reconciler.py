"""One reconcile of one ScalableTopic: spec, record and brokers brought to agree (DESIGN §6, §7)."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, replace

from scalable_topics.layout import LayoutError
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import FINALIZER, TOPICS
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.auto_scaler import AutoScaler, Subject
from scalable_topics_operator.controllers.automatic_changes import AutomaticChanges
from scalable_topics_operator.controllers.claim_owner import owner_alive
from scalable_topics_operator.controllers.conditions import Standing, find_condition, holds, with_aspects
from scalable_topics_operator.controllers.migrations import Migrations
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.operation_queue import OperationQueue
from scalable_topics_operator.controllers.ordered_subscriptions import declared_by_objects, has_cursors_for
from scalable_topics_operator.controllers.refusals import refusal_reason
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes, has_unfinished
from scalable_topics_operator.controllers.timestamps import age_seconds, timestamp_now
from scalable_topics_operator.controllers.topic_finalizer import TopicFinalizer
from scalable_topics_operator.controllers.topic_memory import TopicMemories, TopicMemory
from scalable_topics_operator.controllers.topic_status import (
    cursor_problem,
    managed_by,
    may_prune,
    migrated_aspect,
    paused_aspect,
    recorded_managed,
    spec_changed,
    with_managed,
    with_standing,
)
from scalable_topics_operator.controllers.topic_work import (
    Stuck,
    TopicWork,
    TopicWorkMaker,
    connection_of,
)
from scalable_topics_operator.operations.announce import publish
from scalable_topics_operator.operations.claims import Verdict, judge_name
from scalable_topics_operator.operations.create import establish
from scalable_topics_operator.operations.drift import repair_drift
from scalable_topics_operator.operations.errors import (
    BackendError,
    BackendRefused,
    BackendUnavailable,
    MigrationRefused,
    NotYet,
)
from scalable_topics_operator.operations.journal import OperationKind, Request, Result, Step
from scalable_topics_operator.operations.prune import delete_pruned, find_prunable, prune
from scalable_topics_operator.operations.recover import (
    look_or_take_back,
    rebuild_if_outdated,
    require_claim,
)
from scalable_topics_operator.operations.reshape import advance_reshape
from scalable_topics_operator.operations.seek import advance_seek
from scalable_topics_operator.operations.subscriptions import settle_subscriptions
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

_REFUSED_RETRY_SECONDS = 30.0
_LISTING_AGE_SECONDS = 5.0
_YOUNG_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ReconcileTimes:
    """How often what is not asked for by events is looked at.

    Args:
        drift_seconds: between two comparisons of the record with the brokers.
        prune_seconds: between two looks for prunable segments (R19).
    """

    drift_seconds: float = 300.0
    prune_seconds: float = 60.0


class TopicReconciler:
    """Reconciles ScalableTopics; holds nothing between reconciles but `memories`."""

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        events: EventRecorder,
        metrics: Metrics,
        maker: TopicWorkMaker,
        operations: OperationQueue,
        scaler: AutoScaler,
        wishes: SubscriptionWishes,
        times: ReconcileTimes,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._events = events
        self._metrics = metrics
        self._maker = maker
        self._operations = operations
        self._migrations = Migrations(operations, maker)
        self._scaler = scaler
        self._wishes = wishes
        self._changes = AutomaticChanges(
            self._finish_operations, cache, operations, metrics.scaling, times.prune_seconds, _REFUSED_RETRY_SECONDS
        )
        self._times = times
        self._finalizer = TopicFinalizer(kube, cache, events, maker)
        self.memories = TopicMemories(metrics)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Bring one topic forward; answers when to look again, in seconds, if no event comes first.

        Raises BackendUnavailable, StaleStatus or KubeError when it should be tried again with back-off.
        """
        body = self._cache.get(key)
        if body is None:
            self.memories.forget(key)
            return None
        if self.memories.is_new(key, body):
            body = await self._read_again(key)
            if body is None:
                return None
        memory = self.memories.of(key, body)
        store = self._store(body)
        generation = body["metadata"]["generation"]
        if body["metadata"].get("deletionTimestamp"):
            return await self._finalizer.finalize(key, store, memory)
        if spec_changed(body):
            # Remembered, because a first attempt that fails marks the spec as seen.
            memory.drift_due = memory.scale.due = 0.0
        if self._scaler.is_due(memory.scale) and self._only_looking(key, body):
            await self._decide(key, body, memory)
        if self._settled(key, body, memory):
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
        return _REFUSED_RETRY_SECONDS

    async def _decide(self, key: ObjectKey, body: Body, memory: TopicMemory) -> None:
        """Decide on a topic of which nothing else is to be done: mostly that is all, without a call or a write."""
        subject = self._maker.subject(key, body)
        if subject is None:
            self._scaler.put_off(memory.scale)
        else:
            memory.shown = str(subject.topic)
            await self._scaler.look(subject, memory.scale)

    async def _work(self, work: TopicWork) -> None:
        body = await self._finalizer.ensure(work.key, work.store.body)
        if body is not work.store.body:
            work = self._maker.make(work.key, self._store(body), work.memory)
        await work.require_same_cluster()
        layout = work.store.state.layout
        if layout is None:
            await self._establish(work)
        elif work.memory.may_be_outdated(layout.next_segment_id):
            # Only what was there before the process may be looked up in a listing that others asked for.
            known = work.memory.next_segment_id is not None or age_seconds(body["metadata"]) < _YOUNG_SECONDS
            listing_age_seconds = 0.0 if known else _LISTING_AGE_SECONDS
            await rebuild_if_outdated(work.ctx, work.request, listing_age_seconds=listing_age_seconds)
        await self._finish_operations(work)
        if work.store.state.layout is None:
            raise _not_migrated(work)
        if not work.spec.paused:
            if self._will_act(work):
                # Another installation may have adopted the topic since we last looked.
                await require_claim(work.ctx)
            await self._wishes.grant(work.key, work.ctx)
            await settle_subscriptions(work.ctx)
            if await self._can_tell(work):
                await self._run_requests(work)
                await self._changes.approach_desired(work)
                await self._auto_scale(work)
            problem = await self._check_drift(work)
            await self._prune(work)
        else:
            problem = None
            await self._operations.show_waiting(work.key, f"ScalableTopic {work.key.name}: spec.paused is true")
        await publish(work.ctx)
        await self._show_done(work, problem)

    async def _can_tell(self, work: TopicWork) -> bool:
        """Whether clients are told of the layout; nothing is begun that could not be announced to them (R13)."""
        if not self._will_act(work):
            return True
        try:
            await publish(work.ctx)
        except BackendError as error:
            # Repairs must not wait for this; it is raised again once they are done.
            logger.warning("%s: nothing is begun while its layout cannot be published: %s", work.topic, error)
            return False
        return True

    async def _establish(self, work: TopicWork) -> None:
        name = await look_or_take_back(work.ctx, work.request)
        if name is None or await self._migrations.answer(work, name):
            return
        if work.spec.paused:
            raise Stuck(Standing.working("Paused", "spec.paused is true; the topic is not created"))
        alive = name.claim is not None and await owner_alive(self._kube, name.claim)
        judgement = judge_name(
            name,
            work.ctx.claim,
            owner_alive=alive,
            adopt=work.ctx.declared.adopt,
            migrates=work.ctx.declared.migrates,
        )
        if judgement.verdict is Verdict.MIGRATABLE:
            await self._migrations.begin_declared(work, name)
            return
        if judgement.verdict is Verdict.ADOPTABLE and (why := self._maker.why_forbidden(work, "Adopt")):
            raise Stuck(Standing.stuck("NotAllowed", why))
        await establish(work.ctx, name, judgement, work.request)
        # A topic just made or rebuilt from its segments agrees with them.
        self._drift_checked(work.memory)

    def _will_act(self, work: TopicWork) -> bool:
        layout, desired = work.store.state.layout, work.spec.segments.desired
        return bool(
            work.memory.scale.pending
            or spec_changed(work.store.body)
            or self._operations.pending(work.key)
            or self._wishes.pending(work.key)
            or (layout is not None and desired not in (None, len(layout.active)))
        )

    async def _finish_operations(self, work: TopicWork) -> None:
        """Take an open journal to its end, then tell the SegmentOperations it was about."""
        while (operation := work.store.state.operation) is not None:
            if operation.kind is OperationKind.DELETE:
                # The object was to be deleted and is not any more: what is left is rebuilt by drift repair.
                await work.store.commit(replace(work.store.state, operation=None))
                work.memory.drift_due = 0.0
                continue
            if operation.step is Step.SEALING:
                await self._operations.settle(work.key, work.ctx)
            if operation.moves_cursors:
                await advance_seek(work.ctx, operation)
            else:
                await advance_reshape(work.ctx, operation)
                self._reshaped(work)
        await self._operations.settle(work.key, work.ctx)

    async def _run_requests(self, work: TopicWork) -> None:
        while await self._operations.start_next(work.key, work.ctx):
            await self._finish_operations(work)

    async def _auto_scale(self, work: TopicWork) -> None:
        """Decide again on what the record says now, since it may have changed since the decision that led here."""
        layout = work.store.state.layout
        scale, connection = work.memory.scale, connection_of(work.store.body)
        if layout is None or not (scale.pending or self._scaler.is_due(scale)):
            return
        subject = Subject(
            work.key, work.store.body, work.spec, work.topic, layout, work.store.state.clocks, connection, work.handle
        )
        decision = await self._scaler.look(subject, scale)
        scale.pending = False
        if decision.action is not None:
            self._scaler.acted(scale, succeeded=await self._changes.act(work, decision))

    async def _check_drift(self, work: TopicWork) -> Standing | None:
        """Compare with the brokers when that is due or the spec changed; answers what is lost."""
        spec_changed = work.store.status.get("observedGeneration") != work.generation
        if not spec_changed and time.monotonic() < work.memory.drift_due:
            return cursor_problem(work.store.state)
        request = Request("DriftRepair", work.key.name, work.request.uid)
        report = await repair_drift(
            work.ctx,
            managed=recorded_managed(work.store.status),
            listing_age_seconds=_LISTING_AGE_SECONDS,
            request=request,
        )
        self._drift_checked(work.memory)
        # What clients can read is compared, too: somebody may have deleted or trimmed the layout topic.
        work.memory.published.message = None
        if report.reopened:
            await self._finish_operations(work)
            work.memory.drift_due = 0.0
        status = dict(work.store.status)
        reports = [{"reason": reason, "message": message} for reason, message in report.problems]
        status.pop("reports", None)
        await work.store.write_status({**status, "reports": reports} if reports else status)
        return cursor_problem(work.store.state)

    async def _prune(self, work: TopicWork) -> None:
        state = work.store.state
        if state.layout is None or time.monotonic() < work.memory.prune_due:
            return
        if state.layout.sealed:
            findings = await find_prunable(work.ctx)
            free = [finding.segment_id for finding in findings if not finding.blocked_by]
            if free:
                await prune(work.ctx, free, Request("Retention", work.key.name, work.request.uid))
        await delete_pruned(work.ctx)
        work.memory.prune_due = time.monotonic() + self._times.prune_seconds

    async def _show_done(self, work: TopicWork, problem: Standing | None) -> None:
        layout = work.store.state.layout
        if layout is not None:
            work.memory.next_segment_id = layout.next_segment_id
            work.memory.shown = str(work.topic)
            self._metrics.show_layout(
                str(work.topic), active=len(layout.active), sealed=len(layout.sealed), epoch=layout.epoch
            )
        generation, now = work.generation, timestamp_now()
        status = with_standing(work.store.status, problem or Standing.healthy(), generation=generation, now=now)
        aspects = (
            *self._scaler.aspects(status, work.memory.scale),
            paused_aspect(paused=work.spec.paused),
            migrated_aspect(work.store.state.migrated_from),
        )
        status = with_aspects(status, aspects, generation=generation, now=now)
        if not work.spec.paused:
            status = with_managed(status, managed_by(work.ctx.intent))
        before = find_condition(work.store.status, "Ready").get("reason")
        await work.store.write_status(status)
        if problem is not None and before != problem.reason:
            await self._events.warning(work.store.body, problem.reason, problem.message)

    async def _stand(self, key: ObjectKey, store: StatusStore, standing: Standing, generation: int) -> None:
        """Write why the topic is not worked on, tell of it once, and let its SegmentOperations wait."""
        body = self._cache.get(key)
        if body is None:
            return
        before = find_condition(store.status, "Ready")
        await store.write(with_standing(store.status, standing, generation=generation, now=timestamp_now()))
        if standing.stalled and (before.get("reason"), before.get("status")) != (standing.reason, "False"):
            await self._events.warning(body, standing.reason, standing.message)
        await self._operations.show_waiting(key, f"ScalableTopic {key.name}: {standing.message}")

    def _settled(self, key: ObjectKey, body: Body, memory: TopicMemory) -> bool:
        """Whether nothing at all is to be done; what most reconciles of a large fleet find, without a call."""
        now = time.monotonic()
        # A record that lacks something is told of by whoever reads all of it.
        next_segment_id = ((body.get("status") or {}).get("layout") or {}).get("nextSegmentId")
        return (
            self._only_looking(key, body)
            and next_segment_id is not None
            and not memory.may_be_outdated(next_segment_id)
            and memory.published.is_known
            and not memory.scale.pending
            and not self._scaler.has_news(body["status"], memory.scale)
            and now < memory.drift_due
            and (now < memory.prune_due or not may_prune(body["status"]))
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

    def _drift_checked(self, memory: TopicMemory) -> None:
        # Spread, so that a fleet that started together does not ask the brokers together for ever.
        memory.drift_due = time.monotonic() + self._times.drift_seconds * random.uniform(0.8, 1.2)

    def _reshaped(self, work: TopicWork) -> None:
        work.memory.prune_due = min(work.memory.prune_due, time.monotonic() + self._times.prune_seconds)
        if work.spec.policies is not None and work.spec.policies.total is not None:
            # The totals are shared by another number of segments now (R27).
            work.memory.drift_due = 0.0

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


def _not_migrated(work: TopicWork) -> Exception:
    """Why a topic that was to be migrated has no layout yet."""
    last = work.store.state.actions[-1]
    if last.result is Result.ROLLED_BACK:
        return BackendUnavailable(f"{work.topic}: {last.message}; the migration is begun anew")
    return MigrationRefused("NotMigrated", last.message)
