"""Planning and applying changes over a set of segments (pip-468 split and merge, pip-486 rebucket).

Functions over plain mappings; `SegmentLayout` offers them as methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from scalable_topics.layout.entry_buckets import DEFAULT_BUCKET_BUDGET, MAX_BUCKETS, bucket_count_for
from scalable_topics.layout.errors import LayoutArgumentError, LayoutStateError
from scalable_topics.layout.hash_range import RING_SIZE, HashRange
from scalable_topics.layout.segment import (
    CreatedBy,
    PlannedSegment,
    Segment,
    SegmentChange,
    SegmentState,
    check_buckets,
)


def planned_initial(
    segments: int, *, bucket_budget: int = DEFAULT_BUCKET_BUDGET, first_id: int = 0
) -> tuple[PlannedSegment, ...]:
    """The segments of a new topic: equal ranges over the ring, the last taking the rest, and equal buckets.

    Args:
        segments: how many, 1..65536.
        bucket_budget: entry buckets of the whole topic, 1 or more; each segment gets its share, at least 1.
        first_id: id of the first; the others follow.

    Raises:
        LayoutArgumentError: a count out of range.
    """
    if not 1 <= segments <= RING_SIZE:
        raise LayoutArgumentError(f"a topic starts with 1 to {RING_SIZE} segments, not {segments}")
    full = HashRange.full()
    ranges = (full,) if segments == 1 else full.split(into=segments)
    buckets = bucket_count_for(bucket_budget, segments)
    return tuple(PlannedSegment(first_id + index, hash_range, buckets) for index, hash_range in enumerate(ranges))


def plan_split(
    segments: Mapping[int, Segment], next_id: int, segment_id: int, *, at: int | None, into: int
) -> SegmentChange:
    """See `SegmentLayout.plan_split`."""
    parent = _regular(segments, segment_id, "split")
    try:
        ranges = parent.hash_range.split(at, into)
    except LayoutStateError as refusal:
        raise LayoutStateError(f"segment {segment_id} {refusal}") from None
    buckets = max(1, parent.buckets // len(ranges))
    children = tuple(
        PlannedSegment(next_id + index, hash_range, buckets, parent.merge_depth)
        for index, hash_range in enumerate(ranges)
    )
    return SegmentChange(CreatedBy.SPLIT, (segment_id,), children)


def plan_merge(segments: Mapping[int, Segment], next_id: int, ids: Iterable[int]) -> SegmentChange:
    """See `SegmentLayout.plan_merge`."""
    chosen = list(ids)
    if len(set(chosen)) != len(chosen):
        raise LayoutArgumentError(f"a merge names a segment twice: {chosen}")
    if len(chosen) < 2:
        raise LayoutArgumentError(f"a merge takes two segments or more, not {chosen}")
    parents = [_regular(segments, segment_id, "merged") for segment_id in chosen]
    child = PlannedSegment(
        next_id,
        _union(parents),
        min(sum(parent.buckets for parent in parents), MAX_BUCKETS),
        max(parent.merge_depth for parent in parents) + 1,
    )
    return SegmentChange(CreatedBy.MERGE, tuple(sorted(chosen)), (child,))


def plan_rebucket(segments: Mapping[int, Segment], next_id: int, segment_id: int, buckets: int) -> SegmentChange:
    """See `SegmentLayout.plan_rebucket`."""
    parent = _regular(segments, segment_id, "rebucketed")
    check_buckets(buckets, f"segment {segment_id}")
    if parent.buckets == buckets:
        raise LayoutArgumentError(f"segment {segment_id} already has {buckets} entry buckets")
    return _same_range(parent, next_id, buckets)


def plan_rollover(segments: Mapping[int, Segment], next_id: int, segment_id: int) -> SegmentChange:
    """See `SegmentLayout.plan_rollover`."""
    parent = _regular(segments, segment_id, "rolled over")
    return _same_range(parent, next_id, parent.buckets)


def apply_change(
    segments: Mapping[int, Segment],
    change: SegmentChange,
    *,
    epoch: int,
    now_ms: int,
    sealed_positions: Mapping[int, str],
) -> dict[int, Segment]:
    """The segments after `change`, sealed and created at `epoch`. Raises as `SegmentLayout.apply`."""
    parents = _parents_still_active(segments, change)
    _check_ranges(parents, change)
    strangers = sealed_positions.keys() - set(change.parent_ids)
    if strangers:
        raise LayoutArgumentError(f"sealed positions of {sorted(strangers)}, which the {change.kind} does not seal")
    after = dict(segments)
    for parent in parents:
        after[parent.segment_id] = replace(
            parent,
            state=SegmentState.SEALED,
            child_ids=change.child_ids,
            sealed_at_epoch=epoch,
            sealed_at_ms=now_ms,
            sealed_position=sealed_positions.get(parent.segment_id),
        )
    for child in change.children:
        after[child.segment_id] = Segment(
            child.segment_id,
            child.hash_range,
            parent_ids=change.parent_ids,
            created_at_epoch=epoch,
            created_at_ms=now_ms,
            buckets=child.buckets,
            merge_depth=child.merge_depth,
            created_by=change.kind,
        )
    return after


def prune_segments(segments: Mapping[int, Segment], ids: Iterable[int]) -> dict[int, Segment]:
    """The segments without those of `ids`, every edge to them cut; all must be sealed."""
    gone = set(ids)
    if not gone:
        raise LayoutArgumentError("no segment to prune was named")
    for segment_id in sorted(gone):
        if known(segments, segment_id).is_active:
            raise LayoutArgumentError(f"segment {segment_id} is active; only sealed segments can be pruned")
    after: dict[int, Segment] = {}
    for segment_id, segment in segments.items():
        if segment_id in gone:
            continue
        if gone.isdisjoint(segment.parent_ids) and gone.isdisjoint(segment.child_ids):
            after[segment_id] = segment
        else:
            after[segment_id] = replace(
                segment,
                parent_ids=tuple(parent for parent in segment.parent_ids if parent not in gone),
                child_ids=tuple(child for child in segment.child_ids if child not in gone),
            )
    return after


def known(segments: Mapping[int, Segment], segment_id: int) -> Segment:
    """The segment of that id. Raises LayoutArgumentError if there is none."""
    segment = segments.get(segment_id)
    if segment is None:
        raise LayoutArgumentError(f"there is no segment {segment_id} in the layout")
    return segment


def _regular(segments: Mapping[int, Segment], segment_id: int, done: str) -> Segment:
    segment = known(segments, segment_id)
    if not segment.is_active:
        raise LayoutArgumentError(f"segment {segment_id} is sealed; only active segments can be {done}")
    if segment.is_legacy:
        raise LayoutStateError(
            f"segment {segment_id} is the ordinary topic {segment.topic}; migrate it before it is {done}"
        )
    return segment


def _same_range(parent: Segment, next_id: int, buckets: int) -> SegmentChange:
    child = PlannedSegment(next_id, parent.hash_range, buckets, parent.merge_depth)
    return SegmentChange(CreatedBy.REBUCKET, (parent.segment_id,), (child,))


def _union(parents: Sequence[Segment]) -> HashRange:
    in_ring_order = sorted(parents, key=lambda segment: segment.hash_range)
    for left, right in pairwise(in_ring_order):
        if not left.hash_range.touches(right.hash_range):
            raise LayoutArgumentError(
                f"segments {left.segment_id} {left.hash_range} and {right.segment_id} {right.hash_range} do not touch"
            )
    return HashRange(in_ring_order[0].hash_range.start, in_ring_order[-1].hash_range.end)


def _parents_still_active(segments: Mapping[int, Segment], change: SegmentChange) -> list[Segment]:
    parents = []
    for parent_id in change.parent_ids:
        parent = segments.get(parent_id)
        if parent is None:
            raise LayoutStateError(f"the planned {change.kind} is stale: segment {parent_id} is gone")
        if not parent.is_active or parent.is_legacy:
            raise LayoutStateError(
                f"the planned {change.kind} is stale: segment {parent_id} is no regular active segment"
            )
        parents.append(parent)
    return parents


def _check_ranges(parents: Sequence[Segment], change: SegmentChange) -> None:
    one_parent, one_child = len(parents) == 1, len(change.children) == 1
    fits = {
        CreatedBy.SPLIT: one_parent and not one_child,
        CreatedBy.MERGE: one_child and not one_parent,
        CreatedBy.REBUCKET: one_parent and one_child,
    }[change.kind]
    if not fits:
        raise LayoutStateError(f"a {change.kind} does not make {len(change.children)} segments of {len(parents)}")
    whole = _union(parents)
    expected = whole.start
    for child in sorted(change.children, key=lambda planned: planned.hash_range):
        if child.hash_range.start != expected:
            break
        expected = child.hash_range.end + 1
    else:
        if expected == whole.end + 1:
            return
    made = ", ".join(str(child.hash_range) for child in change.children)
    raise LayoutStateError(f"the planned {change.kind} makes {made}, which does not tile {whole}")
