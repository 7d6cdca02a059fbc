"""From the answers of all brokers to a sample that can be relied on (R34, R35). Pure.

Brokers renew their statistics every so often (`statsUpdateFrequencyInSecs`, 60 s by default) and know nothing of a
topic before the first round after they loaded it; what the first round says may be of a moment only. So a topic counts
from one whole period after it was first seen where it is. It counts as not loaded once it has been in no answer for two
of them, or for one and as long as a broker shows nothing after its start (`statsUpdateInitialDelayInSecs`, 60 s).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scalable_topics.layout import parse_classic_segment_name, parse_native_segment_name
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.load.statistics import Reading, StatisticsTimes


@dataclass(slots=True)
class _Known:
    """A topic that was in an answer.

    Args:
        broker: whose.
        since_ms: since when it has been there without a break that one could see.
        messages_in: as counted last.
        seen_at_ms: when it was in an answer last.
        absent_since_ms: since when it has been in none although its broker answers.
    """

    broker: str
    since_ms: int
    messages_in: int
    seen_at_ms: int
    absent_since_ms: int | None = None


@dataclass(slots=True)
class Sampling:
    """Remembers from one round to the next where segments are loaded, and since when."""

    started_at_ms: int = 0
    _last_round_ms: int | None = None
    _known: dict[str, _Known] = field(default_factory=dict)

    def take(
        self,
        answers: Mapping[str, Iterable[tuple[str, Reading]]],
        missing: Mapping[str, str],
        *,
        at_ms: int,
        times: StatisticsTimes,
        interval_seconds: float,
    ) -> LoadSample:
        """Make a sample of one round.

        After a pause all begins anew, since what happened meanwhile cannot be told: after more than a period, and
        where rounds are further apart than that, after some of them have been missed.

        Args:
            answers: topics and readings of each broker that answered.
            missing: why the others did not; their topics stay what they were.
            at_ms: when they were asked, milliseconds since 1970.
            times: when brokers renew their statistics.
            interval_seconds: how far apart rounds are meant to be.
        """
        period_ms, unseen_ms = int(times.period_seconds * 1000), int(times.unseen_seconds * 1000)
        most_gap_ms = int(times.most_gap_seconds(interval_seconds) * 1000)
        if self._last_round_ms is None or not 0 <= at_ms - self._last_round_ms <= most_gap_ms:
            self.started_at_ms = at_ms
            self._known.clear()
        if missing:
            # What the others do not have may be there, and will not be shown at once when it comes back.
            self.started_at_ms = at_ms
        self._last_round_ms = at_ms
        segments: dict[str, SegmentSample] = {}
        unsettled = set()
        for broker, readings in answers.items():
            for topic, reading in readings:
                if topic not in self._known and not _is_segment(topic):
                    continue
                since_ms = self._see(topic, broker, reading, at_ms, most_gap_ms)
                if at_ms - since_ms >= period_ms:
                    segments[topic] = SegmentSample(reading.rates, reading.backlog)
                else:
                    unsettled.add(topic)
        for topic, known in list(self._known.items()):
            if known.seen_at_ms == at_ms:
                continue
            if known.broker in missing:
                known.absent_since_ms = None
                continue
            if missing or known.absent_since_ms is None:
                known.absent_since_ms = at_ms
            if at_ms - known.absent_since_ms >= unseen_ms:
                del self._known[topic]
            else:
                unsettled.add(topic)
        return LoadSample(
            at_ms=at_ms,
            unseen_seconds=times.unseen_seconds,
            segments=segments,
            unsettled=frozenset(unsettled),
            missing=dict(missing),
            settled=at_ms - self.started_at_ms >= unseen_ms,
        )

    def _see(self, topic: str, broker: str, reading: Reading, at_ms: int, most_gap_ms: int) -> int:
        """Note that a broker has a topic; answers since when it has had it without a break."""
        known = self._known.get(topic)
        goes_on = (
            known is not None
            and known.broker == broker
            and reading.messages_in >= known.messages_in
            and at_ms - known.seen_at_ms <= most_gap_ms
        )
        if known is None or not goes_on:
            known = self._known[topic] = _Known(broker, at_ms, reading.messages_in, at_ms)
        known.messages_in, known.seen_at_ms, known.absent_since_ms = reading.messages_in, at_ms, None
        return known.since_ms


def _is_segment(topic: str) -> bool:
    return parse_classic_segment_name(topic) is not None or parse_native_segment_name(topic) is not None
