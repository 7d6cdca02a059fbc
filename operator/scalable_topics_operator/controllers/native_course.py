"""The course of topics whose layout the brokers own (Native): observed, asked of brokers, told on the object."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from scalable_topics.layout import SegmentChange
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.controllers.automatic_changes import AutomaticChanges
from scalable_topics_operator.controllers.claim_owner import owner_alive
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.connections import CLASSIC
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.engine import Engine, engine_of
from scalable_topics_operator.controllers.migrations import Migrations, not_migrated
from scalable_topics_operator.controllers.native_requests import NativeRequests
from scalable_topics_operator.controllers.native_settings import NativeSettings
from scalable_topics_operator.controllers.operation_queue import OperationQueue
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.reconcile_times import LookTimes
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes
from scalable_topics_operator.controllers.topic_course import Outcome
from scalable_topics_operator.controllers.topic_status import cursor_problem, migrated_aspect, spec_changed
from scalable_topics_operator.controllers.topic_work import NativeWork, Stuck, TopicWorkMaker
from scalable_topics_operator.operations.claims import Verdict, judge_name
from scalable_topics_operator.operations.errors import NameRefused, NotYet, TopicMissing
from scalable_topics_operator.operations.journal import Action, OperationKind, Request
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.native.change import advance_change, open_change
from scalable_topics_operator.operations.native.create import create, take_over
from scalable_topics_operator.operations.native.cursors import (
    BrokersCursors,
    advance_move,
    mark_lost,
    without_cursors,
)
from scalable_topics_operator.operations.native.migrate import (
    advance_migration,
    is_migrated,
    mend_old_topics,
    open_migration,
)
from scalable_topics_operator.operations.native.names import judge_topic
from scalable_topics_operator.operations.native.observe import observe
from scalable_topics_operator.operations.native.protocols import NativeLook, NativeTopic
from scalable_topics_operator.operations.native.teardown import delete_topic
from scalable_topics_operator.operations.protocols import NameState, TopicBackend
from scalable_topics_operator.operations.subscriptions import settle_cursors


class NativeCourse:
    """Implements `TopicCourse` over brokers that own layouts.

    Args:
        kube: the API server.
        maker: says what connections allow.
        operations: SegmentOperations.
        changes: makes what is decided, or declared.
        policies: say how brokers are to split and merge by themselves.
        consumers: are told how many consumers brokers count.
        wishes: what callers want of subscriptions.
        looks: say when brokers are looked at next.
    """

    def __init__(
        self,
        kube: KubeClient,
        maker: TopicWorkMaker,
        operations: OperationQueue,
        changes: AutomaticChanges,
        policies: PolicyBook,
        consumers: ConsumerCounts,
        wishes: SubscriptionWishes,
        looks: LookTimes,
    ) -> None:
        self._kube = kube
        self._maker = maker
        self._operations = operations
        self._requests = NativeRequests(operations)
        self._migrations = Migrations(operations, maker)
        self._settings = NativeSettings(policies)
        self._changes = changes
        self._consumers = consumers
        self._wishes = wishes
        self._looks = looks

    async def require_same_cluster(self, work: NativeWork) -> None:
        """Make sure that the topic is where its connection leads to. Raises Stuck, BackendError."""
        if work.moved_from:
            found = await work.ctx.backend.read(work.topic)
            await work.require_cluster_of(found.claim if found is not None else None)

    async def advance(self, work: NativeWork) -> Outcome:
        """Bring spec, record and brokers to agree; see `TopicCourse.advance`."""
        if work.store.state.layout is None:
            await self._establish(work)
            await self._finish_operations(work)
        if work.store.state.layout is None:
            raise not_migrated(work)
        found = await observe(work.ctx) or await self._make_again(work)
        await self._finish_operations(work)
        if work.spec.paused:
            await self._operations.show_waiting(work.key, f"ScalableTopic {work.key.name}: spec.paused is true")
        else:
            await self._wishes.grant(work.key, work.ctx)
            await settle_cursors(work.ctx, BrokersCursors(work.ctx))
            # Before anything is done by the operator: one controller at a time.
            await self._settings.settle_policy(work, found)
            while await self._requests.start_next(work):
                await self._finish_operations(work)
            await self._changes.approach_desired(work, self)
            if engine_of(work.spec, work.store.facts.backend) is Engine.OPERATOR:
                await self._changes.auto_scale(work, self)
            await self._check(work, found)
        self._looks.observed(work.memory)
        # Brokers tell clients of their layouts, and prune, themselves.
        work.memory.published.message = ""
        work.memory.prune_due = math.inf
        managed = None if work.spec.paused else self._settings.managed(work)
        aspects = (migrated_aspect(work.store.state.migrated_from),)
        return Outcome(cursor_problem(work.store.state), managed, aspects)

    async def release(self, work: NativeWork) -> None:
        """Let go of a topic: brokers keep no claim that could say so. A journaled change is left to them."""

    async def delete(self, work: NativeWork, *, force: bool) -> None:
        """Delete a topic with its data. Raises ClientsAttached, BackendError."""
        await delete_topic(work.ctx, work.request, force=force)

    async def change(self, work: NativeWork, change: SegmentChange, request: Request, reason: str) -> Action:
        """Have a planned change made; answers how it ended. Raises BackendError."""
        await open_change(work.ctx, change, request, reason=reason)
        await self._finish_operations(work)
        return work.store.state.actions[-1]

    def ordinary(self, work: NativeWork) -> TopicBackend:
        """Where an ordinary topic is that is to be migrated."""
        return work.ctx.ordinary.backend

    async def open_migration(self, work: NativeWork, survey: LegacySurvey, request: Request, *, force: bool) -> None:
        """Journal a migration of what was surveyed and found fit. Raises BackendError."""
        await open_migration(work.ctx, survey, request, force=force)

    async def _establish(self, work: NativeWork) -> None:
        if work.store.state.operation is not None:
            # Its journal says how to go on.
            return
        found = await work.ctx.backend.read(work.topic)
        if found is not None:
            await self._take_over(work, found)
            return
        name = await self._ordinary_name(work)
        if await self._migrations.answer(work, name, self):
            return
        if work.spec.paused:
            raise Stuck(Standing.working("Paused", "spec.paused is true; the topic is not created"))
        if work.ctx.declared.migrates and name.exists:
            await self._migrations.begin_declared(work, name, self)
        else:
            await create(work.ctx, work.request)
        work.memory.clients_due = 0.0

    async def _take_over(self, work: NativeWork, found: NativeTopic) -> None:
        alive = found.claim is not None and await owner_alive(self._kube, found.claim)
        # What the brokers have migrated carries no claim; who declares that it was migrated knows of it.
        adopt = work.ctx.declared.adopt or (work.ctx.declared.migrates and is_migrated(found))
        judgement = judge_topic(found, work.ctx.claim, owner_alive=alive, adopt=adopt)
        if judgement.verdict is Verdict.ADOPTABLE and (why := self._maker.why_forbidden(work, "Adopt")):
            raise Stuck(Standing.stuck("NotAllowed", why))
        await take_over(work.ctx, found, judgement, work.request)
        work.memory.clients_due = 0.0

    async def _ordinary_name(self, work: NativeWork) -> NameState:
        """What exists under the name among ordinary topics.

        A topic keeps its backend for life (R2): one of ours that was made before the brokers could is found again.
        Raises NotYet once that is recorded, NameRefused for one of another installation that is not to be adopted.
        """
        name = await work.ctx.ordinary.backend.read_name(work.topic)
        claim, mine = name.claim, work.ctx.claim
        if claim is None:
            return name
        is_ours = (claim.installation_id, claim.kubernetes_uid) == (mine.installation_id, mine.kubernetes_uid)
        if not is_ours and not work.ctx.declared.adopt:
            judgement = judge_name(name, replace(mine, backend=CLASSIC), owner_alive=False, adopt=False)
            raise NameRefused(judgement.reason, judgement.message)
        await work.store.write_status({**work.store.status, "backend": CLASSIC})
        raise NotYet(f"{work.topic} was made with backend Classic and keeps it", 0.0)

    async def _make_again(self, work: NativeWork) -> NativeTopic:
        """The topic is gone from the brokers: it is made again, and the loss is told (hazard B1)."""
        operation = work.store.state.operation
        if operation is not None and operation.kind is OperationKind.DELETE:
            await work.store.commit(replace(work.store.state, operation=None))
        if work.spec.paused:
            raise Stuck(
                Standing.stuck(
                    "TopicLost", "the brokers have no such topic any more; spec.paused is true, so it is not made again"
                )
            )
        await work.ctx.report(
            "TopicLost", f"{work.topic} was deleted behind our back and is made again; what it held is lost"
        )
        await work.store.commit(without_cursors(replace(work.store.state, operation=None)))
        await create(work.ctx, work.request)
        found = await observe(work.ctx)
        if found is None:
            raise TopicMissing(f"{work.topic}: it was deleted again at once")
        return found

    async def _finish_operations(self, work: NativeWork) -> None:
        while (operation := work.store.state.operation) is not None:
            if operation.kind is OperationKind.DELETE:
                # The object was to be deleted and is not any more.
                await work.store.commit(replace(work.store.state, operation=None))
            elif operation.moves_cursors:
                await advance_move(work.ctx, operation)
            elif operation.migration is not None:
                await advance_migration(work.ctx, operation, operation.migration)
            else:
                await advance_change(work.ctx, operation)
        await self._operations.settle(work.key, work.store.state)

    async def _check(self, work: NativeWork, found: NativeTopic) -> None:
        """Look at clients and settings when that is due or the spec changed."""
        if not spec_changed(work.store.body) and time.monotonic() < work.memory.clients_due:
            return
        look = await work.ctx.backend.look(work.topic)
        self._count_consumers(work, look)
        await mark_lost(work.ctx, look)
        await mend_old_topics(work.ctx, found)
        await self._settings.check(work, found, look)
        # Who decides must know of consumers, of which brokers tell only if asked.
        decides = engine_of(work.spec, work.store.facts.backend) is Engine.OPERATOR
        work.memory.clients_due = time.monotonic() + self._looks.clients_seconds(decides=decides)

    def _count_consumers(self, work: NativeWork, look: NativeLook) -> None:
        ordered = {name: found.consumers for name, found in look.subscriptions.items() if found.kind == "STREAM"}
        for name in ordered.keys() | self._consumers.of(work.key).keys():
            self._consumers.set(work.key, name, ordered.get(name, 0))
