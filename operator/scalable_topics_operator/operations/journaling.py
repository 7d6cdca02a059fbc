"""What opening and closing a journal have in common, whatever the operation and whoever owns the layout (R8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scalable_topics.layout import Part, PlannedSegment
from scalable_topics_operator.operations.context import TopicContext
from scalable_topics_operator.operations.journal import (
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
    new_operation_id,
)
from scalable_topics_operator.operations.migrated_from import Migration
from scalable_topics_operator.operations.protocols import MessagePosition


def new_operation(
    ctx: TopicContext,
    kind: OperationKind,
    step: Step,
    request: Request,
    *,
    parents: tuple[int, ...] = (),
    children: tuple[PlannedSegment, ...] = (),
    subscriptions: tuple[str, ...] = (),
    next_segment_id: int | None = None,
    reason: str = "",
    seek_to_ms: int | None = None,
    positions: Mapping[Part, MessagePosition] | None = None,
    migration: Migration | None = None,
) -> Operation:
    """A journal entry of this moment and term; see `Operation`. One that reserves no ids leaves `next_segment_id`."""
    layout = ctx.store.state.layout
    unreserved = layout.next_segment_id if layout is not None else 0
    return Operation(
        id=new_operation_id(),
        kind=kind,
        step=step,
        term=ctx.term,
        parents=parents,
        children=children,
        subscriptions=subscriptions,
        started_at=ctx.timestamp(),
        request=request,
        next_segment_id=unreserved if next_segment_id is None else next_segment_id,
        reason=reason,
        seek_to_ms=seek_to_ms,
        positions=positions or {},
        migration=migration,
    )


async def open_journal(ctx: TopicContext, operation: Operation) -> None:
    """Commit an operation before anything is done for it."""
    await ctx.store.commit(replace(ctx.store.state, operation=operation))


async def close_journal(ctx: TopicContext, operation: Operation, result: Result, message: str = "") -> None:
    """Commit how an operation has ended. What did not succeed has made nothing."""
    layout = ctx.store.state.layout
    ended = operation if result is Result.SUCCEEDED else replace(operation, children=())
    action = ended.ended(result, at=ctx.timestamp(), epoch=layout.epoch if layout else 0, message=message)
    await ctx.store.commit(ctx.store.state.finished(action))


async def open_deletion(ctx: TopicContext, request: Request) -> None:
    """Journal that the topic is being deleted: from here on it only goes on."""
    await open_journal(ctx, new_operation(ctx, OperationKind.DELETE, Step.DELETING, request))
