"""Only what a broker has shown for a whole period counts; what is missing is never nothing (R34, R35)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.statistics import Reading, StatisticsTimes

A, B = "persistent://t/n/a-segment-0000-7fff-1", "persistent://t/n/a-segment-8000-ffff-2"
TIMES = StatisticsTimes(period_seconds=60.0, first_after_seconds=60.0)


class Brokers:
    """Rounds of two brokers, ten seconds apart if not otherwise said."""

    def __init__(self, interval_seconds: float = 10.0, times: StatisticsTimes = TIMES) -> None:
        self.times = times
        self.interval_seconds = interval_seconds
        self.late_seconds = 0.0
        self.sampling = Sampling()
        self.now_ms = 1_000_000

    def round(self, one: dict[str, int] | None, two: dict[str, int] | None = None, rounds: int = 1) -> LoadSample:
        """Topics and their message counts on both; None for a broker that does not answer."""
        for _ in range(rounds):
            self.now_ms += int((self.interval_seconds + self.late_seconds) * 1000)
            found = {"one": one, "two": two if two is not None or one is None else {}}
            sample = self.sampling.take(
                {
                    broker: [(name, Reading(Rates(float(count)), count)) for name, count in topics.items()]
                    for broker, topics in found.items()
                    if topics is not None
                },
                {broker: "away" for broker, topics in found.items() if topics is None},
                at_ms=self.now_ms,
                times=self.times,
                interval_seconds=self.interval_seconds,
            )
        return sample


def test_a_topic_counts_after_a_whole_period_at_its_broker() -> None:
    brokers = Brokers()
    assert brokers.round({A: 5}).unsettled == {A}
    assert brokers.round({A: 5}, rounds=5).unsettled == {A}
    sample = brokers.round({A: 5})
    assert sample.segments[A].rates == Rates(5.0)
    assert not sample.unsettled


def test_a_topic_that_moves_or_is_loaded_again_starts_anew() -> None:
    brokers = Brokers()
    brokers.round({A: 5}, rounds=10)
    assert brokers.round({}, {A: 6}).unsettled == {A}, "moved"
    assert A in brokers.round({}, {A: 7}, rounds=7).segments
    assert brokers.round({}, {A: 1}).unsettled == {A}, "its count began anew"


def test_a_topic_that_is_gone_is_unsettled_for_two_periods() -> None:
    brokers = Brokers()
    brokers.round({A: 5, B: 5}, rounds=10)
    sample = brokers.round({A: 5}, rounds=12)
    assert sample.unsettled == {B}
    sample = brokers.round({A: 5}, rounds=1)
    assert B not in sample.unsettled
    assert B not in sample.segments


def test_what_is_on_a_missing_broker_is_neither_shown_nor_forgotten() -> None:
    brokers = Brokers()
    brokers.round({A: 5}, {B: 5}, rounds=10)
    for _ in range(30):
        sample = brokers.round(None, {B: 5})
        assert sample.missing == {"one": "away"}
        assert A not in sample.segments
    assert brokers.round({A: 5}, {B: 5}).unsettled == {A}, "it may have been restarted meanwhile"
    assert A in brokers.round({A: 5}, {B: 5}, rounds=6).segments


def test_a_broker_that_comes_back_without_a_topic_does_not_make_it_idle_at_once() -> None:
    brokers = Brokers()
    brokers.round({A: 5}, {B: 5}, rounds=10)
    brokers.round(None, {B: 5}, rounds=30)
    assert A in brokers.round({}, {B: 5}).unsettled
    assert A in brokers.round({}, {B: 5}, rounds=11).unsettled


def test_what_has_moved_to_a_missing_broker_is_not_taken_for_idle_when_that_comes_back_and_shows_nothing_yet() -> None:
    brokers = Brokers()
    brokers.round({A: 5}, {B: 5}, rounds=20)
    brokers.round(None, {}, rounds=30)
    for _ in range(11):
        sample = brokers.round({}, {})
        assert B in sample.unsettled
        assert not sample.settled
    sample = brokers.round({}, {})
    assert sample.settled
    assert B not in sample.unsettled


def test_after_a_pause_everything_starts_anew() -> None:
    """Another replica has sampled meanwhile."""
    brokers = Brokers()
    brokers.round({A: 5}, {B: 5}, rounds=20)
    brokers.now_ms += 3_600_000
    sample = brokers.round({A: 500})
    assert sample.unsettled == {A}
    assert not sample.settled


def test_what_a_broker_does_not_show_yet_after_its_start_is_not_taken_for_idle() -> None:
    """Measured: brokers answer with nothing for `statsUpdateInitialDelayInSecs`, 60 s, however short their period."""
    brokers = Brokers(interval_seconds=1.0, times=StatisticsTimes(period_seconds=5.0, first_after_seconds=60.0))
    brokers.round({A: 5}, {B: 5}, rounds=80)
    brokers.round(None, {B: 5}, rounds=2)
    for _ in range(65):
        assert A in brokers.round({}, {B: 5}).unsettled
    assert not brokers.round({}, {B: 5}).unsettled, "then it is where nobody has loaded it"


@pytest.mark.parametrize("interval_seconds", [60.0, 600.0])
def test_rounds_no_closer_than_the_brokers_own_count_all_the_same(interval_seconds: float) -> None:
    """So it is behind a proxy (60 s), and for whoever wants less of it; a round is always a little late."""
    brokers = Brokers(interval_seconds)
    brokers.late_seconds = 0.5
    brokers.round({A: 5})
    assert brokers.round({A: 5}).segments[A].rates == Rates(5.0)
    assert brokers.round({A: 5}, rounds=2).settled
    brokers.late_seconds = 2.5 * interval_seconds
    assert brokers.round({A: 5}).unsettled == {A}, "rounds have been missed"


def test_nothing_is_taken_for_unloaded_by_one_who_has_just_begun() -> None:
    brokers = Brokers()
    assert not brokers.round({A: 5}, rounds=12).settled
    assert brokers.round({A: 5}).settled


def test_topics_that_are_no_segments_are_left_out() -> None:
    assert not Brokers().round({"persistent://t/n/plain": 3}).unsettled


def test_a_sample_survives_the_way_to_another_replica() -> None:
    brokers = Brokers()
    brokers.round({A: 5}, {B: 2}, rounds=9)
    sample = brokers.round({A: 5}, None)
    sent = json.loads(json.dumps(sample.to_json(now_ms=sample.at_ms + 1_500)))
    # The other's clock is an hour ahead.
    hour_ms = 3_600_000
    received = LoadSample.from_json(sent, now_ms=sample.at_ms + 1_500 + hour_ms)
    assert received == replace(sample, at_ms=sample.at_ms + hour_ms)


def test_since_when_a_segment_is_cold_survives_it_too() -> None:
    """Hazard A2-25980f."""
    merge = Rates(1.0, 2.0, 3.0, 4.0)
    sample = LoadSample(1_000, 120.0, {A: SegmentSample(Rates(), {}, (400, merge)), B: SegmentSample(Rates(9.0))})
    received = LoadSample.from_json(json.loads(json.dumps(sample.to_json(now_ms=1_000))), now_ms=5_000)
    assert received.segments == {A: SegmentSample(Rates(), {}, (4_400, merge)), B: SegmentSample(Rates(9.0))}
