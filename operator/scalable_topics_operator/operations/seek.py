"""Seek, skip-all and restore: the consumers of a subscription let go, then its cursors move (R18, R22, pip-468).

Open the journal; wait until the readers have let go; move the cursors; close the journal. It only goes forward, whoever
goes on with it: every step may be run again. Segments are independent, so a failed try may leave some cursors moved.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from scalable_topics.layout import Segment
from scalable_topics_operator.operations.bucket_positions import Positions, floors_of, least_position, order
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.cursor_moves import Move, moves_of
from scalable_topics_operator.operations.errors import BackendRefused, NotYet, RequestRefused, TopicMissing
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Result, Step
from scalable_topics_operator.operations.journaling import close_journal, new_operation, open_journal
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.requests import CursorRequest, RestoreRequest, SeekRequest, SkipAllRequest
from scalable_topics_operator.operations.restorable import require_kept
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.topic_state import TopicState

_KINDS = {
    SeekRequest: OperationKind.SEEK,
    SkipAllRequest: OperationKind.SKIP_ALL,
    RestoreRequest: OperationKind.RESTORE,
}


async def _require_possible(ctx: OperationContext, wants: CursorRequest) -> None:
    """Raises RequestRefused for what cannot be done, BackendUnavailable."""
    await _require_movable(ctx, wants.subscription)
    if isinstance(wants, RestoreRequest):
        await require_kept(ctx, wants)


async def _require_movable(ctx: OperationContext, subscription: str) -> None:
    """Make sure that a subscription has cursors to be moved."""
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


async def planned_moves(ctx: OperationContext, wants: CursorRequest) -> list[str]:
    """What it would do, a line a segment. Raises RequestRefused, BackendUnavailable."""
    await _require_possible(ctx, wants)
    return [f"segment {segment.segment_id}: {move.value}" for segment, move in _moves(ctx, wants)]


async def open_seek(ctx: OperationContext, wants: CursorRequest, request: Request) -> None:
    """Journal a seek, skip-all or restore. Raises RequestRefused, BackendUnavailable."""
    await _require_possible(ctx, wants)
    operation = new_operation(
        ctx,
        _KINDS[type(wants)],
        Step.RELEASING,
        request,
        subscriptions=(wants.subscription,),
        seek_to_ms=wants.to_ms if isinstance(wants, SeekRequest) else None,
        positions=wants.positions if isinstance(wants, RestoreRequest) else None,
    )
    await open_journal(ctx, operation)


async def advance_seek(ctx: OperationContext, operation: Operation) -> None:
    """Take an open seek, skip-all or restore to its end, from whatever step it is at.

    Raises NotYet while consumers hold on to segments, BackendUnavailable when a broker does not answer; the same call
    later goes on from there. Consumers who do not let go in time, and a refusal, end it as failed.
    """
    subscription = operation.subscriptions[0]
    if operation.step is Step.RELEASING:
        if not ctx.readers.have_let_go(subscription):
            await _wait_for_readers(ctx, operation)
            return
        operation = replace(operation, step=Step.MOVING)
        # Nobody is told of floors before the journal is closed, and those of an earlier restore hold no more.
        state = _with_floors(ctx.store.state, operation)
        await ctx.store.commit(replace(state, operation=operation))
    wants = _wants(operation)
    try:
        await concurrently(_move(ctx, segment, move, wants) for segment, move in _moves(ctx, wants))
    except BackendRefused as refusal:
        # A floor beyond a cursor that has not moved would keep back what nobody has received.
        await ctx.store.commit(_with_floors(ctx.store.state, replace(operation, positions={})))
        await close_journal(
            ctx, operation, Result.FAILED, f"cursors may have been moved on some segments only: {refusal}"
        )
        return
    await close_journal(ctx, operation, Result.SUCCEEDED)


async def _wait_for_readers(ctx: OperationContext, operation: Operation) -> None:
    """Give up once they have had their time; raises NotYet before. The time counts through changes of leader."""
    subscription = operation.subscriptions[0]
    waited_seconds = ctx.clock.now_ms() / 1000 - datetime.fromisoformat(operation.started_at).timestamp()
    most_seconds = ctx.settings.release_wait_seconds
    if waited_seconds < most_seconds:
        raise NotYet(f"{ctx.topic}: consumers of subscription {subscription} have not let go of their segments yet")
    await close_journal(
        ctx,
        operation,
        Result.FAILED,
        f"consumers of subscription {subscription} did not let go of their segments within {most_seconds:g} s; "
        "no cursor was moved",
    )


async def _move(ctx: OperationContext, segment: Segment, move: Move, wants: CursorRequest) -> None:
    """Move the cursor of one segment. One that is not there stays so: it may never have had one (R18)."""
    topic, subscription = ctx.backend.segment_topic(ctx.topic, segment), wants.subscription
    match move, wants:
        case Move.TO_THE_END, _:
            await ctx.backend.skip_all(topic, subscription)
        case Move.TO_THE_BEGINNING, _:
            await ctx.backend.seek(topic, subscription, None)
        case Move.TO_THE_TIME, SeekRequest(_, to_ms):
            await ctx.backend.seek(topic, subscription, to_ms)
        case Move.BEHIND_THE_POSITION, RestoreRequest(_, positions):
            await _move_behind(ctx, topic, segment, subscription, positions)


async def _move_behind(
    ctx: OperationContext, topic: str, segment: Segment, subscription: str, positions: Positions
) -> None:
    position, is_complete = least_position(segment, positions)
    if not is_complete:
        look = await ctx.backend.look(topic)
        cursor = look.cursors.get(subscription)
        if cursor is None:
            return
        # Moved once more, it only stays where it is.
        committed = MessagePosition(cursor.mark_delete.ledger_id, cursor.mark_delete.entry_id)
        position = min(position, committed, key=order)
    await ctx.backend.move_behind(topic, subscription, position)


def _with_floors(state: TopicState, operation: Operation) -> TopicState:
    """What consumers of the subscription are told of entry buckets afterwards."""
    entry = state.subscriptions.get(operation.subscriptions[0])
    if entry is None or state.layout is None:
        return state
    entry = replace(entry, floors=floors_of(state.layout, operation.positions))
    return replace(state, subscriptions={**state.subscriptions, entry.name: entry})


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


def _wants(operation: Operation) -> CursorRequest:
    """What is asked for, from the journal."""
    subscription = operation.subscriptions[0]
    if operation.kind is OperationKind.RESTORE:
        return RestoreRequest(subscription, operation.positions)
    if operation.seek_to_ms is not None:
        return SeekRequest(subscription, operation.seek_to_ms)
    return SkipAllRequest(subscription)


def _moves(ctx: OperationContext, wants: CursorRequest) -> list[tuple[Segment, Move]]:
    """Where the cursors go, active segments first."""
    layout = ctx.store.state.layout
    if layout is None:
        return []
    moves = moves_of(layout, wants)
    return [(segment, moves[segment.segment_id]) for segment in (*layout.active, *layout.sealed)]
