"""SegmentOperations on topics whose layout the operator owns: planned, opened, or shown as a plan (R10)."""

from __future__ import annotations

from scalable_topics_operator.api.segment_operation import SegmentOperationSpec
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.intents import operation_request
from scalable_topics_operator.controllers.operation_queue import DRY_RUN, OperationQueue, QueuedOperation
from scalable_topics_operator.controllers.ordered_subscriptions import is_seeking
from scalable_topics_operator.controllers.topic_work import ClassicWork
from scalable_topics_operator.operations.context import OperationContext
from scalable_topics_operator.operations.errors import NotYet
from scalable_topics_operator.operations.prune import find_prunable, prune
from scalable_topics_operator.operations.requests import CursorRequest, PruneRequest, ReshapeRequest, plan_asked
from scalable_topics_operator.operations.reshape import discover_subscriptions, open_reshape
from scalable_topics_operator.operations.seek import open_seek, planned_moves


class ClassicRequests:
    """Carries out SegmentOperations.

    Args:
        operations: the queue that they wait in.
    """

    def __init__(self, operations: OperationQueue) -> None:
        self._operations = operations
        self._cache = operations.cache

    async def start_next(self, work: ClassicWork) -> bool:
        """Start the topic's oldest pending one; False when there is none. Raises BackendUnavailable, NotYet."""

        async def start(entry: QueuedOperation, spec: SegmentOperationSpec) -> None:
            request = operation_request(spec)
            if isinstance(request, PruneRequest):
                await self._prune(entry, work.ctx, request, dry_run=spec.dry_run)
            elif isinstance(request, CursorRequest):
                await self._move_cursors(work.key, entry, work.ctx, request, dry_run=spec.dry_run)
            else:
                await self._reshape(entry, work.ctx, request, dry_run=spec.dry_run)

        return await self._operations.start_next(work.key, start)

    async def _reshape(
        self, entry: QueuedOperation, ctx: OperationContext, request: ReshapeRequest, *, dry_run: bool
    ) -> None:
        layout = ctx.store.state.layout
        if layout is None:
            return
        change = plan_asked(layout, request, max_records=ctx.settings.max_records)
        if not dry_run:
            await open_reshape(ctx, change, entry.request)
            if ctx.store.state.operation is not None:
                await self._operations.show_running(entry, ctx.store.state.operation)
            return
        await ctx.backend.require_fit(ctx.topic, more_topics=len(change.children))
        parents = [layout.segment(parent) for parent in change.parent_ids]
        await self._operations.show_plan(entry, layout, change, await discover_subscriptions(ctx, parents))

    async def _move_cursors(
        self, topic: ObjectKey, entry: QueuedOperation, ctx: OperationContext, request: CursorRequest, *, dry_run: bool
    ) -> None:
        if ctx.store.state.layout is None:
            return
        if dry_run:
            notes = await planned_moves(ctx, request)
            await self._operations.succeed(entry, DRY_RUN, {"plan": {"notes": notes}})
            return
        if is_seeking(self._cache, topic, request.subscription):
            # Consumers are still told that the last one is over, and would not let go for this one.
            raise NotYet(f"{topic}: subscription {request.subscription} has just been moved")
        await open_seek(ctx, request, entry.request)
        if ctx.store.state.operation is not None:
            await self._operations.show_running(entry, ctx.store.state.operation)

    async def _prune(
        self, entry: QueuedOperation, ctx: OperationContext, request: PruneRequest, *, dry_run: bool
    ) -> None:
        layout = ctx.store.state.layout
        if layout is None:
            return
        findings = await find_prunable(ctx, request.segment_ids)
        free = [finding.segment_id for finding in findings if not finding.blocked_by]
        blocked = [f"segment {finding.segment_id}: {finding.blocked_by}" for finding in findings if finding.blocked_by]
        if dry_run:
            parents = [{"id": found, "range": layout.segment(found).hash_range.descriptor} for found in free]
            await self._operations.succeed(entry, DRY_RUN, {"plan": {"parents": parents, "notes": blocked}})
        elif blocked and request.segment_ids:
            await self._operations.fail(entry, "; ".join(blocked), "NotPossible")
        elif not free:
            await self._operations.succeed(entry, "nothing to prune" + "".join(f"; {why}" for why in blocked), {})
        else:
            await prune(ctx, free, entry.request)
