"""The decision: a fleet of 10,000 topics decided on once, at different sizes and loads."""

import random
import time
from collections.abc import Callable, Sequence

from bench.measuring import Rate, table
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
_CONFIG = AutoScaleConfig(max_segments=128)


def report(rounds: int) -> str:
    """Measure one pass over the fleet for each kind of load; the ratio is to the fleet of small topics."""
    cases = (
        ("1 segment each, warm", _fleet(1, lambda: 5_000.0)),
        (f"{_SEGMENTS} segments each, warm: no rule fires", _fleet(_SEGMENTS, lambda: 5_000.0)),
        (f"{_SEGMENTS} segments each, one is hot: a split", _fleet(_SEGMENTS, lambda: 5_000.0, hottest=30_000.0)),
        (f"{_SEGMENTS} segments each, all cold: a merge", _fleet(_SEGMENTS, lambda: 10.0 * random.random())),
    )
    rates = [Rate(name, tuple(_pass(fleet) for _ in range(rounds))) for name, fleet in cases]
    return table(f"decide() for {TOPICS:,} topics", "decisions/s", rates)


def _fleet(segments: int, rate: Callable[[], float], hottest: float | None = None) -> Sequence[Situation]:
    layout = SegmentLayout.initial(segments)
    found = []
    for _ in range(_SHAPES):
        loads = {one.segment_id: SegmentLoad(Rates(rate()), _COLD_SINCE_MS) for one in layout.active}
        if hottest is not None:
            loads[random.randrange(segments)] = SegmentLoad(Rates(hottest), _NOW_MS)
        found.append(Situation(layout, loads, {"orders": segments // 2}, _CONFIG, Clocks(), _NOW_MS))
    return found


def _pass(shapes: Sequence[Situation]) -> float:
    started = time.perf_counter()
    for number in range(TOPICS):
        decide(shapes[number % _SHAPES])
    return TOPICS / (time.perf_counter() - started)
