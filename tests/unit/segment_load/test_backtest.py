"""The model that recorded load is run through: what it may make up, and what it must not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import CreatedBy, HashRange
from scalable_topics.layout.hash_range import RING_SIZE
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates
from segment_load.backtest import CANDIDATE, PRESENT, RECORDED, TICK_MS, replay
from segment_load.policy_file import PolicyUnreadable, read_policies
from segment_load.replayed_topic import ReplayedTopic, initial_layout
from segment_load.ring_load import RecordedSegment, RingLoad, newest

START_MS = 1_699_999_200_000
QUICK = AutoScaleConfig(
    split=Rates(100, 1e9, 1e9, 1e9),
    merge=Rates(20, 1e8, 1e8, 1e8),
    merge_window_seconds=120,
    merge_cooldown_seconds=60,
)


@st.composite
def tilings(draw: st.DrawFn, most: int = 8) -> list[HashRange]:
    cuts = sorted(draw(st.sets(st.integers(1, RING_SIZE - 1), max_size=most - 1)))
    return [HashRange(start, end - 1) for start, end in zip([0, *cuts], [*cuts, RING_SIZE], strict=True)]


def at(minute: int, segments: list[tuple[int, HashRange, float | None]]) -> list[RecordedSegment]:
    return [
        RecordedSegment(number, where, None if rate is None else Rates(rate, 10 * rate), START_MS + minute * TICK_MS)
        for number, where, rate in segments
    ]


rates = st.floats(0, 1e6)


@given(tilings(), tilings(), st.data())
def test_the_ring_keeps_the_total_however_it_is_cut(
    seen: list[HashRange], asked: list[HashRange], data: st.DataObject
) -> None:
    drawn = [data.draw(rates) for _ in seen]
    load = RingLoad().after(at(0, [(n, where, drawn[n]) for n, where in enumerate(seen)]), START_MS, TICK_MS)
    found = [load.of(one) for one in asked]
    assert load.is_whole
    assert sum(one.msg_rate_in for one in found if one is not None) == pytest.approx(sum(drawn))
    assert sum(one.bytes_rate_in for one in found if one is not None) == pytest.approx(10 * sum(drawn))
    assert all(one is not None for one in found)


@given(tilings(), tilings(), st.data())
def test_what_does_not_count_keeps_its_load_for_a_while_and_is_unknown_then(
    before: list[HashRange], after: list[HashRange], data: st.DataObject
) -> None:
    drawn = [data.draw(rates) for _ in before]
    load = RingLoad().after(at(0, [(n, where, drawn[n]) for n, where in enumerate(before)]), START_MS, 3 * TICK_MS)
    unsettled = at(1, [(100 + n, where, None) for n, where in enumerate(after)])
    load = load.after(newest(unsettled), START_MS + 3 * TICK_MS, 3 * TICK_MS)
    whole = load.of(HashRange.full())
    assert whole is not None
    assert whole.msg_rate_in == pytest.approx(sum(drawn))
    load = load.after(newest(unsettled), START_MS + 4 * TICK_MS, 3 * TICK_MS)
    assert (load.of(HashRange.full()), load.is_whole) == (None, False)


def test_fresh_load_takes_the_place_of_what_was_kept() -> None:
    left, right = HashRange.full().split()
    load = RingLoad().after(at(0, [(0, HashRange.full(), 100.0)]), START_MS, 5 * TICK_MS)
    load = load.after(at(1, [(1, left, 80.0), (2, right, None)]), START_MS + TICK_MS, 5 * TICK_MS)
    assert (load.of(left), load.of(right)) == (Rates(80, 800), Rates(50, 500))


def test_segments_that_were_replaced_do_not_count() -> None:
    left, right = HashRange.full().split()
    split = at(0, [(0, HashRange.full(), 9.0), (1, left, 1.0), (2, right, 2.0)])
    assert [one.segment_id for one in newest(split)] == [1, 2]
    merged = [*split, *at(0, [(3, HashRange.full(), 3.0)])]
    assert [one.segment_id for one in newest(merged)] == [3]


@given(tilings(), st.data())
def test_a_layout_of_whatever_was_seen_covers_the_ring(seen: list[HashRange], data: st.DataObject) -> None:
    part = [where for where in seen if data.draw(st.booleans())]
    layout = initial_layout(at(0, [(n, where, 1.0) for n, where in enumerate(part)]), START_MS)
    assert set(part) <= {one.hash_range for one in layout.active}
    assert sum(one.hash_range.size for one in layout.active) == RING_SIZE


@given(st.integers(1, 4), st.integers(0, 12), st.lists(st.tuples(*[st.floats(0, 2000)] * 4), min_size=20, max_size=60))
def test_a_backtest_stays_within_the_bounds_of_its_policy_and_keeps_the_load(
    least: int, more: int, loads: list[tuple[float, ...]]
) -> None:
    config = replace(QUICK, min_segments=least, max_segments=least + more, split_cooldown_seconds=0)
    quarters = HashRange.full().split(into=4)
    begins = initial_layout(at(0, [(n, quarters[n], 0.0) for n in range(4)]), START_MS)
    topic, load = ReplayedTopic(config, begins, TICK_MS), RingLoad()
    for minute, four in enumerate(loads):
        before = len(topic.layout.active)
        now = at(minute, [(n, quarters[n], four[n]) for n in range(4)])
        load = load.after(now, now[0].at_ms, TICK_MS)
        topic.tick(load, now[0].at_ms)
        after = len(topic.layout.active)
        assert after <= max(before, config.max_segments)
        assert after >= min(before, config.min_segments)
        assert sum(one.msg_rate_in for one in topic.rates(load)) == pytest.approx(sum(four))
    grown = topic.count(CreatedBy.SPLIT) - topic.count(CreatedBy.MERGE)
    assert len(topic.layout.active) == 4 + grown, "each splits into two, and merges two"


def a_day(hot: float, cold: float) -> list[RecordedSegment]:
    """Three hours of one segment: hot in the second."""
    return [
        one for minute in range(180) for one in at(minute, [(0, HashRange.full(), hot if 60 <= minute < 120 else cold)])
    ]


def test_a_tide_is_followed_and_what_another_policy_would_have_done_stands_beside_it() -> None:
    lower = replace(QUICK, split=Rates(50, 1e9, 1e9, 1e9))
    found = {one["policy"]: one for one in replay(a_day(180.0, 5.0), {PRESENT: QUICK, CANDIDATE: lower}, TICK_MS)}
    recorded, present, candidate = found[RECORDED], found[PRESENT], found[CANDIDATE]
    assert (recorded["splits"], recorded["peak_segments"], recorded["minutes_above_split"]) == (None, 1, 60)
    assert (present["splits"], present["merges"], present["peak_segments"]) == (1, 1, 2)
    assert present["minutes_above_split"] == 1, "the split comes after the first minute, and halves it"
    assert (candidate["splits"], candidate["merges"], candidate["peak_segments"]) == (3, 3, 4)
    assert candidate["minutes_above_split"] > candidate["minutes_above_present_split"] == 1
    assert candidate["segment_minutes"] > present["segment_minutes"] > recorded["segment_minutes"] == 180
    segments = {point["at_ms"]: point["segments"] for point in candidate["timeline"]}
    assert segments[START_MS] == 1
    assert segments[START_MS + 100 * TICK_MS] == 4
    assert segments[START_MS + 179 * TICK_MS] == 1


def test_after_a_gap_nothing_counts_as_cold_and_nothing_is_decided_in_it() -> None:
    left, right = HashRange.full().split()
    rows = [one for minute in (0, 1, 2, 30, 31) for one in at(minute, [(0, left, 1.0), (1, right, 1.0)])]
    config = replace(QUICK, merge_window_seconds=180)
    (_, present) = replay(rows, {PRESENT: config}, TICK_MS)
    assert (present["minutes"], present["merges"]) == (5, 0)
    rows += [one for minute in range(32, 36) for one in at(minute, [(0, left, 1.0), (1, right, 1.0)])]
    (_, present) = replay(rows, {PRESENT: config}, TICK_MS)
    assert present["merges"] == 1


def test_what_is_unknown_is_neither_split_nor_merged_and_is_told() -> None:
    left, right = HashRange.full().split()
    rows = [one for minute in range(30) for one in at(minute, [(0, left, 1.0), (1, right, None)])]
    (_, present) = replay(rows, {PRESENT: QUICK}, TICK_MS)
    assert (present["splits"], present["merges"], present["minutes_unknown"]) == (0, 0, 30)


def test_policies_are_read_as_they_are_written_for_kubernetes(tmp_path: Path) -> None:
    wide, narrow = tmp_path / "wide.yaml", tmp_path / "narrow.json"
    wide.write_text(
        "apiVersion: scalabletopics.io/v1alpha1\nkind: SegmentAutoScalePolicy\nmetadata: {name: all}\n"
        "spec:\n  target: {scope: Cluster}\n  maxSegments: 32\n  split: {msgRateIn: 20k, bytesRateIn: 50Mi}\n"
        "  merge: {window: 10m}\n"
    )
    narrow.write_text('{"maxSegments": 16}')
    config = read_policies([str(wide), str(narrow)]).config
    assert config is not None
    assert (config.max_segments, config.split.msg_rate_in, config.split.bytes_rate_in) == (16, 20_000, 52_428_800)
    assert config.merge_window_seconds == 600
    assert read_policies([]).config == AutoScaleConfig()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("split: {msgRateOn: 3}", r"split\.msgRateOn is no knob"),
        ("splits: {msgRateIn: 3}", "splits is no knob"),
        ("split: {msgRateIn: many}", r"split\.msgRateIn: 'many' is not an amount"),
        ("split: {msgRateIn: 5}", r"merge\.msgRateIn must be lower than split\.msgRateIn"),
        ("enabled: 1", "enabled: 1 is neither true nor false"),
        ("maxSegments: true", "maxSegments: True is no whole number"),
        ("split: 3", "split is no knob"),
        ("{}\n---\n{}", "it holds 2 documents"),
        ("kind: SegmentAutoScalePolicy", "spec is missing"),
        ("a: [", "while parsing"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, match: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(PolicyUnreadable, match=match):
        read_policies([str(file)])


def test_a_policy_file_that_is_not_there_is_named() -> None:
    with pytest.raises(PolicyUnreadable, match="No such file"):
        read_policies(["/nowhere/policy.yaml"])
