"""R38: the cases of the peer's load reporter that are prose: each is a test here that bears its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.autoscale.load_record import recorded
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.statistics import Reading, StatisticsTimes
from scalable_topics_operator.load.topic_load import SampledSegment, TopicLoad
from tests.conformance.peer_case import PeerCase, judge, load_cases

CASES = {case.name: case for case in load_cases() if case.area == "LoadReporter" and not case.machine}
# Thresholds that no rate of a case crosses, and nothing is cold by: so only what changes counts.
_CONFIG = AutoScaleConfig(split=Rates(1e6, 1e9, 1e6, 1e9), merge=Rates(1e5, 1e8, 1e5, 1e8))
_BEFORE_MS, _NOW_MS, _SECOND_MS = 1_000_000, 2_000_000, 1_000


def _rewritten(case: PeerCase) -> dict[str, Any]:
    """What is recorded after one more sample."""
    stored = case.given["stored"]
    known = None if stored is None else SegmentLoad(Rates(float(stored)), _BEFORE_MS)
    record = recorded(known, Rates(float(case.given["sample"])), _CONFIG, _NOW_MS)
    return {
        "written": known is None or record.rates != known.rates,
        "stored": record.rates.msg_rate_in,
        "mtimeChanged": record != known,
    }


def _after_forgetting(case: PeerCase) -> dict[str, Any]:
    """A process that has just begun, after one that had recorded something."""
    load, before, written = TopicLoad(), None, []
    for number, rate in enumerate(case.given["samples"]):
        sample = LoadSample(_NOW_MS + number * _SECOND_MS, 120.0, {"a": SegmentSample(Rates(float(rate)))})
        load.take(sample, {1: SampledSegment("a", 0)}, _CONFIG, 180.0)
        written.append(load.records[1].rates != before)
        before = load.records[1].rates
    return {"written": written}


def _ordinary(case: PeerCase) -> dict[str, Any]:
    """Long after it was first seen, a topic that is no segment is still in no sample."""
    sampling, readings = Sampling(), [("persistent://t/n/plain", Reading(Rates(5_000.0), 1))]
    for number in range(30):
        sample = sampling.take(
            {"one": readings},
            {},
            at_ms=_NOW_MS + number * 10 * _SECOND_MS,
            times=StatisticsTimes(),
            interval_seconds=10.0,
        )
    return {"records": len(sample.segments) + len(sample.unsettled)}


STORIES: dict[str, Callable[[PeerCase], dict[str, Any]]] = {
    "identical rewrite keeps mtime": _rewritten,
    "small change leaves value and mtime alone": _rewritten,
    "first sample always writes": _rewritten,
    "after forgetting, the stored value is the baseline": _after_forgetting,
    "ordinary topics yield none": _ordinary,
}


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_peer_case(case: PeerCase) -> None:
    judge(case, STORIES[case.name](case))


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == CASES.keys()
