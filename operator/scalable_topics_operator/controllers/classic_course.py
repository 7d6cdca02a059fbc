"""The course of topics whose layout the operator owns (Classic): every change is a journaled list of steps (R8)."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from scalable_topics.layout import SegmentChange
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.object_key import connection_text
from scalable_topics_operator.controllers.automatic_changes import AutomaticChanges
from scalable_topics_operator.controllers.claim_owner import owner_alive
from scalable_topics_operator.controllers.classic_requests import ClassicRequests
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.migrations import Migrations, not_migrated
from scalable_topics_operator.controllers.operation_queue import OperationQueue
from scalable_topics_operator.controllers.reconcile_times import LookTimes
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes
from scalable_topics_operator.controllers.timestamps import age_seconds
from scalable_topics_operator.controllers.topic_course import Outcome
from scalable_topics_operator.controllers.topic_status import (
    cursor_problem,
    managed_by,
    migrated_aspect,
    recorded_managed,
    spec_changed,
)
from scalable_topics_operator.controllers.topic_work import ClassicWork, Stuck, TopicWorkMaker
from scalable_topics_operator.operations.announce import publish
from scalable_topics_operator.operations.claims import Judgement, Verdict, judge_name
from scalable_topics_operator.operations.create import establish
from scalable_topics_operator.operations.drift import repair_drift
from scalable_topics_operator.operations.errors import (
    BackendError,
    BackendRefused,
)
from scalable_topics_operator.operations.journal import Action, OperationKind, Request, Step
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.migrate import open_migration
from scalable_topics_operator.operations.protocols import TopicBackend
from scalable_topics_operator.operations.prune import delete_pruned, find_prunable, prune
from scalable_topics_operator.operations.recover import look_or_take_back, rebuild_if_outdated, require_claim
from scalable_topics_operator.operations.reshape import advance_reshape, open_reshape
from scalable_topics_operator.operations.seek import advance_seek
from scalable_topics_operator.operations.subscriptions import settle_subscriptions
from scalable_topics_operator.operations.teardown import delete_topic, release
from scalable_topics_operator.telemetry.segment_metrics import SegmentMetrics

logger = logging.getLogger(__name__)

_LISTING_AGE_SECONDS = 5.0
_YOUNG_SECONDS = 60.0
_NAMESAKE = "NamesakeOnBrokers"


class ClassicCourse:
    """Implements `TopicCourse` over the step lists of `operations`.

    Args:
        kube: the API server.
        maker: says what connections allow.
        operations: SegmentOperations.
        changes: makes what is decided, or declared.
        wishes: what callers want of subscriptions.
        metrics: show what is wrong with segments.
        looks: say when brokers are looked at next.
        prune_seconds: between two looks for prunable segments (R19).
    """

    def __init__(
        self,
        kube: KubeClient,
        maker: TopicWorkMaker,
        operations: OperationQueue,
        changes: AutomaticChanges,
        wishes: SubscriptionWishes,
        metrics: SegmentMetrics,
        looks: LookTimes,
        prune_seconds: float,
    ) -> None:
        self._kube = kube
        self._maker = maker
        self._operations = operations
        self._requests = ClassicRequests(operations)
        self._migrations = Migrations(operations, maker)
        self._changes = changes
        self._wishes = wishes
        self._metrics = metrics
        self._looks = looks
        self._prune_seconds = prune_seconds

    async def require_same_cluster(self, work: ClassicWork) -> None:
        """Make sure that the topic is where its connection leads to. Raises Stuck, BackendError."""
        if work.moved_from:
            await work.require_cluster_of((await work.ctx.backend.read_name(work.topic)).claim)

    async def advance(self, work: ClassicWork) -> Outcome:
        """Bring spec, record and brokers to agree; see `TopicCourse.advance`."""
        layout = work.store.state.layout
        is_fresh = False
        if layout is None:
            is_fresh = await self._establish(work)
        elif work.memory.may_be_outdated(layout.next_segment_id):
            # Only what was there before the process may be looked up in a listing that others asked for.
            is_young = age_seconds(work.store.body["metadata"]) < _YOUNG_SECONDS
            known = work.memory.next_segment_id is not None or is_young
            listing_age_seconds = 0.0 if known else _LISTING_AGE_SECONDS
            await rebuild_if_outdated(work.ctx, work.request, listing_age_seconds=listing_age_seconds)
        await self.finish_operations(work)
        if work.store.state.layout is None:
            raise not_migrated(work)
        problem = None
        if work.spec.paused:
            await self._operations.show_waiting(work.key, f"ScalableTopic {work.key.name}: spec.paused is true")
        else:
            if self._will_act(work) and not is_fresh:
                # Another installation may have adopted the topic since we last looked.
                await require_claim(work.ctx)
            await self._wishes.grant(work.key, work.ctx)
            await settle_subscriptions(work.ctx)
            if await self._can_tell(work):
                while await self._requests.start_next(work):
                    await self.finish_operations(work)
                await self._changes.approach_desired(work, self)
                await self._changes.auto_scale(work, self)
            if is_fresh:
                # What was made a moment ago by this very spec was read back as it was made.
                self._metrics.show_terminated(*self._shown(work), 0, replaced=0)
                problem = cursor_problem(work.store.state)
            else:
                problem = await self._check_drift(work)
            await self._prune(work)
        await publish(work.ctx)
        return Outcome(
            problem,
            None if work.spec.paused else managed_by(work.ctx.intent),
            (migrated_aspect(work.store.state.migrated_from),),
        )

    async def release(self, work: ClassicWork) -> None:
        """Let go of a topic and leave its data. Raises BackendError."""
        await release(work.ctx)

    async def delete(self, work: ClassicWork, *, force: bool) -> None:
        """Delete a topic with its data. Raises ClientsAttached, BackendError."""
        await delete_topic(work.ctx, work.request, force=force)

    async def change(self, work: ClassicWork, change: SegmentChange, request: Request, reason: str) -> Action:
        """Carry out a planned change; answers how it ended. Raises BackendError."""
        await open_reshape(work.ctx, change, request, reason=reason)
        await self.finish_operations(work)
        return work.store.state.actions[-1]

    def ordinary(self, work: ClassicWork) -> TopicBackend:
        """Where an ordinary topic is that is to be migrated."""
        return work.ctx.backend

    async def open_migration(self, work: ClassicWork, survey: LegacySurvey, request: Request, *, force: bool) -> None:
        """Journal a migration of what was surveyed and found fit. Raises BackendError."""
        await open_migration(work.ctx, survey, request, force=force)

    async def _can_tell(self, work: ClassicWork) -> bool:
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

    async def _establish(self, work: ClassicWork) -> bool:
        """Bring the topic to a layout; answers whether it was made from nothing, all of it as its spec says."""
        name = await look_or_take_back(work.ctx, work.request)
        if name is None or await self._migrations.answer(work, name, self):
            return False
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
        if name.claim is None and await _has_namesake(work):
            judgement = Judgement(
                Verdict.REFUSED,
                "NameTaken",
                "the brokers have a scalable topic of their own of that name; choose another name, or a connection "
                "whose spec.backend is Native or Auto",
            )
        if judgement.verdict is Verdict.MIGRATABLE:
            await self._migrations.begin_declared(work, name, self)
            return False
        if judgement.verdict is Verdict.ADOPTABLE and (why := self._maker.why_forbidden(work, "Adopt")):
            raise Stuck(Standing.stuck("NotAllowed", why))
        is_fresh = await establish(work.ctx, name, judgement, work.request)
        # A topic just made or rebuilt from its segments agrees with them.
        self._looks.compared(work.memory)
        return is_fresh

    def _will_act(self, work: ClassicWork) -> bool:
        layout, desired = work.store.state.layout, work.spec.segments.desired
        return bool(
            work.memory.scale.pending
            or spec_changed(work.store.body)
            or self._operations.pending(work.key)
            or self._wishes.pending(work.key)
            or (layout is not None and desired not in (None, len(layout.active)))
        )

    async def finish_operations(self, work: ClassicWork) -> None:
        """Take an open journal to its end, then tell the SegmentOperations it was about."""
        while (operation := work.store.state.operation) is not None:
            if operation.kind is OperationKind.DELETE:
                # The object was to be deleted and is not any more: what is left is rebuilt by drift repair.
                await work.store.commit(replace(work.store.state, operation=None))
                work.memory.drift_due = 0.0
                continue
            if operation.step is Step.SEALING:
                await self._operations.settle(work.key, work.store.state)
            if operation.moves_cursors:
                await advance_seek(work.ctx, operation)
            else:
                await advance_reshape(work.ctx, operation)
                self._reshaped(work)
        await self._operations.settle(work.key, work.store.state)

    async def _check_drift(self, work: ClassicWork) -> Standing | None:
        """Compare with the brokers when that is due or the spec changed; answers what is lost."""
        spec_changed = work.store.status.get("observedGeneration") != work.generation
        if not spec_changed and not self._looks.is_due(work.memory):
            return cursor_problem(work.store.state)
        request = Request("DriftRepair", work.key.name, work.request.uid)
        report = await repair_drift(
            work.ctx,
            managed=recorded_managed(work.store.status),
            listing_age_seconds=_LISTING_AGE_SECONDS,
            request=request,
        )
        self._looks.compared(work.memory)
        self._metrics.show_terminated(*self._shown(work), len(report.terminated), replaced=1 if report.reopened else 0)
        # What clients can read is compared, too: somebody may have deleted or trimmed the layout topic.
        work.memory.published.message = None
        if report.reopened:
            await self.finish_operations(work)
            work.memory.drift_due = 0.0
        status = dict(work.store.status)
        problems = [*report.problems, *await self._namesakes(work)]
        reports = [{"reason": reason, "message": message} for reason, message in problems]
        status.pop("reports", None)
        await work.store.write_status({**status, "reports": reports} if reports else status)
        return cursor_problem(work.store.state)

    async def _namesakes(self, work: ClassicWork) -> list[tuple[str, str]]:
        """Reports of a scalable topic that the brokers have of this name, told once as an Event, too.

        On Pulsar 5 a V5 client that names a topic which the brokers do not know has them make it (measured): what it
        writes is read by nobody here.
        """
        if not await _has_namesake(work):
            return []
        message = (
            f"the brokers have a scalable topic of their own named {work.topic}: clients of Pulsar 5 that name it "
            "write and read there, and not in this topic of backend Classic. Let them name a topic of backend Native, "
            "switch automatic creation of topics off in the Pulsar namespace, and delete theirs once nobody needs what "
            f"it holds: DELETE /admin/v2/scalable/{work.topic.pulsar_namespace}/{work.topic.local}?force=true"
        )
        if all(told["reason"] != _NAMESAKE for told in work.store.status.get("reports", ())):
            await work.ctx.report(_NAMESAKE, message)
        return [(_NAMESAKE, message)]

    async def _prune(self, work: ClassicWork) -> None:
        state = work.store.state
        if state.layout is None or time.monotonic() < work.memory.prune_due:
            return
        undrained: set[int] = set()
        if state.layout.sealed:
            findings = await find_prunable(work.ctx)
            undrained = {finding.segment_id for finding in findings if not finding.drained}
            free = [finding.segment_id for finding in findings if not finding.blocked_by]
            if free:
                await prune(work.ctx, free, Request("Retention", work.key.name, work.request.uid))
        sealed_at_ms = [segment.sealed_at_ms for segment in state.layout.sealed if segment.segment_id in undrained]
        self._metrics.show_undrained(*self._shown(work), sealed_at_ms)
        await delete_pruned(work.ctx)
        work.memory.prune_due = time.monotonic() + self._prune_seconds

    def _shown(self, work: ClassicWork) -> tuple[str, str]:
        """Topic and connection of the series of its segments; those of a connection that it has left go."""
        shown, before = (str(work.topic), connection_text(work.store.body)), work.memory.segments_shown
        if before is not None and before != shown:
            self._metrics.forget(*before)
        work.memory.segments_shown = shown
        return shown

    def _reshaped(self, work: ClassicWork) -> None:
        work.memory.prune_due = min(work.memory.prune_due, time.monotonic() + self._prune_seconds)
        if work.spec.policies is not None and work.spec.policies.total is not None:
            # The totals are shared by another number of segments now (R27).
            work.memory.drift_due = 0.0


async def _has_namesake(work: ClassicWork) -> bool:
    """Whether the brokers have a scalable topic of their own of that name; not, where they do not say."""
    if work.handle.native is None:
        return False
    try:
        return await work.handle.native.read(work.topic) is not None
    except BackendRefused:
        return False
