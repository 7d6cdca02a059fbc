"""A topic whose load lies still on the hash ring, scaled by the decision on a virtual clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scalable_topics.layout import Segment, SegmentLayout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.decision import Action, Decision
from scalable_topics_operator.autoscale.demand import Demand
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.autoscale.load_record import recorded
from scalable_topics_operator.operations.requests import ReshapeRequest, plan, requests_of

TICK_MS = 60_000
RING = 65_536
PARTS = 16
_KEPT_MS = 600_000
Shape = tuple[tuple[str, int], ...]


@dataclass
class VirtualTopic:
    """Everything that happens to one topic.

    Args:
        config: its knobs.
        load: rates of each of `PARTS` equal parts of the ring, at a time.
        consumers: by subscription; at a time, if they come and go.
    """

    config: AutoScaleConfig
    load: Callable[[int], list[Rates]]
    consumers: Mapping[str, int] | Callable[[int], Mapping[str, int]] = field(default_factory=dict)
    layout: SegmentLayout = field(default_factory=lambda: SegmentLayout.initial(1))
    clocks: Clocks = field(default_factory=Clocks)
    now_ms: int = 0
    records: dict[int, SegmentLoad] = field(default_factory=dict)
    demand: Demand = field(default_factory=Demand)
    actions: list[tuple[int, Action]] = field(default_factory=list)
    last: Decision | None = None
    _shapes: list[Shape] = field(default_factory=list)
    _sums: tuple[list[Rates], list[Rates]] | None = None

    def tick(self) -> Decision:
        """Sample, decide and act once."""
        self.now_ms += TICK_MS
        self._sample()
        consumers = self.consumers(self.now_ms) if callable(self.consumers) else self.consumers
        self.demand = self.demand.seen(
            max(consumers.values(), default=0),
            self.now_ms,
            window_seconds=self.config.rebucket_down_window_seconds,
            most_gap_seconds=3 * TICK_MS / 1000,
        )
        self.last = decide(
            Situation(self.layout, self.records, consumers, self.config, self.clocks, self.now_ms, self.demand)
        )
        if self.last.action is not None:
            self.actions.append((self.now_ms, self.last.action))
            self._shapes = self._shapes or [_shape(self.layout)]
            self._act(self.last.action)
            self._shapes.append(_shape(self.layout))
        return self.last

    def restart(self) -> None:
        """Another process goes on with it: what is in the record is known, nothing else."""
        self.records, self.demand = {}, Demand()

    def run(self, ticks: int) -> list[Action]:
        """So many ticks; answers what was done in them."""
        before = len(self.actions)
        for _ in range(ticks):
            self.tick()
        return [action for _, action in self.actions[before:]]

    @property
    def shapes(self) -> list[Shape]:
        """Ranges and entry buckets of the active segments after each action, and before the first."""
        return self._shapes

    def until_still(self, quiet_ticks: int, most_ticks: int) -> list[Action]:
        """Tick until nothing was done for so long; answers what was done. Fails if that never comes."""
        before = len(self.actions)
        quiet = 0
        for _ in range(most_ticks):
            quiet = quiet + 1 if self.tick().action is None else 0
            if quiet >= quiet_ticks:
                return [action for _, action in self.actions[before:]]
        raise AssertionError(f"still not at rest: {self.actions[-4:]}")

    def rates_of(self, segment: Segment) -> Rates:
        """The true rates of a segment now."""
        return self._below(segment.hash_range.end + 1).plus(self._below(segment.hash_range.start).times(-1))

    def _below(self, hash_value: int) -> Rates:
        """What all hashes below this one have together."""
        parts = self.load(self.now_ms)
        if self._sums is None or self._sums[0] is not parts:
            self._sums = parts, list(itertools.accumulate(parts, Rates.plus, initial=Rates()))
        part, rest = divmod(hash_value, RING // PARTS)
        below = self._sums[1][part]
        return below.plus(parts[part].times(rest * PARTS / RING)) if rest else below

    def _sample(self) -> None:
        for segment in self.layout.active:
            # Differences of sums may end a hair below nothing.
            rates = Rates(*(max(0.0, rate) for rate in self.rates_of(segment).values))
            known = self.records.get(segment.segment_id)
            self.records[segment.segment_id] = recorded(known, rates, self.config, self.now_ms)

    def _act(self, action: Action) -> None:
        for request in requests_of(action):
            self._change(request)

    def _change(self, request: ReshapeRequest) -> None:
        change = plan(self.layout, request, max_records=100_000)
        self.layout = self.layout.reserve(change).apply(change, now_ms=self.now_ms)
        if old := [one.segment_id for one in self.layout.sealed if self._is_old(one)]:
            self.layout = self.layout.prune(old)
        self.clocks = self.clocks.moved(change.kind, self.now_ms)

    def _is_old(self, segment: Segment) -> bool:
        return self.now_ms - segment.sealed_at_ms > _KEPT_MS


def _shape(layout: SegmentLayout) -> Shape:
    return tuple((str(segment.hash_range), segment.buckets) for segment in layout.active)


def still(total: Rates, weights: list[float]) -> Callable[[int], list[Rates]]:
    """A load that does not move, spread over the ring by weights."""
    whole = sum(weights) or 1.0
    parts = [total.times(weight / whole) for weight in weights]
    return lambda _: parts
