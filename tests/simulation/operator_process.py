"""One operator process: what `controllers.topic_reconciler` and `topic_finalizer` do for a topic, without Kubernetes.

The flow is theirs; all that acts or decides is the operations' own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scalable_topics.layout import LayoutError
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.operations.announce import publish
from scalable_topics_operator.operations.claims import Verdict, judge_name
from scalable_topics_operator.operations.context import OperationContext, Published
from scalable_topics_operator.operations.create import establish
from scalable_topics_operator.operations.desired import next_change
from scalable_topics_operator.operations.drift import Managed, repair_drift
from scalable_topics_operator.operations.errors import BackendError, BackendRefused, MigrationRefused, RequestRefused
from scalable_topics_operator.operations.journal import OperationKind, Request, Result
from scalable_topics_operator.operations.migrate import no_such_topic, open_migration
from scalable_topics_operator.operations.preflight import preflight
from scalable_topics_operator.operations.protocols import Claim
from scalable_topics_operator.operations.prune import delete_pruned, find_prunable, prune
from scalable_topics_operator.operations.recover import (
    look_or_take_back,
    rebuild_if_outdated,
    require_claim,
)
from scalable_topics_operator.operations.requests import CursorRequest, PruneRequest, plan
from scalable_topics_operator.operations.reshape import advance_reshape, open_reshape
from scalable_topics_operator.operations.seek import advance_seek, open_seek
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.subscriptions import record_wish, settle_subscriptions
from scalable_topics_operator.operations.teardown import delete_topic, release
from tests.simulation.auditor import SETTINGS
from tests.simulation.faults import Nature
from tests.simulation.line import Line
from tests.simulation.model_backend import ModelBackend
from tests.simulation.model_store import ModelStore, SegmentOperation, TopicObject
from tests.simulation.world import World

DRIFT_SECONDS = 300.0
PRUNE_SECONDS = 60.0
_LISTING_AGE_SECONDS = 5.0


class OperatorProcess:
    """A process with nothing in its memory but what it did itself.

    Args:
        world: everything else.
        name: for the trace.
        installation: its operator installation.
        term: it leads under; higher than of all before it.
    """

    def __init__(self, world: World, name: str, installation: str, term: int) -> None:
        self._world = world
        self._term = term
        self._installation = installation
        self._line = Line(name, world)
        self._backend = ModelBackend(world.broker, self._line, world.clock)
        self._opened_here: set[str] = set()
        self._published: dict[str, Published] = {}
        self._drift_due: dict[str, float] = {}
        self._prune_due: dict[str, float] = {}

    async def reconcile(self, body: TopicObject) -> None:
        """Bring one topic forward. Raises as `TopicReconciler.reconcile` does, Crash."""
        operation = body.state.operation
        if operation is not None and operation.term > self._term:
            raise StaleStatus(f"{body.uid} was worked on in term {operation.term}, after {self._term}")
        ctx = self._context(body)
        if body.deleting:
            await self._finalize(ctx, body)
            return
        ctx = self._without_objects(ctx, body)
        if ctx.store.state.layout is None:
            await self._establish(ctx, body)
        elif body.uid not in self._drift_due:
            await rebuild_if_outdated(ctx, self._request(body), listing_age_seconds=_LISTING_AGE_SECONDS)
        await self._finish_operations(ctx, body)
        layout = ctx.store.state.layout
        if layout is None:
            raise MigrationRefused("NotMigrated", ctx.store.state.actions[-1].message)
        acts = bool(
            body.operations or body.wishes or (layout is not None and body.desired not in (None, len(layout.active)))
        )
        if acts:
            await require_claim(ctx)
        await self._grant(ctx, body)
        await settle_subscriptions(ctx)
        if acts and await self._can_tell(ctx):
            while body.operations:
                await self._start(ctx, body, body.operations[0])
                await self._finish_operations(ctx, body)
            await self._approach_desired(ctx, body)
        await self._check_drift(ctx, body)
        await self._prune(ctx, body)
        await publish(ctx)

    async def _can_tell(self, ctx: OperationContext) -> bool:
        try:
            await publish(ctx)
        except BackendError as error:
            self._world.note(f"   untold: {error}")
            return False
        return True

    async def _migrate(self, ctx: OperationContext, body: TopicObject) -> None:
        survey = await ctx.backend.survey(ctx.topic)
        if survey is None:
            raise no_such_topic(ctx.topic)
        found = preflight(ctx.topic, survey, bucket_budget=ctx.declared.bucket_budget, force=False)
        if found.obstacles:
            raise MigrationRefused(found.obstacles[0].reason, found.obstacles[0].message)
        await open_migration(ctx, survey, self._request(body), force=False)

    async def _establish(self, ctx: OperationContext, body: TopicObject) -> None:
        name = await look_or_take_back(ctx, self._request(body))
        if name is None:
            return
        owner_alive = name.claim is not None and any(
            other.uid == name.claim.resource_uid and not other.gone for other in self._world.objects
        )
        judgement = judge_name(
            name, ctx.claim, owner_alive=owner_alive, adopt=ctx.declared.adopt, migrates=ctx.declared.migrates
        )
        if judgement.verdict is Verdict.MIGRATABLE:
            await self._migrate(ctx, body)
            return
        await establish(ctx, name, judgement, self._request(body))
        self._drift_due[body.uid] = self._world.clock.seconds + DRIFT_SECONDS

    async def _finish_operations(self, ctx: OperationContext, body: TopicObject) -> None:
        while (operation := ctx.store.state.operation) is not None:
            if operation.kind is OperationKind.DELETE:
                await ctx.store.commit(replace(ctx.store.state, operation=None))
                self._drift_due[body.uid] = 0.0
                continue
            await (advance_seek if operation.moves_cursors else advance_reshape)(ctx, operation)
        for entry in list(body.operations):
            ended = [action for action in ctx.store.state.actions if action.request == _asked_by(entry)]
            if ended and ended[-1].result is not Result.ROLLED_BACK:
                self._end(body, entry, ended[-1].result.value)

    async def _start(self, ctx: OperationContext, body: TopicObject, entry: SegmentOperation) -> None:
        layout = ctx.store.state.layout
        assert layout is not None
        try:
            if isinstance(entry.wants, PruneRequest):
                findings = await find_prunable(ctx, entry.wants.segment_ids)
                free = [finding.segment_id for finding in findings if not finding.blocked_by]
                if not free or (entry.wants.segment_ids and len(free) < len(findings)):
                    self._end(body, entry, "; ".join(finding.blocked_by for finding in findings) or "nothing")
                else:
                    await prune(ctx, free, _asked_by(entry))
            elif isinstance(entry.wants, CursorRequest):
                await open_seek(ctx, entry.wants, _asked_by(entry))
            else:
                change = plan(layout, entry.wants, max_records=ctx.settings.max_records)
                await open_reshape(ctx, change, _asked_by(entry))
        except (LayoutError, BackendRefused, RequestRefused) as error:
            self._end(body, entry, f"Failed: {error}")

    async def _approach_desired(self, ctx: OperationContext, body: TopicObject) -> None:
        while body.desired is not None and (layout := ctx.store.state.layout) is not None:
            change = next_change(layout, body.desired)
            if change is None:
                return
            await open_reshape(ctx, change, self._request(body))
            await self._finish_operations(ctx, body)
            if ctx.store.state.actions[-1].result is Result.FAILED:
                raise BackendRefused(ctx.store.state.actions[-1].message)

    async def _check_drift(self, ctx: OperationContext, body: TopicObject) -> None:
        if self._world.clock.seconds < self._drift_due.get(body.uid, 0.0):
            return
        report = await repair_drift(
            ctx,
            managed=Managed(),
            listing_age_seconds=_LISTING_AGE_SECONDS,
            request=Request("DriftRepair", body.topic.local, body.uid),
        )
        self._drift_due[body.uid] = self._world.clock.seconds + DRIFT_SECONDS
        body.reports = report.problems
        ctx.published.message = None
        if report.reopened:
            await self._finish_operations(ctx, body)
            self._drift_due[body.uid] = 0.0

    async def _prune(self, ctx: OperationContext, body: TopicObject) -> None:
        state = ctx.store.state
        if state.layout is None or self._world.clock.seconds < self._prune_due.get(body.uid, 0.0):
            return
        if state.layout.sealed:
            free = [finding.segment_id for finding in await find_prunable(ctx) if not finding.blocked_by]
            if free:
                await prune(ctx, free, Request("Retention", body.topic.local, body.uid))
        await delete_pruned(ctx)
        self._prune_due[body.uid] = self._world.clock.seconds + PRUNE_SECONDS

    def _without_objects(self, ctx: OperationContext, body: TopicObject) -> OperationContext:
        """Let go of the objects that declare what somebody asked to delete."""
        going = {
            name
            for name, entry in ctx.store.state.subscriptions.items()
            if entry.requested and entry.phase is SubscriptionPhase.DELETING
        }
        kept = {name: one for name, one in body.intent.subscriptions.items() if not (one.by_object and name in going)}
        if len(kept) == len(body.intent.subscriptions):
            return ctx
        body.intent = replace(body.intent, subscriptions=kept)
        return self._context(body)

    async def _grant(self, ctx: OperationContext, body: TopicObject) -> None:
        for wish in list(body.wishes):
            try:
                await record_wish(ctx, wish)
            except RequestRefused as refused:
                body.outcomes[wish.name] = refused.reason
            body.wishes.remove(wish)

    async def _finalize(self, ctx: OperationContext, body: TopicObject) -> None:
        if body.retain:
            try:
                await release(ctx)
            except BackendError as error:
                self._world.events.append(f"NotReleased: {error}")
        else:
            await delete_topic(ctx, self._request(body))
        await self._line.call("drop_finalizer", body.uid, Nature.COMMIT, lambda: self._world.remove(body))

    def _context(self, body: TopicObject) -> OperationContext:
        return OperationContext(
            topic=body.topic,
            backend=self._backend,
            store=ModelStore(body, self._line, self._world.auditor),
            declared=body.intent,
            claim=Claim(self._installation, "kubernetes-1", body.uid, "team", body.uid, self._backend.kind),
            clock=self._world.clock,
            settings=SETTINGS,
            report=self._report,
            term=self._term,
            opened_here=self._opened_here,
            published=self._published.setdefault(body.uid, Published()),
            readers=ModelReaders(self._world.holding),
        )

    async def _report(self, reason: str, message: str, *, warning: bool = True) -> None:
        self._world.events.append(f"{reason}: {message}")

    def _end(self, body: TopicObject, entry: SegmentOperation, outcome: str) -> None:
        # A deposed process may come to it again.
        if entry in body.operations:
            body.operations.remove(entry)
            body.outcomes[entry.name] = outcome

    def _request(self, body: TopicObject) -> Request:
        return Request("ScalableTopic", body.topic.local, body.uid)


class ModelReaders:
    """Implements `Readers`.

    Args:
        holding: the subscriptions whose consumers have not let go.
    """

    def __init__(self, holding: Mapping[str, int]) -> None:
        self._holding = holding

    def have_let_go(self, subscription: str) -> bool:
        """Whether they have."""
        return subscription not in self._holding


def _asked_by(entry: SegmentOperation) -> Request:
    return Request("SegmentOperation", entry.name, entry.name)
