"""What the positions of a checkpoint say of a segment and of each of its entry buckets (R22, pip-486). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalable_topics.layout import WHOLE, Part, Segment, SegmentLayout
from scalable_topics_operator.operations.protocols import MessagePosition

Positions = Mapping[Part, MessagePosition]
"""The last message that counts as received, of whole segments and of entry buckets; where there are both, the later."""


def order(position: MessagePosition) -> tuple[int, int, float]:
    """What orders positions: all of an entry is later than any of its messages."""
    return position.ledger_id, position.entry_id, float("inf") if position.batch_index < 0 else position.batch_index


def least_position(segment: Segment, positions: Positions) -> tuple[MessagePosition, bool]:
    """Behind which message the cursor of a segment goes, and whether that is so for all of its buckets.

    Where it is not, the positions tell nothing of some buckets: these were committed as far as the cursor stands.

    Args:
        segment: of which there is a position.
        positions: of the checkpoint.
    """
    known = [position for position in _by_bucket(segment, positions) if position is not None]
    return min(known, key=order), len(known) == segment.buckets


def floors_of(layout: SegmentLayout, positions: Positions) -> dict[Part, MessagePosition]:
    """The positions of those buckets that had been received beyond where the cursor of their segment goes."""
    floors = {}
    for segment_id in segments_of(positions):
        segment = layout.segments.get(segment_id)
        if segment is None:
            continue
        least, is_complete = least_position(segment, positions)
        for bucket, position in enumerate(_by_bucket(segment, positions)):
            if position is not None and (position != least or not is_complete):
                floors[Part(segment_id, bucket)] = position
    return floors


def segments_of(positions: Iterable[Part]) -> frozenset[int]:
    """Segments that something is said of."""
    return frozenset(part.segment_id for part in positions)


def to_positions_json(positions: Positions) -> list[dict[str, Any]]:
    """The form in objects, in order."""
    return [
        {
            "segment": part.segment_id,
            **({} if part.is_whole else {"bucket": part.bucket}),
            "ledgerId": position.ledger_id,
            "entryId": position.entry_id,
            "batchIndex": position.batch_index,
        }
        for part, position in sorted(positions.items())
    ]


def from_positions_json(values: Iterable[Mapping[str, Any]]) -> dict[Part, MessagePosition]:
    """Read what `to_positions_json` made. Raises KeyError for anything else."""
    return {
        Part(value["segment"], value.get("bucket", WHOLE)): MessagePosition(
            value["ledgerId"], value["entryId"], value.get("batchIndex", -1)
        )
        for value in values
    }


def _by_bucket(segment: Segment, positions: Positions) -> list[MessagePosition | None]:
    whole = positions.get(Part(segment.segment_id))
    found = []
    for bucket in range(segment.buckets):
        own = positions.get(Part(segment.segment_id, bucket))
        known = [position for position in (whole, own) if position is not None]
        found.append(max(known, key=order, default=None))
    return found
