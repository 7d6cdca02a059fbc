"""The segment DAG of one scalable topic as an immutable value (pip-468 SegmentLayout)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from scalable_topics.layout import change as changes
from scalable_topics.layout.entry_buckets import DEFAULT_BUCKET_BUDGET
from scalable_topics.layout.errors import LayoutArgumentError, LayoutStateError
from scalable_topics.layout.hash_range import LAST_HASH
from scalable_topics.layout.invariants import check_invariants, is_synthetic
from scalable_topics.layout.segment import Segment, SegmentChange, check_position, frozen_mapping


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """All segments of a topic, active and sealed, at one epoch (pip-468, 475, 486).

    Every change answers a new layout. A change that clients must see (apply, prune) adds exactly 1 to
    `epoch`; bookkeeping (`reserve`, `with_sealed_position`) leaves it.

    Args:
        epoch: version of the layout, 0 or more.
        next_segment_id: first id never used or reserved (R9).
        segments: all segments by id.
        extra: fields of the stored record that the layout does not own, kept verbatim.

    Raises:
        LayoutArgumentError: an invariant of DESIGN §4 is broken; the text says which and where.
    """

    epoch: int
    next_segment_id: int
    segments: Mapping[int, Segment] = field(hash=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    _active: tuple[Segment, ...] = field(init=False, repr=False, compare=False)
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _synthetic: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id = {segment_id: self.segments[segment_id] for segment_id in sorted(self.segments)}
        active = tuple(
            sorted(
                (segment for segment in by_id.values() if segment.is_active),
                key=lambda segment: (segment.hash_range, segment.segment_id),
            )
        )
        check_invariants(self.epoch, self.next_segment_id, by_id, active)
        object.__setattr__(self, "segments", MappingProxyType(by_id))
        object.__setattr__(self, "extra", frozen_mapping(self.extra))
        object.__setattr__(self, "_active", active)
        object.__setattr__(self, "_starts", tuple(segment.hash_range.start for segment in active))
        object.__setattr__(self, "_synthetic", is_synthetic(active))

    @classmethod
    def initial(
        cls, segments: int, *, bucket_budget: int = DEFAULT_BUCKET_BUDGET, created_at_ms: int = 0
    ) -> SegmentLayout:
        """The layout of a new topic at epoch 0, ids from 0.

        Args:
            segments: how many segments tile the ring, 1..65536.
            bucket_budget: entry buckets of the whole topic, 1 or more.
            created_at_ms: wall clock, milliseconds since 1970.

        Raises:
            LayoutArgumentError: a count out of range.
        """
        planned = changes.planned_initial(segments, bucket_budget=bucket_budget)
        made = {
            plan.segment_id: Segment(
                plan.segment_id, plan.hash_range, buckets=plan.buckets, created_at_ms=created_at_ms
            )
            for plan in planned
        }
        return cls(epoch=0, next_segment_id=segments, segments=made)

    @classmethod
    def from_parents(
        cls,
        segments: Iterable[Segment],
        *,
        epoch: int,
        next_segment_id: int,
        extra: Mapping[str, Any] | None = None,
    ) -> SegmentLayout:
        """Make a layout of segments that know their parents only: their children are derived (R11, R29).

        Raises:
            LayoutArgumentError: an id twice, or an invariant of DESIGN §4 is broken.
        """
        by_id: dict[int, Segment] = {}
        children: dict[int, list[int]] = defaultdict(list)
        for segment in segments:
            if segment.segment_id in by_id:
                raise LayoutArgumentError(f"segment {segment.segment_id} is there twice")
            by_id[segment.segment_id] = segment
            for parent_id in segment.parent_ids:
                children[parent_id].append(segment.segment_id)
        for parent_id in children.keys() & by_id.keys():
            by_id[parent_id] = replace(by_id[parent_id], child_ids=tuple(children[parent_id]))
        return cls(epoch=epoch, next_segment_id=next_segment_id, segments=by_id, extra=extra or {})

    @property
    def active(self) -> tuple[Segment, ...]:
        """Segments that take writes, by range start."""
        return self._active

    @property
    def sealed(self) -> tuple[Segment, ...]:
        """Segments that only drain, by id."""
        return tuple(segment for segment in self.segments.values() if not segment.is_active)

    @property
    def is_synthetic(self) -> bool:
        """Whether it models an ordinary topic that was not migrated: routed by modulo (pip-475)."""
        return self._synthetic

    def segment(self, segment_id: int) -> Segment:
        """The segment of that id. Raises LayoutArgumentError if there is none."""
        return changes.known(self.segments, segment_id)

    def parents_of(self, segment_id: int) -> tuple[Segment, ...]:
        """Parents still in the layout, by id. Raises LayoutArgumentError for an unknown id."""
        return tuple(self.segments[parent] for parent in self.segment(segment_id).parent_ids)

    def children_of(self, segment_id: int) -> tuple[Segment, ...]:
        """Children still in the layout, by id. Raises LayoutArgumentError for an unknown id."""
        return tuple(self.segments[child] for child in self.segment(segment_id).child_ids)

    def lineage(self, segment_id: int) -> tuple[Segment, ...]:
        """Ancestors, the segment itself and descendants, by id (pip-468 getLineage).

        Raises LayoutArgumentError for an unknown id.
        """
        start = self.segment(segment_id)
        found = {segment_id}
        for upwards in (True, False):
            pending = [start]
            while pending:
                segment = pending.pop()
                relatives = set(segment.parent_ids if upwards else segment.child_ids) - found
                found |= relatives
                pending.extend(self.segments[relative] for relative in relatives)
        return tuple(self.segments[relative] for relative in sorted(found))

    def find_active(self, segment_hash: int) -> Segment:
        """The active segment whose range holds `segment_hash` (0..65535).

        Raises:
            LayoutArgumentError: the hash leaves the ring.
            LayoutStateError: a synthetic layout of several segments, which has no ranges to search.
        """
        if not 0 <= segment_hash <= LAST_HASH:
            raise LayoutArgumentError(f"segment hash {segment_hash} leaves the ring 0..{LAST_HASH}")
        if self._synthetic and len(self._active) > 1:
            raise LayoutStateError("a synthetic layout routes by modulo, not by hash range")
        return self._active[bisect_right(self._starts, segment_hash) - 1]

    def plan_split(self, segment_id: int, *, at: int | None = None, into: int = 2) -> SegmentChange:
        """Plan to split an active segment; each child gets a floor share of its buckets, at least 1.

        Args:
            segment_id: the segment to split.
            at: first hash of the second child; None means the midpoint.
            into: number of children, 2 or more; not together with `at`.

        Raises:
            LayoutArgumentError: unknown or sealed segment, bad `at` or `into`.
            LayoutStateError: the range is narrower than `into`, or the segment wraps an ordinary topic.
        """
        return changes.plan_split(self.segments, self.next_segment_id, segment_id, at=at, into=into)

    def plan_merge(self, ids: Iterable[int]) -> SegmentChange:
        """Plan to merge two or more touching active segments, given in any order.

        Their buckets add up, to at most 1024; the merge depth is their highest plus 1.

        Raises:
            LayoutArgumentError: fewer than two, one twice, unknown, sealed, or not touching.
            LayoutStateError: one wraps an ordinary topic.
        """
        return changes.plan_merge(self.segments, self.next_segment_id, ids)

    def plan_rebucket(self, segment_id: int, buckets: int) -> SegmentChange:
        """Plan to replace an active segment by one of the same range with `buckets` (1..1024) entry buckets.

        Raises:
            LayoutArgumentError: unknown or sealed segment, count out of range or unchanged.
            LayoutStateError: the segment wraps an ordinary topic.
        """
        return changes.plan_rebucket(self.segments, self.next_segment_id, segment_id, buckets)

    def plan_rollover(self, segment_id: int) -> SegmentChange:
        """Plan to replace an active segment by an equal one: the repair of one found terminated (R14).

        Raises:
            LayoutArgumentError: unknown or sealed segment.
            LayoutStateError: the segment wraps an ordinary topic.
        """
        return changes.plan_rollover(self.segments, self.next_segment_id, segment_id)

    def reserve(self, change: SegmentChange) -> SegmentLayout:
        """Take the change's ids out of circulation for ever, applied later or not (R9); the epoch stays.

        Raises:
            LayoutStateError: its ids are not the next free ones, so it was planned on another layout.
        """
        if not self._takes_next_ids(change):
            raise LayoutStateError(
                f"the {change.kind} chose the ids {list(change.child_ids)}, "
                f"but the next free id is {self.next_segment_id}; plan it again"
            )
        return replace(self, next_segment_id=self.next_segment_id + len(change.children))

    def apply(
        self, change: SegmentChange, *, now_ms: int, sealed_positions: Mapping[int, str] | None = None
    ) -> SegmentLayout:
        """Seal the change's parents, add its children and raise the epoch by 1.

        Args:
            change: planned on this layout or an earlier one; its ids are used as they are.
            now_ms: wall clock for creation and sealing, milliseconds since 1970.
            sealed_positions: last entry of each sealed parent as `ledger:entry`, as far as known (R14).

        Raises:
            LayoutStateError: the change no longer fits: a parent is gone or sealed, ranges do not match, or
                ids are taken or neither reserved nor next.
            LayoutArgumentError: positions of other segments, or malformed ones.
        """
        self._check_ids(change)
        epoch = self.epoch + 1
        after = changes.apply_change(
            self.segments, change, epoch=epoch, now_ms=now_ms, sealed_positions=sealed_positions or {}
        )
        return replace(
            self,
            epoch=epoch,
            next_segment_id=max(self.next_segment_id, max(change.child_ids) + 1),
            segments=after,
        )

    def split(self, segment_id: int, *, now_ms: int, at: int | None = None, into: int = 2) -> SegmentLayout:
        """Plan, reserve and apply a split at once. Raises as `plan_split`."""
        return self._perform(self.plan_split(segment_id, at=at, into=into), now_ms)

    def merge(self, ids: Iterable[int], *, now_ms: int) -> SegmentLayout:
        """Plan, reserve and apply a merge at once. Raises as `plan_merge`."""
        return self._perform(self.plan_merge(ids), now_ms)

    def rebucket(self, segment_id: int, buckets: int, *, now_ms: int) -> SegmentLayout:
        """Plan, reserve and apply a rebucket rollover at once. Raises as `plan_rebucket`."""
        return self._perform(self.plan_rebucket(segment_id, buckets), now_ms)

    def prune(self, ids: Iterable[int]) -> SegmentLayout:
        """Drop sealed segments and every edge to them; one epoch step for the whole set.

        Raises LayoutArgumentError for an empty set, an unknown or an active segment.
        """
        return replace(self, epoch=self.epoch + 1, segments=changes.prune_segments(self.segments, ids))

    def with_sealed_position(self, segment_id: int, position: str) -> SegmentLayout:
        """Record where a sealed segment ends, as `ledger:entry` (R14); the epoch stays.

        Raises LayoutArgumentError for an unknown or active segment or a malformed position.
        """
        segment = self.segment(segment_id)
        if segment.is_active:
            raise LayoutArgumentError(f"segment {segment_id} is active; only sealed segments end somewhere")
        check_position(position)
        return replace(self, segments={**self.segments, segment_id: replace(segment, sealed_position=position)})

    def _perform(self, change: SegmentChange, now_ms: int) -> SegmentLayout:
        return self.reserve(change).apply(change, now_ms=now_ms)

    def _takes_next_ids(self, change: SegmentChange) -> bool:
        first = self.next_segment_id
        return change.child_ids == tuple(range(first, first + len(change.children)))

    def _check_ids(self, change: SegmentChange) -> None:
        taken = sorted(self.segments.keys() & set(change.child_ids))
        if taken or len(set(change.child_ids)) != len(change.children):
            raise LayoutStateError(f"the {change.kind} cannot use the ids {list(change.child_ids)}: {taken} are taken")
        reserved = max(change.child_ids) < self.next_segment_id
        if not reserved and not self._takes_next_ids(change):
            raise LayoutStateError(
                f"the ids {list(change.child_ids)} are neither reserved nor the next free ones "
                f"(the next is {self.next_segment_id})"
            )
