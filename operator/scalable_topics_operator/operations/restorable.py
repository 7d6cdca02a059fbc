"""Whether a checkpoint can be restored: what followed it must still be there, since brokers skip what is not (R22)."""

from __future__ import annotations

from collections.abc import Mapping

from scalable_topics.layout import Part, Segment, SegmentLayout
from scalable_topics_operator.operations.bucket_positions import segments_of
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.cursor_moves import Move, moves_of_restore
from scalable_topics_operator.operations.errors import RequestRefused, TopicMissing
from scalable_topics_operator.operations.protocols import MessagePosition, Position, SegmentLook
from scalable_topics_operator.operations.requests import RestoreRequest

_MINUTE_MS = 60_000


async def require_kept(ctx: OperationContext, wants: RestoreRequest) -> None:
    """Make sure that what followed the positions of a checkpoint can be read again.

    Raises RequestRefused: `CheckpointExpired` where it may be gone, and other reasons for positions that cannot be;
    BackendUnavailable.
    """
    layout = ctx.store.state.layout
    if layout is None:
        return
    segments = {part.segment_id: _named(layout, part, position) for part, position in sorted(wants.positions.items())}
    looks = dict(await concurrently(_look(ctx, segment, wants.subscription) for segment in segments.values()))
    for part, position in sorted(wants.positions.items()):
        _check_position(part.segment_id, looks[part.segment_id], position, wants)
    if not wants.allow_gaps:
        read = [segment for segment in _later(layout, wants) if _may_be_read(layout, segment, looks, wants)]
        await concurrently(_check_age(ctx, segment) for segment in read)


def _named(layout: SegmentLayout, part: Part, position: MessagePosition) -> Segment:
    segment_id = part.segment_id
    segment = layout.segments.get(segment_id)
    if segment is not None and part.bucket >= segment.buckets:
        raise RequestRefused(
            "InvalidRequest", f"segment {segment_id} has {segment.buckets} entry buckets, and no bucket {part.bucket}"
        )
    if segment is not None:
        return segment
    if segment_id < layout.next_segment_id:
        raise RequestRefused(
            "CheckpointExpired",
            f"segment {segment_id} has left the layout since the checkpoint was taken; what followed "
            f"{_place(position)} there cannot be read again",
        )
    raise RequestRefused("SegmentMissing", f"there is no segment {segment_id} in the layout")


async def _look(ctx: OperationContext, segment: Segment, subscription: str) -> tuple[int, SegmentLook]:
    try:
        look = await ctx.backend.look(ctx.backend.segment_topic(ctx.topic, segment))
    except TopicMissing as missing:
        raise RequestRefused("NotPossible", f"segment {segment.segment_id} has no topic: {missing}") from missing
    if subscription not in look.cursors:
        raise RequestRefused(
            "CursorLost",
            f"subscription {subscription} has no cursor on segment {segment.segment_id}, which it has read",
        )
    return segment.segment_id, look


def _check_position(segment_id: int, look: SegmentLook, position: MessagePosition, wants: RestoreRequest) -> None:
    place = _place(position)
    if place > look.last_confirmed:
        raise RequestRefused(
            "InvalidRequest",
            f"segment {segment_id} ends at {look.last_confirmed}, before the position {place}; the checkpoint is of "
            "another topic, or of one that was made anew",
        )
    is_cut = position.ledger_id < look.first_ledger_id
    if is_cut and look.cursors[wants.subscription].mark_delete > place and not wants.allow_gaps:
        raise RequestRefused(
            "CheckpointExpired",
            f"messages that followed {place} on segment {segment_id} may be gone: what is left begins with ledger "
            f"{look.first_ledger_id}; retention keeps what is acknowledged, and allowGaps goes on with what is left",
        )


def _later(layout: SegmentLayout, wants: RestoreRequest) -> list[Segment]:
    """Segments of which everything is to be read again."""
    moves = moves_of_restore(layout, segments_of(wants.positions))
    return [segment for segment in layout.segments.values() if moves[segment.segment_id] is Move.TO_THE_BEGINNING]


def _may_be_read(
    layout: SegmentLayout, segment: Segment, looks: Mapping[int, SegmentLook], wants: RestoreRequest
) -> bool:
    """Whether the group may have acknowledged something of a segment: it is read once those before it are drained."""
    before = [looks[one.segment_id] for one in layout.lineage(segment.segment_id) if one.segment_id in looks]
    return all(look.terminated and look.cursors[wants.subscription].backlog == 0 for look in before)


async def _check_age(ctx: OperationContext, segment: Segment) -> None:
    """Where a segment began is not known, so only its age can say that nothing of it is gone."""
    try:
        kept_minutes = await ctx.backend.kept_minutes(ctx.backend.segment_topic(ctx.topic, segment))
    except TopicMissing as missing:
        raise RequestRefused("NotPossible", f"segment {segment.segment_id} has no topic: {missing}") from missing
    age_ms = ctx.clock.now_ms() - segment.created_at_ms
    if 0 <= kept_minutes * _MINUTE_MS < age_ms:
        raise RequestRefused(
            "CheckpointExpired",
            f"messages of segment {segment.segment_id}, which came after the checkpoint, may be gone: it is "
            f"{age_ms // _MINUTE_MS} min old and brokers keep what is acknowledged for {kept_minutes} min; "
            "allowGaps goes on with what is left",
        )


def _place(position: MessagePosition) -> Position:
    return Position(position.ledger_id, position.entry_id)
