"""From `segments.desired` to the next single change (R30). Pure."""

from __future__ import annotations

from itertools import pairwise

from scalable_topics.layout import SegmentChange, SegmentLayout


def next_change(layout: SegmentLayout, desired: int) -> SegmentChange | None:
    """The next split or merge on the way to `desired` active segments, or None when there is nothing to do.

    The widest segment is split (ties: lowest id) and the narrowest touching pair is merged (ties: lowest start),
    so that the ring ends up as even as halving allows. A ring whose segments are all one hash wide is at its end.
    """
    active = layout.active
    if len(active) < desired:
        widest = max(active, key=lambda segment: (segment.hash_range.size, -segment.segment_id))
        return layout.plan_split(widest.segment_id) if widest.hash_range.size > 1 else None
    if len(active) > desired:
        left, right = min(
            pairwise(active),
            key=lambda pair: (pair[0].hash_range.size + pair[1].hash_range.size, pair[0].hash_range.start),
        )
        return layout.plan_merge([left.segment_id, right.segment_id])
    return None
