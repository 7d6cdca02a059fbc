"""The decision: a fleet of 10,000 topics decided on once, at different sizes and loads."""

import random
import time
from collections.abc import Callable, Sequence

from bench.measurement import Better, Group, Measured, Measurement
from bench.section import Run, Section
from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad

TOPICS = 10_000
_SEGMENTS = 64
# Topics that differ; as many again and again make the fleet, which would not fit into memory otherwise.
_SHAPES = 100
_NOW_MS = 1_700_000_000_000
_COLD_SINCE_MS = _NOW_MS - 3_600_000
_NO_RULE = f"{_SEGMENTS} segments each, warm: no rule fires"
_CONFIG = AutoScaleConfig(max_segments=128)


async def _measure(run: Run) -> Measured:
    topics = run.size(TOPICS, 10 * _SHAPES)
    cases = {
        "1 segment each, warm": _fleet(1, lambda: 5_000.0),
        _NO_RULE: _fleet(_SEGMENTS, lambda: 5_000.0),
        f"{_SEGMENTS} segments each, one is hot: a split": _fleet(_SEGMENTS, lambda: 5_000.0, hottest=30_000.0),
        f"{_SEGMENTS} segments each, all cold: a merge": _fleet(_SEGMENTS, lambda: 10.0 * random.random()),
    }
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(run.rounds):
        for name, fleet in cases.items():
            rates[name].append(_pass(fleet, topics))
    rows = tuple(Measurement(name, "decisions/s", tuple(found), Better.HIGHER) for name, found in rates.items())
    return Measured((Group(f"decide() for {TOPICS:,} topics", rows, reference=_NO_RULE),))


SECTION = Section(
    "deciding",
    "Decisions",
    "Whether a topic splits, merges or stays is decided once a minute. One pass over a fleet, in one process on one "
    "core; ratios are to the case that is the rule: no rule fires.",
    _measure,
)


def _fleet(segments: int, rate: Callable[[], float], hottest: float | None = None) -> Sequence[Situation]:
    layout = SegmentLayout.initial(segments)
    found = []
    for _ in range(_SHAPES):
        loads = {one.segment_id: SegmentLoad(Rates(rate()), _COLD_SINCE_MS) for one in layout.active}
        if hottest is not None:
            loads[random.randrange(segments)] = SegmentLoad(Rates(hottest), _NOW_MS)
        found.append(Situation(layout, loads, {"orders": segments // 2}, _CONFIG, Clocks(), _NOW_MS))
    return found


def _pass(shapes: Sequence[Situation], topics: int) -> float:
    started = time.perf_counter()
    for number in range(topics):
        decide(shapes[number % _SHAPES])
    return topics / (time.perf_counter() - started)
