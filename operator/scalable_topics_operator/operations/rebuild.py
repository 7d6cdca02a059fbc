"""A layout rebuilt from what the segment topics say of themselves (R11). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scalable_topics.layout import (
    CreatedBy,
    LayoutError,
    PlannedSegment,
    Segment,
    SegmentLayout,
    SegmentState,
)
from scalable_topics_operator.operations.protocols import Position, SegmentRecord


@dataclass(frozen=True, slots=True)
class Witness:
    """One segment topic: its record and what its broker shows."""

    record: SegmentRecord
    topic: str
    terminated: bool
    last_confirmed: Position
    entries: int


@dataclass(frozen=True, slots=True)
class UnfinishedSeal:
    """An operation found past its point of no return: some of its parents are sealed, some are not."""

    operation_id: str
    created_by: CreatedBy
    parents: tuple[int, ...]
    children: tuple[PlannedSegment, ...]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the segment topics tell.

    Args:
        layout: the layout they make; None when `problem` says why none can be made, or when all there is are
            empty leftovers of a creation that never ended.
        unfinished: an operation that must be taken to its end before anything else.
        discard: topics of operations that never reached their seal, or that lost to a later one while empty.
        problem: why a person must decide.
    """

    layout: SegmentLayout | None = None
    unfinished: UnfinishedSeal | None = None
    discard: tuple[str, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class _Reading:
    """Groups of segments that one operation made, sorted into those that count and those that do not."""

    witnesses: Mapping[int, Witness]
    counted: set[int] = field(default_factory=set)
    discarded: list[str] = field(default_factory=list)
    unfinished: list[tuple[Witness, ...]] = field(default_factory=list)


def rebuild(witnesses: Sequence[Witness]) -> Rebuilt:
    """Rebuild a layout.

    Children count if all their parents are sealed (or were pruned); with some sealed the operation is to be
    finished; with none it is rolled back. Of two complete sets of children of the same parents the one with
    the higher ids wins if the other is empty.
    """
    by_id = {witness.record.segment_id: witness for witness in witnesses}
    if not by_id:
        return Rebuilt(problem="no segment of the topic carries a record")
    reading = _Reading(by_id)
    groups: dict[str, list[Witness]] = defaultdict(list)
    for witness in witnesses:
        groups[witness.record.operation_id].append(witness)
    for group in sorted(groups.values(), key=lambda members: min(w.record.segment_id for w in members)):
        _sort_group(reading, tuple(sorted(group, key=lambda w: w.record.segment_id)))
    if not reading.counted and not reading.unfinished:
        return Rebuilt(discard=tuple(reading.discarded))
    problem = _settle_rivals(reading)
    if problem:
        return Rebuilt(problem=problem)
    if len(reading.unfinished) > 1:
        return Rebuilt(problem="more than one operation is half sealed; the records contradict each other")
    next_id = max(max(w.record.next_segment_id, w.record.segment_id + 1) for w in witnesses)
    try:
        layout = _assemble(reading, next_id)
    except LayoutError as error:
        return Rebuilt(problem=f"the segments found do not make a layout: {error}")
    return Rebuilt(
        layout=layout,
        unfinished=_unfinished(reading.unfinished[0]) if reading.unfinished else None,
        discard=tuple(reading.discarded),
    )


def _sort_group(reading: _Reading, group: tuple[Witness, ...]) -> None:
    parents = group[0].record.parent_ids
    known = [parent for parent in parents if parent in reading.witnesses]
    sealed = [parent for parent in known if reading.witnesses[parent].terminated]
    cut_short = len(group) < len(group[0].record.sibling_ids)
    if not parents and cut_short and not any(w.terminated or w.entries for w in group):
        reading.discarded.extend(w.topic for w in group)
    elif len(sealed) == len(known):
        reading.counted.update(w.record.segment_id for w in group)
    elif sealed:
        reading.unfinished.append(group)
    else:
        reading.discarded.extend(w.topic for w in group)


def _settle_rivals(reading: _Reading) -> str:
    """Keep one set of children for each set of parents; says what cannot be decided."""
    rivals: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    for segment_id in sorted(reading.counted):
        record = reading.witnesses[segment_id].record
        if record.parent_ids:
            present = tuple(sibling for sibling in record.sibling_ids if sibling in reading.counted)
            if present not in rivals[record.parent_ids]:
                rivals[record.parent_ids].append(present)
    for parents, sets in rivals.items():
        winner = max(sets)
        for loser in sets:
            if loser == winner:
                continue
            if any(reading.witnesses[segment_id].entries for segment_id in loser):
                return (
                    f"segments {list(loser)} and {list(winner)} both replace {list(parents)} and "
                    f"{list(loser)} hold messages"
                )
            reading.counted.difference_update(loser)
            reading.discarded.extend(reading.witnesses[segment_id].topic for segment_id in loser)
    return ""


def _assemble(reading: _Reading, next_id: int) -> SegmentLayout:
    counted = reading.counted
    children: dict[int, list[Witness]] = defaultdict(list)
    for segment_id in sorted(counted):
        witness = reading.witnesses[segment_id]
        for parent in witness.record.parent_ids:
            if parent in counted:
                children[parent].append(witness)
    segments = {}
    for segment_id in sorted(counted):
        witness = reading.witnesses[segment_id]
        record, successors = witness.record, children[segment_id]
        segments[segment_id] = Segment(
            segment_id=segment_id,
            hash_range=record.hash_range,
            state=SegmentState.SEALED if successors else SegmentState.ACTIVE,
            parent_ids=tuple(parent for parent in record.parent_ids if parent in counted),
            child_ids=tuple(child.record.segment_id for child in successors),
            created_at_epoch=record.created_at_epoch,
            sealed_at_epoch=max((child.record.created_at_epoch for child in successors), default=0),
            created_at_ms=record.created_at_ms,
            sealed_at_ms=max((child.record.created_at_ms for child in successors), default=0),
            buckets=record.buckets,
            merge_depth=record.merge_depth,
            created_by=CreatedBy(record.created_by),
            sealed_position=str(witness.last_confirmed) if successors else None,
        )
    return SegmentLayout(
        epoch=max((segment.created_at_epoch for segment in segments.values()), default=0),
        next_segment_id=next_id,
        segments=segments,
    )


def _unfinished(group: tuple[Witness, ...]) -> UnfinishedSeal:
    first = group[0].record
    return UnfinishedSeal(
        operation_id=first.operation_id,
        created_by=CreatedBy(first.created_by),
        parents=first.parent_ids,
        children=tuple(
            PlannedSegment(
                segment_id=w.record.segment_id,
                hash_range=w.record.hash_range,
                buckets=w.record.buckets,
                merge_depth=w.record.merge_depth,
            )
            for w in group
        ),
    )
