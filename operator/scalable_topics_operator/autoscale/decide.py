"""The decision: from a layout, its load and its consumers to one action or none, with the reasons (DESIGN §8). Pure.

Order and defaults are the peer's (pip-483, pip-486). Where it differs, it is so that nothing flaps: ties go to the
lowest id, a segment of width 1 is never chosen, a merge is vetoed if what comes out could be split again, and a segment
is cold since it was last hot, not since its record was last rewritten.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from scalable_topics.layout import Segment, SegmentLayout
from scalable_topics_operator.autoscale.bucket_counts import correction, for_consumers
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import MOST_SEGMENTS, SECONDS_MS, AutoScaleConfig
from scalable_topics_operator.autoscale.decision import Action, Decision, Finding, Merge, Reason, Rebucket, Rule, Split
from scalable_topics_operator.autoscale.demand import Demand
from scalable_topics_operator.autoscale.lineage import counted_depth
from scalable_topics_operator.autoscale.load import MATERIAL_CHANGE, Metric, Rates, SegmentLoad

_NOTHING = Rates()


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a decision is made from.

    Args:
        layout: the topic's.
        loads: of active segments, by id; what is missing counts as no load, and as not known to be cold.
        consumers: registered ones of each coordinated subscription; queue consumers do not count.
        config: the topic's knobs.
        clocks: of earlier changes.
        now_ms: milliseconds since 1970.
        demand: the most consumers there were of late; without it no segment gets fewer entry buckets.
        spare_records: segments that the layout may grow by for the sake of order: the rest is for load and consumers.
        stale: why the load may not be acted on; empty if it may.
    """

    layout: SegmentLayout
    loads: Mapping[int, SegmentLoad]
    consumers: Mapping[str, int]
    config: AutoScaleConfig
    clocks: Clocks
    now_ms: int
    demand: Demand = field(default_factory=Demand)
    spare_records: int = MOST_SEGMENTS
    stale: str = ""


def decide(situation: Situation) -> Decision:
    """Decide. Total: never raises, whatever the load says."""
    if not situation.config.enabled:
        return Decision(None, (Finding(Rule.ENABLED, False, "disabled", "enabled is false"),))
    case = _Case(situation)
    action = case.by_consumers() or case.by_load() or case.by_cold() or case.by_idle()
    return Decision(action, tuple(case.findings), case.look_again_at_ms)


class _Case:
    def __init__(self, situation: Situation) -> None:
        self._config = situation.config
        self._layout = situation.layout
        self._active = situation.layout.active
        self._clocks = situation.clocks
        self._now_ms = situation.now_ms
        self._demand = situation.demand
        self._spare_records = situation.spare_records
        self._loads = {key: load for key, load in situation.loads.items() if load.rates.is_usable}
        self._consumers = max(situation.consumers.values(), default=0)
        self._buckets = sum(one.buckets for one in self._active)
        self._is_fresh = not situation.stale
        self.findings: list[Finding] = []
        self.look_again_at_ms: int | None = None
        if situation.stale:
            self._note(Rule.LOAD_FRESH, "load-stale", situation.stale)

    # Consumers

    def by_consumers(self) -> Action | None:
        config, count = self._config, len(self._active)
        if self._consumers <= count:
            self._note(Rule.CONSUMER_SPLIT, "quiet", f"{self._consumers} consumers, {count} active segments")
            return None
        want = f"{self._consumers} consumers of one subscription, {count} active segments"
        if count >= config.max_segments:
            self._note(Rule.CONSUMER_SPLIT, "at-max-segments", f"{want}; maxSegments is {config.max_segments}")
            return self._rebucket(Reason.AT_MAX_SEGMENTS)
        floor = config.split_vs_rebucket_min_msg_rate_in
        if floor > 0 and not self._is_fresh:
            self._note(
                Rule.CONSUMER_SPLIT, "load-stale", f"{want}; whether the busiest has {floor:g} msg/s is not known"
            )
            return None
        busiest = max(self._divisible(), key=lambda one: (self._rates(one).msg_rate_in, -one.segment_id), default=None)
        rate = self._rates(busiest).msg_rate_in if busiest is not None else 0.0
        if rate < floor and (unknown := self._unknown()):
            self._note(
                Rule.CONSUMER_SPLIT,
                "load-unknown",
                f"{want}; whether the busiest has {floor:g} msg/s is not known: {unknown}",
            )
            return None
        if busiest is None or rate < floor:
            self._note(
                Rule.CONSUMER_SPLIT,
                "below-split-rate-floor",
                f"{want}; the busiest has {rate:g} msg/s, splitVsRebucketMinMsgRateIn is {floor:g}",
            )
            return self._rebucket(Reason.BELOW_SPLIT_RATE_FLOOR)
        if wait := self._cooling("split", self._clocks.split_at_ms, config.split_cooldown_seconds):
            self._note(Rule.CONSUMER_SPLIT, "split-cooldown", f"{want}; {wait}")
            return None
        into = self._parts(busiest, self._consumers - count + 1)
        self._fire(Rule.CONSUMER_SPLIT, Reason.CONSUMER_COUNT, f"{want}; segment {busiest.segment_id} is the busiest")
        return Split(busiest.segment_id, into, Reason.CONSUMER_COUNT)

    def _rebucket(self, reason: Reason) -> Action | None:
        config, total = self._config, self._buckets
        if self._consumers <= total:
            self._note(
                Rule.CONSUMER_REBUCKET, "enough-buckets", f"{total} entry buckets for {self._consumers} consumers"
            )
            return None
        if wait := self._cooling("rebucket", self._clocks.rebucket_at_ms, config.rebucket_cooldown_seconds):
            self._note(Rule.CONSUMER_REBUCKET, "rebucket-cooldown", wait)
            return None
        wanted = min(for_consumers(self._consumers, len(self._active)), config.max_buckets_per_segment)
        lower = tuple(sorted(one.segment_id for one in self._active if one.buckets < wanted))
        if not lower:
            self._note(
                Rule.CONSUMER_REBUCKET,
                "at-max-buckets",
                f"{self._consumers} consumers, {total} entry buckets; maxPerSegment is "
                f"{config.max_buckets_per_segment}",
            )
            return None
        self._fire(
            Rule.CONSUMER_REBUCKET,
            reason,
            f"{self._consumers} consumers, {total} entry buckets; {wanted} in each of {len(self._active)} segments",
        )
        return Rebucket(lower, wanted, reason)

    # Load

    def by_load(self) -> Action | None:
        config, count = self._config, len(self._active)
        if not self._is_fresh:
            return None
        over: list[tuple[float, Segment, Metric]] = []
        highest = 0.0
        for segment in self._divisible():
            metric, ratio = self._score(self._rates(segment))
            highest = max(highest, ratio)
            if ratio > 1:
                over.append((ratio, segment, metric))
        if not over:
            self._note(
                Rule.LOAD_SPLIT, "quiet", f"the busiest segment is at {100 * highest:.0f} % of a split threshold"
            )
            return None
        ratio, segment, metric = max(over, key=lambda found: (found[0], -found[1].segment_id))
        what = f"segment {segment.segment_id} is at {100 * ratio:.0f} % of split.{metric}"
        if count >= config.max_segments:
            self._note(
                Rule.LOAD_SPLIT, "at-max-segments", f"{what}; {count} active, maxSegments is {config.max_segments}"
            )
            return None
        if wait := self._cooling("split", self._clocks.split_at_ms, config.split_cooldown_seconds):
            self._note(Rule.LOAD_SPLIT, "split-cooldown", f"{what}; {wait}")
            return None
        reason = Reason(metric.value)
        self._fire(Rule.LOAD_SPLIT, reason, what)
        return Split(segment.segment_id, self._parts(segment, math.ceil(ratio)), reason)

    def _score(self, rates: Rates) -> tuple[Metric, float]:
        return rates.highest_ratio(self._config.split)

    # Cold

    def by_cold(self) -> Action | None:
        config, count = self._config, len(self._active)
        if not self._is_fresh:
            return None
        if count <= config.min_segments:
            self._note(Rule.MERGE, "at-min-segments", f"{count} active, minSegments is {config.min_segments}")
            return None
        vetoes: dict[str, list[str]] = {}
        free: list[tuple[float, tuple[int, int]]] = []
        for pair in itertools.pairwise(self._active):
            code, why = self._veto(*pair)
            if code:
                vetoes.setdefault(code, []).append(why)
            else:
                _, score = self._score(self._rates(pair[0]).plus(self._rates(pair[1])))
                free.append((score, (pair[0].segment_id, pair[1].segment_id)))
        if not free:
            # What comes last in the order of the checks came closest.
            code = max(vetoes, key=_VETOES.index)
            others = "" if len(vetoes) == 1 else f" (and {sum(map(len, vetoes.values())) - 1} other pairs)"
            self._note(Rule.MERGE, code, vetoes[code][0] + others)
            return None
        score, ids = min(free, key=lambda found: (found[0], min(found[1])))
        what = f"segments {ids[0]} and {ids[1]} are at {100 * score:.0f} % of a split threshold together"
        if wait := self._cooling("merge", self._clocks.merge_at_ms, config.merge_cooldown_seconds):
            self._note(Rule.MERGE, "merge-cooldown", f"{what}; {wait}")
            return None
        self._fire(Rule.MERGE, Reason.COLD, what)
        return Merge(ids, max(self._depth(self._layout.segment(one)) for one in ids) + 1)

    def _veto(self, one: Segment, other: Segment) -> tuple[str, str]:
        """Why a pair is not merged, as a code and in words; empty if it may be."""
        config, names = self._config, f"segments {one.segment_id} and {other.segment_id}"
        for segment in (one, other):
            warm = self._warm(segment)
            if warm:
                return "warm", warm
        depth = max(self._depth(one), self._depth(other))
        if depth >= config.max_dag_depth:
            return "at-max-depth", f"{names} were merged {depth} times, maxDagDepth is {config.max_dag_depth}"
        both = one.buckets + other.buckets
        left = self._buckets - both + min(both, config.max_buckets_per_segment)
        if left < min(self._consumers, self._buckets):
            return "needs-buckets", f"{names} merged would leave {left} entry buckets for {self._consumers} consumers"
        return self._would_split(one, other, names)

    def _depth(self, segment: Segment) -> int:
        recovery_seconds = self._config.depth_recovery_seconds
        return counted_depth(self._layout, segment, recovery_seconds=recovery_seconds, now_ms=self._now_ms)

    def _would_split(self, one: Segment, other: Segment, names: str) -> tuple[str, str]:
        """What a split rule would say to the merged segment, if the load is as high as its records allow."""
        worst = self._rates(one).plus(self._rates(other)).times(1 + MATERIAL_CHANGE)
        metric, ratio = self._score(worst)
        if ratio > 1:
            return "would-split", f"{names} merged could be at {100 * ratio:.0f} % of split.{metric} and be split again"
        if self._consumers > len(self._active) - 1:
            # Of the three busiest one at least is not of this pair.
            others = (rate for rate, it in self._busiest if it not in (one, other))
            busiest = max(worst.msg_rate_in, next(others, 0.0) * (1 + MATERIAL_CHANGE))
            if busiest >= self._config.split_vs_rebucket_min_msg_rate_in:
                return "would-split", f"{self._consumers} consumers would have {names} split again"
        return "", ""

    def _warm(self, segment: Segment) -> str:
        load = self._loads.get(segment.segment_id)
        if load is None:
            return f"the load of segment {segment.segment_id} is not known"
        if load.rates.reaches(self._config.merge):
            metric, ratio = load.rates.highest_ratio(self._config.merge)
            return f"segment {segment.segment_id} is at {100 * ratio:.0f} % of merge.{metric}"
        cold_seconds = (self._now_ms - load.last_hot_at_ms) / SECONDS_MS
        if cold_seconds < self._config.merge_window_seconds:
            window = self._config.merge_window_seconds
            return f"segment {segment.segment_id} has been cold for {max(0.0, cold_seconds):.0f} s of {window:g}"
        return ""

    # Idle

    def by_idle(self) -> Action | None:
        """Back to the budget, when nothing else has been done for a while: a rollover has its price, too."""
        config = self._config
        if not self._is_fresh:
            return None
        peak = self._demand.most(self._now_ms)
        found = correction(
            {one.segment_id: one.buckets for one in self._active},
            budget=config.bucket_budget,
            consumers=self._consumers if peak is None else max(peak, self._consumers),
            most=config.max_buckets_per_segment,
        )
        have = f"{self._buckets} entry buckets in all, rebucket.budget is {config.bucket_budget}"
        if found is None:
            self._note(Rule.IDLE_REBUCKET, "quiet", have)
            return None
        window = config.rebucket_down_window_seconds
        if peak is None:
            self._note(
                Rule.IDLE_REBUCKET, "idle-window", f"{have}; consumers have not been watched for {window:g} s yet"
            )
            return None
        times = (self._clocks.split_at_ms, self._clocks.merge_at_ms, self._clocks.rebucket_at_ms)
        changed_at_ms = max((at_ms for at_ms in times if at_ms is not None), default=None)
        if changed_at_ms is not None and self._now_ms - changed_at_ms < window * SECONDS_MS:
            ago = (self._now_ms - changed_at_ms) / SECONDS_MS
            self._note(Rule.IDLE_REBUCKET, "idle-window", f"{have}; changed {ago:.0f} s ago of {window:g}")
            return None
        if wait := self._cooling("rebucket", self._clocks.rebucket_at_ms, config.rebucket_cooldown_seconds):
            self._note(Rule.IDLE_REBUCKET, "rebucket-cooldown", f"{have}; {wait}")
            return None
        segment_ids = found.segment_ids[: max(0, self._spare_records)]
        if not segment_ids:
            self._note(
                Rule.IDLE_REBUCKET, "layout-filling", f"{have}; the layout holds {len(self._layout.segments)} segments"
            )
            return None
        reason = Reason.IDLE_BUCKETS if found.lowers else Reason.BUCKET_DRIFT
        self._fire(
            Rule.IDLE_REBUCKET,
            reason,
            f"{have}, and there were {peak} consumers of one subscription at most for {window:g} s; {found.buckets} in "
            f"each of {len(segment_ids)} segments",
        )
        return Rebucket(segment_ids, found.buckets, reason)

    # All

    @cached_property
    def _busiest(self) -> list[tuple[float, Segment]]:
        rates = ((self._rates(it).msg_rate_in, it) for it in self._active)
        return heapq.nlargest(3, rates, key=lambda found: found[0])

    def _unknown(self) -> str:
        """Active segments whose load is not known, in words; empty if there are none."""
        missing = [one.segment_id for one in self._active if one.segment_id not in self._loads]
        others = f" and of {len(missing) - 1} others" if len(missing) > 1 else ""
        return f"nothing is known of the load of segment {missing[0]}{others}" if missing else ""

    def _divisible(self) -> list[Segment]:
        return [one for one in self._active if one.hash_range.size > 1]

    def _rates(self, segment: Segment) -> Rates:
        load = self._loads.get(segment.segment_id)
        return _NOTHING if load is None else load.rates

    def _parts(self, segment: Segment, wanted: int) -> int:
        room = self._config.max_segments - len(self._active) + 1
        return max(2, min(wanted, self._config.max_fanout, room, segment.hash_range.size))

    def _cooling(self, what: str, at_ms: int | None, seconds: float) -> str:
        """For how long a cool-down still holds something back, in words; empty if it does not.

        A time in the future, as after a clock that went back, holds it back, too.
        """
        if at_ms is None or self._now_ms - at_ms >= seconds * SECONDS_MS:
            return ""
        over_at_ms = at_ms + math.ceil(seconds * SECONDS_MS)
        self.look_again_at_ms = min(self.look_again_at_ms or over_at_ms, over_at_ms)
        return f"{what}.cooldown for another {(over_at_ms - self._now_ms) / SECONDS_MS:.1f} s"

    def _note(self, rule: Rule, code: str, why: str) -> None:
        self.findings.append(_finding(rule, False, code, why))

    def _fire(self, rule: Rule, reason: Reason, why: str) -> None:
        self.findings.append(_finding(rule, True, reason.value, why))


@lru_cache(maxsize=1024)
def _finding(rule: Rule, fired: bool, code: str, why: str) -> Finding:
    """One for all of the very many topics of which the same is found: their last decisions are remembered."""
    return Finding(rule, fired, code, why)


_VETOES = ("warm", "at-max-depth", "needs-buckets", "would-split")
