"""Recorded load through the operator's own decisions, under policies of one's choice; topics apart on executors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scalable_topics.layout import CreatedBy, HashRange
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates
from segment_load.change_filter import RATES
from segment_load.history_reading import with_ring
from segment_load.replayed_topic import ReplayedTopic, initial_layout
from segment_load.ring_load import RecordedSegment, RingLoad, newest

TICK_MS = 60_000
"""Between two decisions: a minute of the history, and what `--auto-scale-interval-seconds` is by default."""
RECORDED, PRESENT, CANDIDATE = "recorded", "present", "candidate"
OUTCOME_SCHEMA = (
    "topic string, policy string, splits bigint, merges bigint, rebuckets bigint, minutes bigint, "
    "minutes_unknown bigint, minutes_above_split bigint, minutes_above_present_split bigint, peak_segments bigint, "
    "segment_minutes bigint, timeline array<struct<at_ms bigint, segments bigint, highest double>>"
)
"""One row a topic and policy. `minutes` are those of which there is history; in `minutes_unknown` the load of some
segment was not known. `highest` is that of the most loaded segment, in parts of the policy's split thresholds."""

_BEGINNING_MS = 5 * TICK_MS
_KEPT_MS = 5 * TICK_MS


@dataclass(slots=True)
class _Outcome:
    minutes: int = 0
    minutes_unknown: int = 0
    minutes_above_split: int = 0
    minutes_above_present_split: int = 0
    peak_segments: int = 0
    segment_minutes: int = 0
    timeline: dict[int, tuple[int, float]] = field(default_factory=dict)

    def add(
        self, bucket_ms: int, segments: int, rates: Iterable[Rates], split: Rates, present: Rates, *, is_known: bool
    ) -> None:
        """Count one minute."""
        found = list(rates)
        highest = max((one.highest_ratio(split)[1] for one in found), default=0.0)
        self.minutes += 1
        self.minutes_unknown += not is_known
        self.minutes_above_split += highest > 1
        self.minutes_above_present_split += any(one.highest_ratio(present)[1] > 1 for one in found)
        self.peak_segments = max(self.peak_segments, segments)
        self.segment_minutes += segments
        before = self.timeline.get(bucket_ms, (0, 0.0))
        self.timeline[bucket_ms] = max(before[0], segments), max(before[1], highest)


def replay(
    rows: Iterable[RecordedSegment], policies: Mapping[str, AutoScaleConfig], bucket_ms: int
) -> Iterator[dict[str, Any]]:
    """One topic under each policy and as it was recorded; rows as `OUTCOME_SCHEMA` has them, but for the topic.

    Args:
        rows: of the topic, by minute.
        policies: by name; `PRESENT` is one of them.
        bucket_ms: what one point of a timeline stands for.
    """
    minutes = itertools.groupby(rows, key=lambda one: one.at_ms)
    present = policies[PRESENT]
    first: list[tuple[int, list[RecordedSegment]]] = []
    for at_ms, some in minutes:
        first.append((at_ms, list(some)))
        if at_ms - first[0][0] >= _BEGINNING_MS:
            break
    # Not all segments may be seen in the first minute; what replaced them by then is what there is.
    begins_ms = first[0][0]
    layout = initial_layout((one for _, some in first for one in some), begins_ms)
    topics = {name: ReplayedTopic(config, layout, TICK_MS) for name, config in policies.items()}
    outcomes = {name: _Outcome() for name in (RECORDED, *policies)}
    load = RingLoad()
    later = ((at_ms, list(some)) for at_ms, some in minutes)
    for at_ms, minute in itertools.chain(first, later):
        now = newest(minute)
        load = load.after(now, at_ms, _KEPT_MS)
        bucket = at_ms - at_ms % bucket_ms
        is_known = load.is_whole
        recorded = [one.rates for one in now if one.rates is not None]
        outcomes[RECORDED].add(bucket, len(now), recorded, present.split, present.split, is_known=is_known)
        for name, topic in topics.items():
            # As the minute was, before what is decided at its end.
            outcomes[name].add(
                bucket,
                len(topic.layout.active),
                topic.rates(load),
                topic.config.split,
                present.split,
                is_known=is_known,
            )
            topic.tick(load, at_ms)
    for name, outcome in outcomes.items():
        virtual = topics.get(name)
        counts = [
            virtual.count(kind) if virtual else None for kind in (CreatedBy.SPLIT, CreatedBy.MERGE, CreatedBy.REBUCKET)
        ]
        yield {
            "policy": name,
            **dict(zip(("splits", "merges", "rebuckets"), counts, strict=True)),
            "minutes": outcome.minutes,
            "minutes_unknown": outcome.minutes_unknown,
            "minutes_above_split": outcome.minutes_above_split,
            "minutes_above_present_split": outcome.minutes_above_present_split,
            "peak_segments": outcome.peak_segments,
            "segment_minutes": outcome.segment_minutes,
            "timeline": [
                {"at_ms": at_ms, "segments": segments, "highest": highest}
                for at_ms, (segments, highest) in sorted(outcome.timeline.items())
            ],
        }


def replay_all(minutes: DataFrame, policies: Mapping[str, AutoScaleConfig], bucket_ms: int) -> DataFrame:
    """All topics, as `OUTCOME_SCHEMA`.

    Args:
        minutes: `MINUTE_SCHEMA`.
        policies: by name; `PRESENT` is one of them.
        bucket_ms: what one point of a timeline stands for.
    """
    knobs = dict(policies)
    ordered = (
        with_ring(minutes)
        .select(
            "topic",
            F.unix_millis("minute").alias("at_ms"),
            *("segment_id", "range_start", "range_end", "samples", *(f"{rate}_avg" for rate in RATES)),
        )
        .repartition("topic")
        .sortWithinPartitions("topic", "at_ms", "segment_id")
    )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A topic is read as it comes, however long its history is.
        rows = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
        for topic, own in itertools.groupby(rows, key=lambda row: row[0]):
            for outcome in replay((_segment(row) for row in own), knobs, bucket_ms):
                yield pa.RecordBatch.from_pylist([{"topic": topic, **outcome}], _ARROW)

    return ordered.mapInArrow(run, OUTCOME_SCHEMA)


def _segment(row: tuple[Any, ...]) -> RecordedSegment:
    _, at_ms, segment_id, start, end, samples, *rates = row
    return RecordedSegment(segment_id, HashRange(start, end), Rates(*rates) if samples else None, at_ms)


_COUNTS = (
    *("splits", "merges", "rebuckets", "minutes", "minutes_unknown", "minutes_above_split"),
    *("minutes_above_present_split", "peak_segments", "segment_minutes"),
)
_POINT = pa.struct([("at_ms", pa.int64()), ("segments", pa.int64()), ("highest", pa.float64())])
_ARROW = pa.schema(
    [
        *(("topic", pa.string()), ("policy", pa.string())),
        *((name, pa.int64()) for name in _COUNTS),
        ("timeline", pa.list_(_POINT)),
    ]
)
