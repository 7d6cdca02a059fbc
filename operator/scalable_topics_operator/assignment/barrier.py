"""The drain barrier: a segment is read only once everything before it has been (R17, hazard A3-26274). Pure."""

from __future__ import annotations

from collections.abc import Set

from scalable_topics.layout import Segment, SegmentLayout


def readable_segments(layout: SegmentLayout, drained: Set[int]) -> tuple[Segment, ...]:
    """The segments that a subscription may read now, in the order in which they are dealt (pip-468).

    These are all, active or sealed, that are not drained and whose parents are, as far as they are still in the layout:
    one that was pruned had been drained before.

    Args:
        layout: of the topic.
        drained: ids of the sealed segments that the subscription has read to their ends, or that it never reads (R18).
    """
    readable = (
        segment
        for segment in layout.segments.values()
        if segment.segment_id not in drained
        and all(parent.segment_id in drained for parent in layout.parents_of(segment.segment_id))
    )
    return tuple(sorted(readable, key=lambda segment: (segment.hash_range, segment.segment_id)))
