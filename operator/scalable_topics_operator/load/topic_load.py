"""What one topic's controller keeps of its segments' load, and whether it may be acted on (R34, R35). Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scalable_topics_operator.autoscale.config import SECONDS_MS, AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.autoscale.load_record import recorded
from scalable_topics_operator.load.sample import LoadSample

_ROUNDS_TO_BE_STALE = 3
_LEAST_STALE_SECONDS = 15.0
_CLOCK_STEP_MS = 10_000


def stale_after_seconds(interval_seconds: float) -> float:
    """How old a sample may be that is acted on, when there is one every `interval_seconds`."""
    return max(_ROUNDS_TO_BE_STALE * interval_seconds, _LEAST_STALE_SECONDS)


@dataclass(frozen=True, slots=True)
class SampledSegment:
    """An active segment to be found in samples.

    Args:
        topic: full name of its topic.
        created_at_ms: when it was made, milliseconds since 1970.
    """

    topic: str
    created_at_ms: int


@dataclass(slots=True)
class TopicLoad:
    """The load of a topic's active segments.

    A segment of which nothing is known, if only for a while, counts from then on as one seen for the first time:
    what it did meanwhile cannot be told, so it was not cold.
    """

    records: Mapping[int, SegmentLoad] = field(default_factory=dict)
    backlogs: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    sampled_at_ms: int | None = None
    _problem: str = "nothing has been sampled yet"
    _thresholds: Rates | None = None

    def take(
        self,
        sample: LoadSample,
        segments: Mapping[int, SampledSegment],
        config: AutoScaleConfig,
        most_gap_seconds: float,
    ) -> None:
        """Take in a sample, if it is newer than the last one (R35).

        Args:
            sample: of the topic's Pulsar cluster.
            segments: active segments by id.
            config: whose merge thresholds tell hot from cold; when these change, hot times begin anew.
            most_gap_seconds: between two samples taken in; what a longer gap hides may have been anything.
        """
        before_ms = self.sampled_at_ms if self.sampled_at_ms is not None else sample.at_ms - 1
        if 0 <= before_ms - sample.at_ms < _CLOCK_STEP_MS:
            return
        # A sample from long before the last one tells of a clock that went back.
        goes_on = self._thresholds == config.merge and 0 < sample.at_ms - before_ms <= most_gap_seconds * SECONDS_MS
        known = self.records if goes_on else {}
        records: dict[int, SegmentLoad] = {}
        backlogs: dict[int, Mapping[str, int]] = {}
        lost = []
        for segment_id, segment in segments.items():
            found = sample.segments.get(segment.topic)
            if found is not None:
                rates = found.rates
                backlogs[segment_id] = found.backlog
            elif sample.missing:
                lost.append(segment_id)
                continue
            elif self._is_unloaded(sample, segment):
                rates = Rates()
            else:
                continue
            record = recorded(known.get(segment_id), rates, config, sample.at_ms)
            if found is not None and found.cold is not None and found.cold[1] == config.merge:
                # Who made the sample has watched it for longer than this process, perhaps, and by the same thresholds.
                record = replace(record, last_hot_at_ms=found.cold[0])
            records[segment_id] = record
        self.records, self.backlogs, self.sampled_at_ms = records, backlogs, sample.at_ms
        self._thresholds = config.merge
        brokers = ", ".join(sorted(sample.missing))
        self._problem = f"broker {brokers} did not answer and may have segment {lost[0]}" if lost else ""

    @property
    def backlog(self) -> dict[str, int]:
        """Messages not yet acknowledged in the active segments that are known, by subscription."""
        total: Counter[str] = Counter()
        for backlog in self.backlogs.values():
            total.update(backlog)
        return dict(total)

    @property
    def total(self) -> Rates:
        """Rates of all segments that are known."""
        return functools.reduce(Rates.plus, (record.rates for record in self.records.values()), Rates())

    def why_stale(self, now_ms: int, interval_seconds: float) -> str:
        """Why nothing may be decided on it; empty if it may.

        Args:
            now_ms: milliseconds since 1970.
            interval_seconds: time between two samples.
        """
        if self.sampled_at_ms is not None and self.sampled_at_ms - now_ms >= _CLOCK_STEP_MS:
            return "the last sample is of the future: the clock went back"
        age_seconds = self.age_seconds(now_ms)
        if self._problem or age_seconds is None or age_seconds <= stale_after_seconds(interval_seconds):
            return self._problem
        return f"the last sample is {age_seconds:.0f} s old"

    def age_seconds(self, now_ms: int) -> float | None:
        """Age of the last sample; None before the first."""
        return None if self.sampled_at_ms is None else max(0.0, (now_ms - self.sampled_at_ms) / SECONDS_MS)

    def _is_unloaded(self, sample: LoadSample, segment: SampledSegment) -> bool:
        """Whether no broker has loaded it, which is no load, rather than none knowing of it yet."""
        young = sample.at_ms - segment.created_at_ms < sample.unseen_seconds * SECONDS_MS
        return sample.settled and segment.topic not in sample.unsettled and not young
