"""A SegmentOperation's request turned into a change of the layout, or into words that say why not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scalable_topics.layout import LayoutArgumentError, Part, SegmentChange, SegmentLayout
from scalable_topics_operator.autoscale.decision import Action, Merge, Rebucket, Split
from scalable_topics_operator.operations.errors import RequestRefused
from scalable_topics_operator.operations.protocols import MessagePosition


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """Split one active segment at its middle, at `at` (first hash of the second part), or into `into` parts."""

    segment_id: int
    at: int | None = None
    into: int = 2


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Merge two or more touching active segments, in any order.

    Args:
        segment_ids: of the segments.
        merge_depth: what the merged segment counts, where time has forgiven some of it (R36); None for one more than
            its parents.
    """

    segment_ids: tuple[int, ...]
    merge_depth: int | None = None


@dataclass(frozen=True, slots=True)
class RebucketRequest:
    """Roll one active segment over to a successor with another bucket count."""

    segment_id: int
    buckets: int


@dataclass(frozen=True, slots=True)
class PruneRequest:
    """Prune the given sealed segments, or all that may go."""

    segment_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SeekRequest:
    """Move the cursors of a subscription to a time, in milliseconds since 1970."""

    subscription: str
    to_ms: int


@dataclass(frozen=True, slots=True)
class SkipAllRequest:
    """Move the cursors of a subscription behind everything there is."""

    subscription: str


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """Move the cursors of a checkpoint group to where a checkpoint was taken (R22).

    Args:
        subscription: the group.
        positions: the last message that counts as received, of whole segments and of entry buckets.
        allow_gaps: whether to go on where messages behind a position may be gone.
    """

    subscription: str
    positions: Mapping[Part, MessagePosition]
    allow_gaps: bool = False


CursorRequest = SeekRequest | SkipAllRequest | RestoreRequest
ReshapeRequest = SplitRequest | MergeRequest | RebucketRequest


def requests_of(action: Action) -> Iterator[ReshapeRequest]:
    """The operations that an action is made of, in order."""
    match action:
        case Split(segment_id, into, _):
            yield SplitRequest(segment_id, into=into)
        case Merge(segment_ids, merge_depth, _):
            yield MergeRequest(segment_ids, merge_depth)
        case Rebucket(segment_ids, buckets, _):
            for segment_id in segment_ids:
                yield RebucketRequest(segment_id, buckets)


def plan(layout: SegmentLayout, request: ReshapeRequest, *, max_records: int) -> SegmentChange:
    """Plan a request against the newest layout (bounds are checked at execution, R10).

    Raises LayoutError saying what is wrong with the request, including a layout too full to grow (R29).
    """
    match request:
        case SplitRequest(segment_id, at, into):
            change = layout.plan_split(segment_id, at=at, into=into)
        case MergeRequest(segment_ids, merge_depth):
            change = layout.plan_merge(segment_ids)
            if merge_depth is not None:
                change = replace(change, children=(replace(change.children[0], merge_depth=merge_depth),))
        case RebucketRequest(segment_id, buckets):
            change = layout.plan_rebucket(segment_id, buckets)
    if len(layout.segments) + len(change.children) > max_records:
        raise LayoutArgumentError(
            f"the layout holds {len(layout.segments)} segments of {max_records} and has no room for "
            f"{len(change.children)} more; sealed segments leave it once they are drained and past retention"
        )
    return change


def describe(change: SegmentChange, layout: SegmentLayout) -> Sequence[str]:
    """One line a parent and a child, as a dry run shows them."""
    lines = [f"seals segment {parent} {layout.segment(parent).hash_range}" for parent in change.parent_ids]
    lines += [
        f"creates segment {child.segment_id} {child.hash_range} with {child.buckets} entry buckets"
        for child in change.children
    ]
    return lines


def plan_asked(layout: SegmentLayout, request: ReshapeRequest, *, max_records: int) -> SegmentChange:
    """Plan a request; one that names what is not there, or is sealed, is told from one that never makes sense.

    Raises RequestRefused and LayoutError.
    """
    try:
        return plan(layout, request, max_records=max_records)
    except LayoutArgumentError as error:
        wanted = request.segment_ids if isinstance(request, MergeRequest) else (request.segment_id,)
        if any(segment_id not in layout.segments for segment_id in wanted):
            raise RequestRefused("SegmentMissing", str(error)) from error
        if not all(layout.segment(segment_id).is_active for segment_id in wanted):
            raise RequestRefused("NotPossible", str(error)) from error
        raise
