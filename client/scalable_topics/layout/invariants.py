"""What must hold of every layout (DESIGN §4); a record that breaks one is refused, nothing acts on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scalable_topics.layout.errors import LayoutArgumentError
from scalable_topics.layout.hash_range import LAST_HASH, RING_SIZE, HashRange
from scalable_topics.layout.segment import Segment


def check_invariants(
    epoch: int, next_segment_id: int, segments: Mapping[int, Segment], active: Sequence[Segment]
) -> None:
    """Raise LayoutArgumentError with the reason unless the parts make a valid layout.

    Args:
        epoch: the layout's epoch.
        next_segment_id: first id never used or reserved.
        segments: all segments by id.
        active: the active ones, in ring order.
    """
    if epoch < 0:
        raise LayoutArgumentError(f"the epoch is {epoch}, below 0")
    for segment_id, segment in segments.items():
        _check_identity(segment_id, segment, next_segment_id)
        if max(segment.created_at_epoch, segment.sealed_at_epoch) > epoch:
            raise LayoutArgumentError(f"{segment} was created or sealed after the layout's epoch {epoch}")
        _check_edges(segment, segments)
    if is_synthetic(active):
        for segment in active:
            if segment.hash_range != HashRange.full():
                raise LayoutArgumentError(f"{segment} wraps an ordinary topic and must cover the whole ring")
    else:
        _check_tiling(active)


def is_synthetic(active: Sequence[Segment]) -> bool:
    """Whether all active segments (at least one) wrap ordinary topics, so routing is by modulo (pip-475)."""
    return bool(active) and all(segment.is_legacy for segment in active)


def _check_identity(segment_id: int, segment: Segment, next_segment_id: int) -> None:
    if segment.segment_id != segment_id:
        raise LayoutArgumentError(f"segment {segment.segment_id} is filed under the id {segment_id}")
    if segment_id >= next_segment_id:
        raise LayoutArgumentError(f"segment {segment_id} has an id not below the next segment id {next_segment_id}")


def _check_edges(segment: Segment, segments: Mapping[int, Segment]) -> None:
    for parent_id in segment.parent_ids:
        parent = segments.get(parent_id)
        if parent is None:
            raise LayoutArgumentError(f"segment {segment.segment_id} names the parent {parent_id}, which is missing")
        if segment.segment_id not in parent.child_ids:
            raise LayoutArgumentError(
                f"segment {segment.segment_id} names {parent_id} as parent, but is not among its children"
            )
        if parent_id >= segment.segment_id:
            raise LayoutArgumentError(f"segment {segment.segment_id} is older than its parent {parent_id}")
        if not parent.hash_range.overlaps(segment.hash_range):
            raise LayoutArgumentError(f"{segment} has no hash in common with its parent {parent}")
    for child_id in segment.child_ids:
        child = segments.get(child_id)
        if child is None:
            raise LayoutArgumentError(f"segment {segment.segment_id} names the child {child_id}, which is missing")
        if segment.segment_id not in child.parent_ids:
            raise LayoutArgumentError(
                f"segment {segment.segment_id} names {child_id} as child, but is not among its parents"
            )


def _check_tiling(active: Sequence[Segment]) -> None:
    expected = 0
    previous: Segment | None = None
    for segment in active:
        start = segment.hash_range.start
        if start < expected:
            raise LayoutArgumentError(f"active segments overlap: {previous} and {segment}")
        if start > expected:
            raise LayoutArgumentError(f"no active segment covers {HashRange(expected, start - 1)}")
        expected = segment.hash_range.end + 1
        previous = segment
    if expected != RING_SIZE:
        raise LayoutArgumentError(f"no active segment covers {HashRange(expected, LAST_HASH)}")
