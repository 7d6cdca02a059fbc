"""SegmentOperations on topics whose layout the brokers own (R10)."""

from __future__ import annotations

from scalable_topics_operator.api.segment_operation import SegmentOperationSpec
from scalable_topics_operator.controllers.intents import operation_request
from scalable_topics_operator.controllers.operation_queue import DRY_RUN, OperationQueue, QueuedOperation
from scalable_topics_operator.controllers.topic_work import NativeWork
from scalable_topics_operator.operations.errors import RequestRefused
from scalable_topics_operator.operations.native.change import open_change, require_brokers_can
from scalable_topics_operator.operations.native.cursors import open_move, require_movable
from scalable_topics_operator.operations.requests import CursorRequest, PruneRequest, ReshapeRequest, plan_asked


class NativeRequests:
    """Carries out SegmentOperations.

    Args:
        operations: the queue that they wait in.
    """

    def __init__(self, operations: OperationQueue) -> None:
        self._operations = operations

    async def start_next(self, work: NativeWork) -> bool:
        """Start the topic's oldest pending one; False when there is none. Raises BackendUnavailable.

        What brokers answer with an inner error, or with success though nothing was done, is refused here.
        """

        async def start(entry: QueuedOperation, spec: SegmentOperationSpec) -> None:
            request = operation_request(spec)
            if isinstance(request, PruneRequest):
                raise RequestRefused(
                    "Unsupported",
                    "the brokers of the Native backend prune drained segments themselves, within a minute after their "
                    "retention has passed",
                )
            if isinstance(request, CursorRequest):
                await self._move_cursors(entry, work, request, dry_run=spec.dry_run)
            else:
                await self._change(entry, work, request, dry_run=spec.dry_run)

        return await self._operations.start_next(work.key, start)

    async def _change(
        self, entry: QueuedOperation, work: NativeWork, request: ReshapeRequest, *, dry_run: bool
    ) -> None:
        require_brokers_can(request)
        layout = work.store.state.layout
        if layout is None:
            return
        change = plan_asked(layout, request, max_records=work.ctx.settings.max_records)
        if dry_run:
            subscriptions = (await work.ctx.backend.look(work.topic)).subscriptions
            await self._operations.show_plan(entry, layout, change, subscriptions)
            return
        await open_change(work.ctx, change, entry.request)
        await self._show_running(entry, work)

    async def _move_cursors(
        self, entry: QueuedOperation, work: NativeWork, request: CursorRequest, *, dry_run: bool
    ) -> None:
        if dry_run:
            await require_movable(work.ctx, request)
            notes = ["the brokers move the cursors of all segments"]
            await self._operations.succeed(entry, DRY_RUN, {"plan": {"notes": notes}})
            return
        await open_move(work.ctx, request, entry.request)
        await self._show_running(entry, work)

    async def _show_running(self, entry: QueuedOperation, work: NativeWork) -> None:
        if work.store.state.operation is not None:
            await self._operations.show_running(entry, work.store.state.operation)
