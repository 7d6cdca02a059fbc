"""A layout rebuilt from what the segment topics say of themselves (R11). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scalable_topics.layout import (
    CreatedBy,
    HashRange,
    LayoutError,
    PlannedSegment,
    Segment,
    SegmentLayout,
    SegmentState,
)
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import Claim, Position, SegmentRecord

ID_GAP = 1024
"""Ids skipped by a rebuilt layout: operations rolled back before the loss used ids that no segment tells of (R9)."""


@dataclass(frozen=True, slots=True)
class Witness:
    """One segment topic: its record and what its broker shows.

    Args:
        record: what it says of itself.
        topic: its full name.
        terminated: whether it is sealed.
        last_confirmed: its last entry.
        entries: entries it holds.
        subscriptions: its cursors that count (R16).
        is_legacy: it is one of the topics that were migrated, and carries no record itself.
    """

    record: SegmentRecord
    topic: str
    terminated: bool
    last_confirmed: Position
    entries: int
    subscriptions: frozenset[str] = frozenset()
    is_legacy: bool = False


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
        layout: the layout they make, the one that models the old topics where a migration never came to its commit;
            None when `problem` says why none can be made, or when all there is are
            empty leftovers of a creation that never ended. A sealed segment without a position is open.
        unfinished: an operation that must be taken to its end before anything else.
        carry_over: by topic, the cursors that the last operation may not have carried over from the parents.
        discard: topics of operations that never reached their seal, or that lost to a later one while empty.
        problem: why a person must decide.
    """

    layout: SegmentLayout | None = None
    unfinished: UnfinishedSeal | None = None
    carry_over: Mapping[str, frozenset[str]] = field(default_factory=dict)
    discard: tuple[str, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class _Reading:
    """The witnesses by id, sorted into those that count and those that do not."""

    witnesses: Mapping[int, Witness]
    counted: set[int] = field(default_factory=set)
    discarded: list[str] = field(default_factory=list)
    unfinished: list[tuple[Witness, ...]] = field(default_factory=list)

    def newer(self, segment_id: int, among: Iterable[int]) -> list[Witness]:
        """The segments made later that cover part of a segment's range, oldest first."""
        hash_range = self.witnesses[segment_id].record.hash_range
        return [
            self.witnesses[other]
            for other in sorted(among)
            if other > segment_id
            and not self.witnesses[other].is_legacy
            and self.witnesses[other].record.hash_range.overlaps(hash_range)
        ]


def rebuild(witnesses: Sequence[Witness]) -> Rebuilt:
    """Rebuild a layout.

    Children count if all their parents are sealed (or were pruned), or if they were used: then a seal came undone. With
    some parents sealed the last operation is to be finished, if all that it made is there; with none it is rolled back.
    Of segments that cover the same hashes the newest is active. Of two sets of children of the same parents the one
    with the higher ids wins if the other is empty.
    """
    by_id = {witness.record.segment_id: witness for witness in witnesses}
    if not by_id:
        return Rebuilt(problem="no segment of the topic carries a record")
    reading = _Reading(by_id)
    groups: dict[str, list[Witness]] = defaultdict(list)
    for witness in witnesses:
        groups[witness.record.operation_id].append(witness)
    for group in groups.values():
        _sort_group(reading, tuple(sorted(group, key=lambda w: w.record.segment_id)))
    problem = _settle_rivals(reading)
    if problem:
        return Rebuilt(problem=problem)
    _drop_left_behind(reading)
    layout, problem = _assemble(reading)
    if layout is None and _drop_interrupted(reading):
        layout, problem = _assemble(reading)
    if layout is None:
        if any(w.entries or w.terminated or w.record.parent_ids for w in witnesses):
            return Rebuilt(problem=f"the segments found do not make a layout: {problem}")
        return Rebuilt(discard=tuple(witness.topic for witness in witnesses))
    return Rebuilt(
        layout=layout,
        unfinished=_unfinished(reading.unfinished[0]) if reading.unfinished else None,
        carry_over={} if reading.unfinished else _carry_over(reading, layout),
        discard=tuple(reading.discarded),
    )


def legacy_record(segment_id: int, source: MigratedFrom, claim: Claim) -> SegmentRecord:
    """What a topic that was migrated would say of itself, if it carried a record."""
    return SegmentRecord(
        segment_id=segment_id,
        hash_range=HashRange.full(),
        parent_ids=(),
        buckets=1,
        merge_depth=0,
        created_at_epoch=0,
        created_at_ms=0,
        created_by=CreatedBy.MIGRATE.value,
        operation_id=f"legacy-{segment_id}",
        sibling_ids=(segment_id,),
        next_segment_id=source.topic_count,
        claim=claim,
    )


def next_unused_id(records: Sequence[SegmentRecord]) -> int:
    """The first id that no record uses or has seen reserved."""
    return max((max(record.next_segment_id, record.segment_id + 1) for record in records), default=0)


def outdated(next_segment_id: int, uncommitted: Collection[int], witnesses: Sequence[Witness]) -> bool:
    """Whether a record is older than the segments.

    Only segments that were committed prove it; what a forgotten operation left behind does not.

    Args:
        next_segment_id: what the record would give out next.
        uncommitted: ids that its journal says no client was told of.
        witnesses: the segments there are.
    """
    sealed = {witness.record.segment_id for witness in witnesses if witness.terminated}
    for witness in witnesses:
        later = witness.record.segment_id >= next_segment_id
        used = witness.entries or witness.terminated
        if later and (used or not sealed.isdisjoint(witness.record.parent_ids)):
            return True
        if used and witness.record.segment_id in uncommitted:
            return True
    return False


def _sort_group(reading: _Reading, group: tuple[Witness, ...]) -> None:
    known = [parent for parent in group[0].record.parent_ids if parent in reading.witnesses]
    sealed = [parent for parent in known if reading.witnesses[parent].terminated]
    if len(sealed) == len(known) or _was_used(reading, group):
        reading.counted.update(w.record.segment_id for w in group)
    elif sealed and all(_cover(group, reading.witnesses[parent]) for parent in known):
        reading.unfinished.append(group)
    else:
        reading.discarded.extend(w.topic for w in group)


def _cover(children: tuple[Witness, ...], parent: Witness) -> bool:
    """Whether segments take over all hashes of a parent: of the several that a migration makes some may be gone."""
    whole = parent.record.hash_range
    parts = (child.record.hash_range for child in children if child.record.hash_range.overlaps(whole))
    return sum(min(part.end, whole.end) - max(part.start, whole.start) + 1 for part in parts) == whole.size


def _was_used(reading: _Reading, group: tuple[Witness, ...]) -> bool:
    """Whether clients were told of the segments, so that their operation was committed whatever the parents show."""
    ids = {witness.record.segment_id for witness in group}
    return any(witness.entries or witness.terminated for witness in group) or any(
        not ids.isdisjoint(witness.record.parent_ids) for witness in reading.witnesses.values()
    )


def _settle_rivals(reading: _Reading) -> str:
    """Drop what an earlier operation made of parents that a later one replaced; says what cannot be decided.

    Operations of a topic come one after the other (R10), so the earlier one was rolled back.
    """
    half_sealed = {witness.record.segment_id: group for group in reading.unfinished for witness in group}
    pool = reading.counted | half_sealed.keys()
    for segment_id in sorted(pool):
        witness = reading.witnesses[segment_id]
        rivals = [one for one in reading.newer(segment_id, pool) if _are_rivals(witness.record, one.record)]
        if not rivals:
            continue
        if witness.entries:
            ids, parents = [one.record.segment_id for one in rivals], list(witness.record.parent_ids)
            what = f"both replace {parents}" if parents else "are both first of their hashes"
            return f"segments {[segment_id]} and {ids} {what} and {[segment_id]} hold messages"
        reading.counted.discard(segment_id)
        if half_sealed.get(segment_id) in reading.unfinished:
            reading.unfinished.remove(half_sealed[segment_id])
        reading.discarded.append(witness.topic)
    return ""


def _are_rivals(record: SegmentRecord, other: SegmentRecord) -> bool:
    """Whether of two segments that cover the same hashes at most one was ever part of the layout.

    Initial segments replace nobody: two of them come of ids that were given out twice.
    """
    if not record.parent_ids:
        return not other.parent_ids
    return not set(record.parent_ids).isdisjoint(other.parent_ids)


def _drop_left_behind(reading: _Reading) -> None:
    """Drop what no client was told of and later segments cover, and half sealed operations but the last."""
    parents_of_others = {parent for one in reading.counted for parent in reading.witnesses[one].record.parent_ids}
    for segment_id in sorted(reading.counted):
        witness = reading.witnesses[segment_id]
        used = witness.entries or witness.terminated or segment_id in parents_of_others
        if not used and reading.newer(segment_id, reading.counted):
            reading.counted.discard(segment_id)
            reading.discarded.append(witness.topic)
    reading.unfinished.sort(key=lambda group: group[0].record.segment_id)
    last = reading.unfinished[-1:]
    # One whose hashes something later has taken over was rolled back, whoever sealed its parents since (R10).
    still = [group for group in last if not any(reading.newer(w.record.segment_id, reading.counted) for w in group)]
    for group in reading.unfinished:
        if group not in still:
            reading.discarded.extend(witness.topic for witness in group)
    reading.unfinished[:] = still


def _drop_interrupted(reading: _Reading) -> bool:
    """Drop the last operation if it never made all its segments, whoever sealed its parents; False if it did."""
    if not reading.counted:
        return False
    record = reading.witnesses[max(reading.counted)].record
    group = [one for one in reading.witnesses.values() if one.record.operation_id == record.operation_id]
    if not record.parent_ids or len(group) == len(record.sibling_ids) or _was_used(reading, tuple(group)):
        return False
    reading.counted.difference_update(one.record.segment_id for one in group)
    reading.discarded.extend(one.topic for one in group)
    return True


def _assemble(reading: _Reading) -> tuple[SegmentLayout | None, str]:
    """The layout that what counts makes, or why it makes none."""
    counted = reading.counted
    children: dict[int, list[int]] = defaultdict(list)
    for segment_id in sorted(counted):
        for parent in reading.witnesses[segment_id].record.parent_ids:
            if parent in counted:
                children[parent].append(segment_id)
    segments = {}
    for segment_id in sorted(counted):
        witness = reading.witnesses[segment_id]
        record, newer = witness.record, reading.newer(segment_id, counted)
        # Of pruned successors nothing is known; the first segment left that covers the same hashes came later.
        sealed_by = [reading.witnesses[child].record for child in children[segment_id]] or [
            one.record for one in newer[:1]
        ]
        segments[segment_id] = Segment(
            segment_id=segment_id,
            hash_range=record.hash_range,
            state=SegmentState.SEALED if newer else SegmentState.ACTIVE,
            parent_ids=tuple(parent for parent in record.parent_ids if parent in counted),
            child_ids=tuple(children[segment_id]),
            created_at_epoch=record.created_at_epoch,
            sealed_at_epoch=max((one.created_at_epoch for one in sealed_by), default=0),
            created_at_ms=record.created_at_ms,
            sealed_at_ms=max((one.created_at_ms for one in sealed_by), default=0),
            buckets=record.buckets,
            merge_depth=record.merge_depth,
            created_by=CreatedBy(record.created_by),
            sealed_position=str(witness.last_confirmed) if newer and witness.terminated else None,
            topic=witness.topic if witness.is_legacy else None,
        )
    try:
        layout = SegmentLayout(
            epoch=max((segment.created_at_epoch for segment in segments.values()), default=0),
            next_segment_id=next_unused_id([witness.record for witness in reading.witnesses.values()]) + ID_GAP,
            segments=segments,
        )
    except LayoutError as error:
        return None, str(error)
    return layout, ""


def _carry_over(reading: _Reading, layout: SegmentLayout) -> Mapping[str, frozenset[str]]:
    """What the newest segments lack of their parents' cursors: their operation may have died before its commit."""
    newest = layout.segments[max(layout.segments)]
    missing: dict[str, frozenset[str]] = {}
    for segment in layout.active:
        if not newest.parent_ids or segment.parent_ids != newest.parent_ids:
            continue
        witness = reading.witnesses[segment.segment_id]
        on_parents = frozenset[str]().union(*(reading.witnesses[one].subscriptions for one in segment.parent_ids))
        if on_parents - witness.subscriptions:
            missing[witness.topic] = on_parents - witness.subscriptions
    return missing


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
