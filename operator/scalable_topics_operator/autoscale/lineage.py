"""How many merges a segment's ancestry still counts, as time forgives them (pip-483 maxDagDepth, R36). Pure."""

from __future__ import annotations

from scalable_topics.layout import CreatedBy, Segment, SegmentLayout

_MS = 1000


def counted_depth(layout: SegmentLayout, segment: Segment, *, recovery_seconds: float, now_ms: int) -> int:
    """The merge depth of a segment, one less for each `recovery_seconds` since its lineage's last merge.

    An automatic merge records this of its parents and one more, so that what was forgiven stays forgiven: daily tides
    would otherwise end merging for good. 0 seconds forgives nothing.
    """
    if not segment.merge_depth or recovery_seconds <= 0:
        return segment.merge_depth
    forgiven = max(0, now_ms - _last_merge_ms(layout, segment)) / (recovery_seconds * _MS)
    return max(0, segment.merge_depth - int(forgiven))


def _last_merge_ms(layout: SegmentLayout, segment: Segment) -> int:
    """When it was merged last; no earlier than that where the ancestors that would tell were pruned."""
    merged: list[int] = []
    oldest = segment.created_at_ms
    ahead = [segment]
    while ahead:
        one = ahead.pop()
        oldest = min(oldest, one.created_at_ms)
        if one.created_by is CreatedBy.MERGE:
            # Whatever was merged before it was merged earlier.
            merged.append(one.created_at_ms)
        else:
            ahead += (layout.segments[parent] for parent in one.parent_ids)
    return max(merged, default=oldest)
