"""Seek and skip-all: the consumers of a subscription let go, then its cursors move on every segment (R18, pip-468).

Open the journal; wait until the readers have let go; move the cursors; close the journal. It only goes forward, whoever
goes on with it: every step may be run again. Segments are independent, so a failed try may leave some cursors moved.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import Enum

from scalable_topics.layout import Segment
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import BackendRefused, NotYet, RequestRefused, TopicMissing
from scalable_topics_operator.operations.journal import (
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
    new_operation_id,
)
from scalable_topics_operator.operations.requests import CursorRequest, SeekRequest
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase


class Move(Enum):
    """Where the cursor of one segment goes."""

    TO_THE_END = "its cursor goes to the end"
    TO_THE_BEGINNING = "its cursor goes to the beginning"
    TO_THE_TIME = "its cursor goes to the time"


def move_of(segment: Segment, to_ms: int | None) -> Move:
    """Where a cursor goes for a seek, or for a skip-all (None). Pure.

    A segment that was sealed before the time holds nothing of it or after, and one that was made after it nothing else.
    """
    if to_ms is None:
        return Move.TO_THE_END
    if not segment.is_active and 0 < segment.sealed_at_ms <= to_ms:
        return Move.TO_THE_END
    return Move.TO_THE_BEGINNING if segment.created_at_ms >= to_ms else Move.TO_THE_TIME


async def require_movable(ctx: OperationContext, subscription: str) -> None:
    """Make sure that a subscription has cursors to be moved. Raises RequestRefused, BackendUnavailable."""
    entry = ctx.store.state.subscriptions.get(subscription)
    if entry is not None and entry.phase is SubscriptionPhase.CURSOR_LOST:
        raise RequestRefused(
            "CursorLost",
            f"subscription {subscription} lost its cursor on some segments; delete and declare it again to start anew",
        )
    if entry is not None and entry.phase is SubscriptionPhase.DELETING:
        raise RequestRefused("NotPossible", f"subscription {subscription} is being deleted")
    if entry is None and not await _is_found(ctx, subscription):
        raise RequestRefused("SubscriptionMissing", f"there is no subscription {subscription} on the topic")


def planned_moves(ctx: OperationContext, wants: CursorRequest) -> list[str]:
    """What a seek or skip-all would do, a line a segment."""
    to_ms = wants.to_ms if isinstance(wants, SeekRequest) else None
    return [f"segment {one.segment_id}: {move_of(one, to_ms).value}" for one in _segments(ctx)]


async def open_seek(ctx: OperationContext, wants: CursorRequest, request: Request) -> None:
    """Journal a seek or skip-all. Raises RequestRefused, BackendUnavailable."""
    await require_movable(ctx, wants.subscription)
    layout = ctx.store.state.layout
    seeks = isinstance(wants, SeekRequest)
    operation = Operation(
        id=new_operation_id(),
        kind=OperationKind.SEEK if seeks else OperationKind.SKIP_ALL,
        step=Step.RELEASING,
        term=ctx.term,
        parents=(),
        children=(),
        subscriptions=(wants.subscription,),
        started_at=ctx.timestamp(),
        request=request,
        next_segment_id=layout.next_segment_id if layout else 0,
        seek_to_ms=wants.to_ms if isinstance(wants, SeekRequest) else None,
    )
    await ctx.store.commit(replace(ctx.store.state, operation=operation))


async def advance_seek(ctx: OperationContext, operation: Operation) -> None:
    """Take an open seek or skip-all to its end, from whatever step it is at.

    Raises NotYet while consumers hold on to segments, BackendUnavailable when a broker does not answer; the same call
    later goes on from there. Consumers who do not let go in time, and a refusal, end it as failed.
    """
    subscription = operation.subscriptions[0]
    if operation.step is Step.RELEASING:
        if not ctx.readers.have_let_go(subscription):
            await _wait_for_readers(ctx, operation)
            return
        operation = replace(operation, step=Step.MOVING)
        await ctx.store.commit(replace(ctx.store.state, operation=operation))
    try:
        await concurrently(_move(ctx, segment, operation) for segment in _segments(ctx))
    except BackendRefused as refusal:
        await _end(ctx, operation, Result.FAILED, f"cursors may have been moved on some segments only: {refusal}")
        return
    await _end(ctx, operation, Result.SUCCEEDED)


async def _wait_for_readers(ctx: OperationContext, operation: Operation) -> None:
    """Give up once they have had their time; raises NotYet before. The time counts through changes of leader."""
    subscription = operation.subscriptions[0]
    waited_seconds = ctx.clock.now_ms() / 1000 - datetime.fromisoformat(operation.started_at).timestamp()
    most_seconds = ctx.settings.release_wait_seconds
    if waited_seconds < most_seconds:
        raise NotYet(f"{ctx.topic}: consumers of subscription {subscription} have not let go of their segments yet")
    await _end(
        ctx,
        operation,
        Result.FAILED,
        f"consumers of subscription {subscription} did not let go of their segments within {most_seconds:g} s; "
        "no cursor was moved",
    )


async def _move(ctx: OperationContext, segment: Segment, operation: Operation) -> None:
    """Move the cursor of one segment. One that is not there stays so: it may never have had one (R18)."""
    topic, subscription = ctx.backend.segment_topic(ctx.topic, segment), operation.subscriptions[0]
    match move_of(segment, operation.seek_to_ms):
        case Move.TO_THE_END:
            await ctx.backend.skip_all(topic, subscription)
        case Move.TO_THE_BEGINNING:
            await ctx.backend.seek(topic, subscription, None)
        case Move.TO_THE_TIME:
            await ctx.backend.seek(topic, subscription, operation.seek_to_ms)


async def _end(ctx: OperationContext, operation: Operation, result: Result, message: str = "") -> None:
    layout = ctx.store.state.layout
    action = operation.ended(result, at=ctx.timestamp(), epoch=layout.epoch if layout else 0, message=message)
    await ctx.store.commit(ctx.store.state.finished(action))


async def _is_found(ctx: OperationContext, subscription: str) -> bool:
    """Whether an application has made the subscription by itself: a durable cursor on an active segment (R16)."""

    async def found(segment: Segment) -> bool:
        try:
            look = await ctx.backend.look(ctx.backend.segment_topic(ctx.topic, segment))
        except TopicMissing:
            return False
        return subscription in look.counting

    layout = ctx.store.state.layout
    return any(await concurrently(found(segment) for segment in (layout.active if layout else ())))


def _segments(ctx: OperationContext) -> list[Segment]:
    layout = ctx.store.state.layout
    return [*layout.active, *layout.sealed] if layout else []
