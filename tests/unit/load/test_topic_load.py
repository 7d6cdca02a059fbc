"""What a topic keeps of its load: hot times, and whether it may be acted on (R34, R35)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.load.topic_load import SampledSegment, TopicLoad

CONFIG = AutoScaleConfig()
COLD, HOT = Rates(10.0), Rates(5_000.0)
START = 100_000_000
SEGMENTS = {1: SampledSegment("a", 0), 2: SampledSegment("b", 0)}


def sample(at_ms: int, /, missing: dict[str, str] | None = None, settled: bool = True, **rates: Rates) -> LoadSample:
    found = {name: SegmentSample(one, {"s": 3}) for name, one in rates.items()}
    return LoadSample(at_ms, 120.0, found, missing=missing or {}, settled=settled)


def taken(*samples: LoadSample, config: AutoScaleConfig = CONFIG, load: TopicLoad | None = None) -> TopicLoad:
    load = load or TopicLoad()
    for one in samples:
        load.take(one, SEGMENTS, config, 180.0)
    return load


def test_R35_a_segment_is_hot_until_it_was_last_seen_hot() -> None:
    """Hazard C46."""
    load = taken(
        sample(START, a=COLD, b=HOT), sample(START + 10_000, a=COLD, b=HOT), sample(START + 20_000, a=COLD, b=COLD)
    )
    assert load.records == {1: SegmentLoad(COLD, START), 2: SegmentLoad(COLD, START + 10_000)}
    assert load.backlogs == {1: {"s": 3}, 2: {"s": 3}}
    assert load.backlog == {"s": 6}


def test_R35_a_change_that_is_not_material_is_not_recorded_unless_it_crosses_a_threshold() -> None:
    """Hazard B9."""
    config = replace(CONFIG, merge=replace(CONFIG.merge, msg_rate_in=110.0))
    load = taken(
        sample(START, a=Rates(100.0), b=Rates(100.0)),
        sample(START + 10_000, a=Rates(109.0), b=Rates(111.0)),
        config=config,
    )
    assert load.records[1].rates == Rates(100.0)
    assert load.records[2].rates == Rates(111.0)


def test_noise_of_a_cold_segment_does_not_begin_its_cold_time_anew() -> None:
    """Hazard B9: each of these changes is material and recorded, and none of them makes it hot."""
    noise = [Rates(rate) for rate in (10.0, 200.0, 0.0, 900.0, 1.0)]
    load = taken(*(sample(START + 10_000 * number, a=rates, b=HOT) for number, rates in enumerate(noise)))
    assert load.records[1] == SegmentLoad(noise[-1], START)


@pytest.mark.parametrize(("before", "after"), [(990.0, 1_237.0), (1_100.0, 990.0), (10_001.0, 7_501.0)])
def test_no_threshold_hides_in_what_is_not_material(before: float, after: float) -> None:
    """Hazard B9: the change is less than a quarter, and what follows from the load another thing."""
    load = taken(*(sample(START + at_ms, a=Rates(rate), b=HOT) for at_ms, rate in ((0, before), (10_000, after))))
    assert load.records[1].rates == Rates(after)


def test_nothing_is_kept_of_segments_that_left_the_layout() -> None:
    """Hazard A2-25980g."""
    load = taken(sample(START, a=COLD, b=HOT))
    load.take(sample(START + 10_000, a=COLD, b=HOT), {2: SEGMENTS[2]}, CONFIG, 180.0)
    assert load.records.keys() == {2}
    assert load.backlog == {"s": 3}


def test_R35_hot_times_begin_anew_when_merge_thresholds_change() -> None:
    load = taken(sample(START, a=COLD, b=COLD))
    other = replace(CONFIG, merge=replace(CONFIG.merge, msg_rate_in=900.0))
    taken(sample(START + 10_000, a=COLD, b=COLD), load=load, config=other)
    assert load.records[1].last_hot_at_ms == START + 10_000


def test_R35_an_older_sample_changes_nothing() -> None:
    load = taken(sample(START, a=COLD, b=COLD), sample(START - 5_000, a=HOT, b=HOT))
    assert load.records[1] == SegmentLoad(COLD, START)


def test_a_clock_that_goes_back_makes_nothing_of_before_look_fresh() -> None:
    load = taken(sample(START, a=HOT, b=HOT))
    earlier = START - 3_600_000
    assert load.why_stale(earlier, 10.0)
    taken(sample(earlier, a=COLD, b=COLD), load=load)
    assert load.records[1] == SegmentLoad(COLD, earlier)
    assert load.why_stale(earlier, 10.0) == ""


def test_a_segment_not_known_for_a_while_was_not_cold() -> None:
    load = taken(sample(START, a=COLD, b=COLD))
    taken(replace(sample(START + 10_000, a=COLD), unsettled=frozenset({"b"})), load=load)
    assert 2 not in load.records
    taken(sample(START + 20_000, a=COLD, b=COLD), load=load)
    assert load.records[2].last_hot_at_ms == START + 20_000
    assert load.records[1].last_hot_at_ms == START


def test_a_gap_between_samples_was_not_cold() -> None:
    load = taken(sample(START, a=COLD, b=COLD), sample(START + 600_000, a=COLD, b=COLD))
    assert load.records[1].last_hot_at_ms == START + 600_000


def test_what_no_broker_has_loaded_has_no_load_once_that_is_certain() -> None:
    assert taken(sample(START, a=COLD)).records[2].rates == Rates()
    assert 2 not in taken(sample(START, a=COLD, settled=False)).records
    young = {**SEGMENTS, 2: SampledSegment("b", START - 60_000)}
    load = TopicLoad()
    load.take(sample(START, a=COLD), young, CONFIG, 180.0)
    assert 2 not in load.records


def test_R34_a_missing_broker_makes_a_topic_stale_only_if_it_may_have_a_segment() -> None:
    assert "b1" in taken(sample(START, {"b1": "away"}, a=COLD)).why_stale(START, 10.0)
    assert taken(sample(START, {"b1": "away"}, a=COLD, b=COLD)).why_stale(START, 10.0) == ""


@pytest.mark.parametrize(("age_seconds", "stale"), [(0, False), (30, False), (31, True)])
def test_R34_load_gets_stale_with_age(age_seconds: int, stale: bool) -> None:
    load = taken(sample(START, a=COLD, b=COLD))
    assert bool(load.why_stale(START + age_seconds * 1000, 10.0)) is stale


def test_before_the_first_sample_nothing_is_known() -> None:
    assert TopicLoad().why_stale(START, 10.0)


def test_a_sample_that_knows_since_when_a_segment_is_cold_is_believed() -> None:
    """So that a change of leader does not begin cold times anew where a pipeline has watched (hazard A2-25980f)."""
    cold = (START - 500_000, CONFIG.merge)
    known = LoadSample(START, 120.0, {"a": SegmentSample(COLD, {}, cold)})
    assert taken(known).records[1].last_hot_at_ms == START - 500_000
    other = replace(CONFIG, merge=Rates(999.0, 1.0, 1.0, 1.0))
    assert taken(known, config=other).records[1].last_hot_at_ms == START, "it was cold by other thresholds"
