"""A topic that never was: its recorded load on a layout that a policy of one's choice splits and merges. Pure.

The decisions are the operator's own `decide()`, fed as the operator feeds it: rates are recorded anew on material
changes only, a new segment counts from a whole period of the brokers' statistics on, and cool-downs hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scalable_topics.layout import CreatedBy, HashRange, Segment, SegmentLayout, bucket_count_for
from scalable_topics.layout.entry_buckets import DEFAULT_BUCKET_BUDGET
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.decision import Action
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.autoscale.load_record import recorded
from scalable_topics_operator.operations.requests import plan, requests_of
from segment_load.ring_load import RecordedSegment, RingLoad, newest

_SETTLED_MS = 70_000
"""A period of brokers' statistics (60 s) and an interval of sampling (10 s)."""
_LOOKS_MISSED = 3
_SEALED_KEPT_MS = 86_400_000
_MOST_RECORDS = 100_000


def initial_layout(segments: Iterable[RecordedSegment], now_ms: int) -> SegmentLayout:
    """The layout that a history begins with; parts of the ring that no segment was seen of are segments, too.

    Entry buckets are not recorded: each has its share of the usual budget.
    """
    seen = newest(segments)
    next_id = max((one.segment_id for one in seen), default=-1) + 1
    placed = [(one.hash_range, one.segment_id) for one in seen]
    start = 0
    for hash_range in [*(one.hash_range for one in seen), None]:
        end = HashRange.full().end if hash_range is None else hash_range.start - 1
        if start <= end:
            placed.append((HashRange(start, end), next_id))
            next_id += 1
        if hash_range is not None:
            start = hash_range.end + 1
    buckets = bucket_count_for(DEFAULT_BUCKET_BUDGET, len(placed))
    made = [Segment(number, where, created_at_ms=now_ms, buckets=buckets) for where, number in placed]
    return SegmentLayout(0, next_id, {one.segment_id: one for one in made})


@dataclass(slots=True)
class ReplayedTopic:
    """One topic under one policy.

    Args:
        config: the policy.
        layout: at the beginning.
        tick_ms: between two decisions.
    """

    config: AutoScaleConfig
    layout: SegmentLayout
    tick_ms: int
    clocks: Clocks = field(default_factory=Clocks)
    changes: dict[CreatedBy, int] = field(default_factory=dict)
    _records: dict[int, SegmentLoad] = field(default_factory=dict)
    _first: frozenset[int] = frozenset()
    _looked_ms: int | None = None

    def __post_init__(self) -> None:
        self._first = frozenset(self.layout.segments)

    def tick(self, load: RingLoad, now_ms: int) -> None:
        """Look at the load, decide, and do what was decided; no consumers are known, so nothing is done for them."""
        gap_ms = _LOOKS_MISSED * self.tick_ms
        goes_on = self._looked_ms is not None and now_ms - self._looked_ms <= gap_ms
        known, self._looked_ms = (self._records if goes_on else {}), now_ms
        self._records = {
            one.segment_id: recorded(known.get(one.segment_id), rates, self.config, now_ms)
            for one in self.layout.active
            if self._counts(one, now_ms) and (rates := load.of(one.hash_range)) is not None
        }
        decision = decide(Situation(self.layout, self._records, {}, self.config, self.clocks, now_ms))
        if decision.action is not None:
            self._act(decision.action, now_ms)

    def rates(self, load: RingLoad) -> Sequence[Rates]:
        """What each active segment really has, as far as that is known."""
        return [rates for one in self.layout.active if (rates := load.of(one.hash_range)) is not None]

    def count(self, kind: CreatedBy) -> int:
        """How many changes of a kind there were."""
        return self.changes.get(kind, 0)

    def _counts(self, segment: Segment, now_ms: int) -> bool:
        return segment.segment_id in self._first or now_ms - segment.created_at_ms >= _SETTLED_MS

    def _act(self, action: Action, now_ms: int) -> None:
        for request in requests_of(action):
            change = plan(self.layout, request, max_records=_MOST_RECORDS)
            self.layout = self.layout.reserve(change).apply(change, now_ms=now_ms)
            self.clocks = self.clocks.moved(change.kind, now_ms)
            self.changes[change.kind] = self.count(change.kind) + 1
        old = [one.segment_id for one in self.layout.sealed if now_ms - one.sealed_at_ms > _SEALED_KEPT_MS]
        if old:
            self.layout = self.layout.prune(old)
