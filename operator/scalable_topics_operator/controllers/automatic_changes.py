"""Changes of a topic's segments that nobody asks for one by one: towards `segments.desired`, and by decision (R30)."""

from __future__ import annotations

from typing import Protocol

from scalable_topics.layout import LayoutError, SegmentChange
from scalable_topics_operator.autoscale.decision import Decision, Merge, Rebucket, Split
from scalable_topics_operator.controllers.auto_scaler import AutoScaler, Subject
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.operation_queue import OperationQueue
from scalable_topics_operator.controllers.topic_work import Stuck, TopicWork, WorkT, WorkT_contra
from scalable_topics_operator.operations.desired import next_change
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.journal import Action as Ended
from scalable_topics_operator.operations.journal import Request, Result
from scalable_topics_operator.operations.requests import (
    ReshapeRequest,
    plan,
    requests_of,
)
from scalable_topics_operator.telemetry.scaling_metrics import ScalingMetrics

REQUEST_KIND = "AutoScale"
_AUTOMATIC_SHARE = 0.8
_EVENTS = {Split: "AutoSplit", Merge: "AutoMerge", Rebucket: "AutoRebucket"}


class Changer(Protocol[WorkT_contra]):
    """Makes a planned change of a topic's segments."""

    async def change(self, work: WorkT_contra, change: SegmentChange, request: Request, reason: str) -> Ended:
        """Carry it out; answers how it ended. Raises BackendError."""


class AutomaticChanges:
    """Carries them out, one after the other.

    Args:
        cache: objects as last seen.
        operations: what else is asked for.
        scaler: decides.
        metrics: count them.
        full_retry_seconds: when to look again after the layout was found full.
        failed_retry_seconds: when to try again after an operation failed.
    """

    def __init__(
        self,
        cache: ObjectCache,
        operations: OperationQueue,
        scaler: AutoScaler,
        metrics: ScalingMetrics,
        full_retry_seconds: float,
        failed_retry_seconds: float,
    ) -> None:
        self._cache = cache
        self._operations = operations
        self._scaler = scaler
        self._metrics = metrics
        self._full_retry_seconds = full_retry_seconds
        self._failed_retry_seconds = failed_retry_seconds

    async def auto_scale(self, work: WorkT, changer: Changer[WorkT]) -> None:
        """Decide again on what the record says now, since it may have changed since the decision that led here."""
        store, scale = work.store, work.memory.scale
        if not (scale.pending or self._scaler.is_due(scale)):
            return
        subject = Subject.of(work.key, store.body, work.spec, work.topic, store.state, work.handle, store.facts.backend)
        if subject is None:
            return
        decision = await self._scaler.look(subject, scale)
        scale.pending = False
        if decision.action is not None:
            self._scaler.acted(scale, succeeded=await self.act(work, decision, changer))

    async def approach_desired(self, work: WorkT, changer: Changer[WorkT]) -> None:
        """Split and merge until there are as many active segments as `spec.segments.desired` says.

        What is asked for meanwhile goes first: then this ends early, and the rest is done after that. Raises Stuck.
        """
        desired = work.spec.segments.desired
        if desired is None:
            return
        while (layout := work.store.state.layout) is not None:
            change = next_change(layout, desired)
            if change is None or self._is_overtaken(work):
                return
            limit = int(work.ctx.settings.max_records * _AUTOMATIC_SHARE)
            if len(layout.segments) + len(change.children) > limit:
                raise Stuck(
                    Standing.stuck(
                        "LayoutFull",
                        f"the layout holds {len(layout.segments)} segments, {len(layout.sealed)} of them sealed; "
                        f"automatic operations stop at {limit} until sealed segments are drained and pruned",
                    ),
                    self._full_retry_seconds,
                )
            ended = await changer.change(work, change, work.request, "")
            if ended.result is Result.FAILED:
                raise Stuck(Standing.stuck("OperationFailed", ended.message), self._failed_retry_seconds)

    async def act(self, work: WorkT, decision: Decision, changer: Changer[WorkT]) -> bool:
        """Do what was decided on the layout as it is now; answers whether all of it succeeded that was not overtaken.

        What is asked for meanwhile goes first: then the rest is left to the next decision.
        A refusal is told and does not keep other work from the topic. Raises BackendUnavailable, KubeError.
        """
        action = decision.action
        if action is None:
            return True
        why = next(finding.why for finding in decision.findings if finding.fired)
        reason, event = f"{action.reason.value}: {why}", _EVENTS[type(action)]
        await work.ctx.report(event, reason, warning=False)
        for request in requests_of(action):
            if self._is_overtaken(work):
                return True
            try:
                ended = await changer.change(work, self._planned(work, request), self._asked_by(work), reason)
            except (LayoutError, BackendRefused) as error:
                await work.ctx.report(f"{event}Failed", str(error))
                return False
            if ended.result is not Result.SUCCEEDED:
                await work.ctx.report(f"{event}Failed", ended.message)
                return False
            self._metrics.changed(str(work.topic), ended.kind)
        return True

    def _is_overtaken(self, work: TopicWork) -> bool:
        """Whether the object has been changed, or an operation asked for, since this work began."""
        body = self._cache.get(work.key)
        return (
            body is None
            or body["metadata"]["generation"] != work.generation
            or bool(self._operations.pending(work.key))
        )

    def _planned(self, work: TopicWork, request: ReshapeRequest) -> SegmentChange:
        """Plan on the layout as it is now, within what automatic operations may fill of it (R10, R29)."""
        layout = work.store.state.layout
        assert layout is not None
        return plan(layout, request, max_records=int(work.ctx.settings.max_records * _AUTOMATIC_SHARE))

    def _asked_by(self, work: TopicWork) -> Request:
        return Request(REQUEST_KIND, work.key.name, work.request.uid)
