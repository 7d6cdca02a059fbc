"""Where the cursor of each segment goes when a subscription is moved (R18, R22, pip-468, pip-460). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from scalable_topics.layout import Segment, SegmentLayout
from scalable_topics_operator.operations.bucket_positions import segments_of
from scalable_topics_operator.operations.requests import CursorRequest, RestoreRequest, SeekRequest


class Move(Enum):
    """Where the cursor of one segment goes."""

    TO_THE_END = "its cursor goes to the end"
    TO_THE_BEGINNING = "its cursor goes to the beginning"
    TO_THE_TIME = "its cursor goes to the time"
    BEHIND_THE_POSITION = "its cursor goes behind the checkpoint's position"
    STAYS = "its cursor stays: the checkpoint tells nothing of it"


def moves_of(layout: SegmentLayout, wants: CursorRequest) -> Mapping[int, Move]:
    """Where the cursors go for a request, by segment."""
    if isinstance(wants, RestoreRequest):
        return moves_of_restore(layout, segments_of(wants.positions))
    to_ms = wants.to_ms if isinstance(wants, SeekRequest) else None
    return {segment_id: move_of(segment, to_ms) for segment_id, segment in layout.segments.items()}


def move_of(segment: Segment, to_ms: int | None) -> Move:
    """Where a cursor goes for a seek, or for a skip-all (None).

    A segment that was sealed before the time holds nothing of it or after, and one that was made after it nothing else.
    """
    if to_ms is None:
        return Move.TO_THE_END
    if not segment.is_active and 0 < segment.sealed_at_ms <= to_ms:
        return Move.TO_THE_END
    return Move.TO_THE_BEGINNING if segment.created_at_ms >= to_ms else Move.TO_THE_TIME


def moves_of_restore(layout: SegmentLayout, named: Collection[int]) -> Mapping[int, Move]:
    """Where the cursors go for a checkpoint, by segment.

    A segment is read once everything before it is read to its end (R17). So where a checkpoint has a position, the
    segment's ancestors had been read and its descendants had not. Segments of neither kind were read by consumers whose
    positions the checkpoint does not have.

    Args:
        layout: with all the segments the checkpoint names.
        named: segments of which it has a position.
    """
    before: set[int] = set()
    behind: set[int] = set()
    for segment_id in named:
        for relative in layout.lineage(segment_id):
            # Children get ids above those of their parents.
            (before if relative.segment_id < segment_id else behind).add(relative.segment_id)

    def move(segment_id: int) -> Move:
        if segment_id in named:
            return Move.BEHIND_THE_POSITION
        if segment_id in before:
            return Move.TO_THE_END
        return Move.TO_THE_BEGINNING if segment_id in behind else Move.STAYS

    return {segment_id: move(segment_id) for segment_id in layout.segments}
