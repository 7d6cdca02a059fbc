"""Values that tests of operations begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scalable_topics.layout import (
    CreatedBy,
    HashRange,
    PlannedSegment,
    Segment,
    SegmentLayout,
    TopicName,
    classic_segment_name,
)
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Step
from scalable_topics_operator.operations.protocols import Claim, CursorLook, Position, SegmentLook, SegmentRecord
from scalable_topics_operator.operations.rebuild import Witness

TOPIC = TopicName("tenant", "space", "orders")
CLAIM = Claim("installation-1", "kubernetes-1", "uid-1", "team", "orders", "Classic")
REQUEST = Request("SegmentOperation", "split-it", "uid-9")
MADE_AT_MS = 1_800_000_000_000


def record_of(segment: Segment, siblings: Iterable[int], operation_id: str, next_segment_id: int) -> SegmentRecord:
    """What a segment's topic says of itself, with the parents it had when it was made."""
    return SegmentRecord(
        segment_id=segment.segment_id,
        hash_range=segment.hash_range,
        parent_ids=segment.parent_ids,
        buckets=segment.buckets,
        merge_depth=segment.merge_depth,
        created_at_epoch=segment.created_at_epoch,
        created_at_ms=segment.created_at_ms,
        created_by=segment.created_by.value,
        operation_id=operation_id,
        sibling_ids=tuple(siblings),
        next_segment_id=next_segment_id,
        claim=CLAIM,
    )


def witness(
    segment_id: int,
    hash_range: str,
    *,
    operation: str,
    siblings: tuple[int, ...],
    parents: tuple[int, ...] = (),
    terminated: bool = False,
    entries: int = 0,
    subscriptions: Iterable[str] = (),
    epoch: int = 0,
) -> Witness:
    """One segment topic, by hand."""
    created_by = CreatedBy.CREATE
    if parents:
        created_by = CreatedBy.SPLIT if len(siblings) > 1 else CreatedBy.MERGE
    segment = Segment(
        segment_id,
        HashRange.parse_descriptor(hash_range),
        parent_ids=parents,
        created_at_epoch=epoch,
        created_at_ms=MADE_AT_MS + epoch,
        created_by=created_by,
    )
    return Witness(
        record=record_of(segment, siblings, operation, max(siblings) + 1),
        topic=classic_segment_name(TOPIC, segment.hash_range, segment_id),
        terminated=terminated,
        last_confirmed=Position(segment_id + 1, entries - 1),
        entries=entries,
        subscriptions=frozenset(subscriptions),
    )


def sealed_segment(position: str | None = "7:9") -> Segment:
    """Segment 0 of `split_layout`, which ends at `position`."""
    layout = split_layout()
    return replace(layout.segment(0), sealed_position=position)


def split_layout() -> SegmentLayout:
    """Segment 0, sealed, and its halves 1 and 2."""
    layout = SegmentLayout.initial(1, created_at_ms=MADE_AT_MS)
    change = layout.plan_split(0)
    return layout.reserve(change).apply(change, now_ms=MADE_AT_MS, sealed_positions={0: "7:9"})


def cursor(mark_delete: str, *, backlog: int = 0, counts: bool = True) -> CursorLook:
    """One cursor of a segment."""
    return CursorLook(counts=counts, mark_delete=Position.parse(mark_delete), backlog=backlog, consumers=0)


def sealed_look(cursors: Mapping[str, CursorLook], *, end: str = "7:9", terminated: bool = True) -> SegmentLook:
    """A segment that ends at `end`, as its broker shows it."""
    position = Position.parse(end)
    return SegmentLook(
        terminated=terminated,
        last_confirmed=position,
        pending_adds=0,
        entries=position.entry_id + 1,
        producers=frozenset(),
        cursors=dict(cursors),
    )


def split_operation() -> Operation:
    """A split of segment 0 that has just been journaled."""
    children = tuple(PlannedSegment(number, HashRange.full(), 1) for number in (1, 2))
    return Operation("one", OperationKind.SPLIT, Step.CREATING, 1, (0,), children, ("reader",), "now", REQUEST, 3)
