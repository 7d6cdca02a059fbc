"""The decision keeps its bounds, never flaps and always says why (pip-483, pip-486, DESIGN §8, R30, R36)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig, ConfigError
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.decision import Merge, Reason, Rebucket, Rule, Split
from scalable_topics_operator.autoscale.demand import Demand
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from tests.unit.autoscale.virtual_topic import PARTS, TICK_MS, VirtualTopic, still

NOW = 1_700_000_000_000
LONG_AGO = NOW - 10_000_000
CONFIG = AutoScaleConfig()
# Longer than any cool-down, window or unit of forgiven depth.
FORGIVING_TICKS = int(CONFIG.depth_recovery_seconds * 1000 / TICK_MS) + 1

_SHARES = st.sampled_from([0.0, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0, 40.0])
rates = st.tuples(_SHARES, _SHARES, _SHARES, _SHARES).map(
    lambda shares: Rates(*(share * bound for share, bound in zip(shares, CONFIG.split.values, strict=True)))
)
wild = st.builds(Rates, *(st.floats(allow_nan=True, allow_infinity=True) for _ in range(4)))
configs = st.builds(
    AutoScaleConfig,
    max_segments=st.integers(2, 64),
    max_fanout=st.sampled_from([2, 4, 8]),
    max_dag_depth=st.integers(0, 10),
    split_vs_rebucket_min_msg_rate_in=st.sampled_from([0.0, 1000.0]),
    bucket_budget=st.sampled_from([1, 3, 4, 6, 64]),
    max_buckets_per_segment=st.sampled_from([1, 4, 1024]),
)
weights = st.lists(st.sampled_from([0.0, 0.1, 1.0, 1.0, 3.0, 10.0]), min_size=PARTS, max_size=PARTS)
consumer_counts = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 40))


def situation(layout: SegmentLayout, loads: dict[int, Rates], **changes: object) -> Situation:
    records = {key: SegmentLoad(found, LONG_AGO) for key, found in loads.items()}
    return replace(Situation(layout, records, {}, CONFIG, Clocks(), NOW), **changes)  # type: ignore[arg-type]


@given(
    count=st.integers(1, 16),
    loads=st.dictionaries(st.integers(0, 20), wild, max_size=16),
    consumers=consumer_counts,
    config=configs,
    clocks=st.builds(Clocks, *(st.none() | st.integers(NOW - 500_000, NOW + 500_000) for _ in range(3))),
)
def test_it_is_total_and_keeps_its_bounds(
    count: int, loads: dict[int, Rates], consumers: dict[str, int], config: AutoScaleConfig, clocks: Clocks
) -> None:
    """Hazard C48."""
    layout = SegmentLayout.initial(min(count, config.max_segments))
    decision = decide(situation(layout, loads, consumers=consumers, config=config, clocks=clocks))
    fired = [finding for finding in decision.findings if finding.fired]
    assert len(fired) == (decision.action is not None)
    assert all(finding.why for finding in decision.findings)
    match decision.action:
        case Split(segment_id, into, _):
            after = layout.split(segment_id, now_ms=NOW, into=into)
            assert len(after.active) <= config.max_segments
            assert into <= config.max_fanout
        case Merge(ids, _, _):
            assert len(layout.merge(ids, now_ms=NOW).active) >= config.min_segments
        case Rebucket(ids, buckets, _):
            assert buckets <= config.max_buckets_per_segment
            # Without having watched consumers for a while nothing gets fewer.
            assert all(layout.segment(one).buckets < buckets for one in ids)


@settings(max_examples=60)
@given(total=rates, spread=weights, consumers=consumer_counts, config=configs, start=st.integers(1, 16))
def test_under_constant_load_it_comes_to_rest_and_never_undoes_what_it_did(
    total: Rates, spread: list[float], consumers: dict[str, int], config: AutoScaleConfig, start: int
) -> None:
    """Hazard B10."""
    topic = VirtualTopic(
        config, still(total, spread), consumers, SegmentLayout.initial(min(start, config.max_segments))
    )
    topic.until_still(quiet_ticks=FORGIVING_TICKS, most_ticks=2000)
    assert len(topic.shapes) == len(set(topic.shapes)), "the same segments came twice: it would go on for ever"


@settings(max_examples=30)
@given(
    total=rates,
    spread=weights,
    consumers=consumer_counts,
    config=configs,
    gaps=st.lists(st.integers(1, 40), max_size=9),
)
def test_changes_of_leader_make_nothing_be_done_twice_or_undone(
    total: Rates, spread: list[float], consumers: dict[str, int], config: AutoScaleConfig, gaps: list[int]
) -> None:
    """Hazard A2-26434a: what another leader does not know, it waits for."""
    topic = VirtualTopic(config, still(total, spread), consumers)
    for gap in gaps:
        topic.run(gap)
        topic.restart()
    topic.until_still(quiet_ticks=FORGIVING_TICKS, most_ticks=2000)
    assert len(topic.shapes) == len(set(topic.shapes)), "the same segments came twice: it would go on for ever"


@given(
    count=st.integers(1, 8),
    loads=st.dictionaries(st.integers(0, 7), rates, min_size=1),
    factor=st.floats(1.0, 8.0),
    config=configs,
    clocks=st.builds(Clocks, *(st.none() | st.integers(NOW - 500_000, NOW) for _ in range(3))),
)
def test_more_load_never_turns_a_split_into_less_nor_anything_into_a_merge(
    count: int, loads: dict[int, Rates], factor: float, config: AutoScaleConfig, clocks: Clocks
) -> None:
    layout = SegmentLayout.initial(min(count, config.max_segments))
    known = {one.segment_id: loads.get(one.segment_id, Rates()) for one in layout.active}
    before = decide(situation(layout, known, config=config, clocks=clocks)).action
    more = {segment_id: found.times(factor) for segment_id, found in known.items()}
    after = decide(situation(layout, more, config=config, clocks=clocks)).action
    if isinstance(before, Split):
        assert isinstance(after, Split)
        assert after.into >= before.into
    if isinstance(after, Merge):
        assert isinstance(before, Merge)


# Straight into many parts, and at maxSegments, it depends on the way which of the hot ones get the room there is.
roomy = st.builds(AutoScaleConfig, max_segments=st.just(256), max_dag_depth=st.integers(0, 10))
moderate = st.tuples(*(st.sampled_from([0.0, 0.5, 0.9, 1.1, 2.0, 4.0]) for _ in range(4))).map(
    lambda shares: Rates(*(share * bound for share, bound in zip(shares, CONFIG.split.values, strict=True)))
)


@settings(max_examples=60)
@given(total=moderate, spread=weights, factor=st.floats(1.0, 4.0), config=roomy)
def test_more_load_never_means_fewer_segments(
    total: Rates, spread: list[float], factor: float, config: AutoScaleConfig
) -> None:
    active = []
    for load in (total, total.times(factor)):
        topic = VirtualTopic(config, still(load, spread))
        topic.until_still(quiet_ticks=FORGIVING_TICKS, most_ticks=2000)
        active.append(len(topic.layout.active))
    assert active[0] <= active[1]


@pytest.mark.parametrize(("ratio", "fanout", "parts"), [(1.01, 8, 2), (3.2, 8, 4), (30.0, 8, 8), (30.0, 2, 2)])
def test_a_split_may_go_straight_into_many_parts(ratio: float, fanout: int, parts: int) -> None:
    loads = {0: Rates(10_000 * ratio)}
    config = replace(CONFIG, max_fanout=fanout)
    action = decide(situation(SegmentLayout.initial(1), loads, config=config)).action
    assert isinstance(action, Split)
    assert action.into == parts


def test_stale_load_is_never_acted_on() -> None:
    loads = {0: Rates(1e9), 1: Rates()}
    decision = decide(situation(SegmentLayout.initial(2), loads, consumers={"s": 9}, stale="broker b1 is missing"))
    assert decision.action is None
    assert {finding.rule for finding in decision.findings} == {Rule.LOAD_FRESH, Rule.CONSUMER_SPLIT}
    assert decision.code == "load-stale"


def test_a_segment_of_one_hash_is_never_chosen() -> None:
    """Hazard B14."""
    layout = SegmentLayout.initial(1)
    while layout.active[0].hash_range.size > 1:
        layout = layout.split(layout.active[0].segment_id, now_ms=0)
    first = layout.active[0]
    decision = decide(situation(layout, {first.segment_id: Rates(1e6)}, consumers={"s": 60}))
    assert not isinstance(decision.action, Split) or decision.action.segment_id != first.segment_id


def test_equals_go_to_the_lowest_id() -> None:
    """Hazard B13."""
    loads = {key: Rates(20_000) for key in range(4)}
    action = decide(situation(SegmentLayout.initial(4), loads)).action
    assert isinstance(action, Split)
    assert action.segment_id == 0
    cold = decide(situation(SegmentLayout.initial(4), {key: Rates() for key in range(4)})).action
    assert cold == Merge((0, 1))


def test_messages_and_bytes_are_compared_with_their_thresholds_and_not_with_each_other() -> None:
    """Hazard B13: what has more bytes than the others have messages is nearer to nothing by that."""
    loads = {0: Rates(800.0), 1: Rates(800.0), 2: Rates(0.0, 1e6), 3: Rates(0.0, 1e6)}
    assert decide(situation(SegmentLayout.initial(4), loads)).action == Merge((2, 3)), "the coldest pair"
    loads = {0: Rates(20_000.0), 1: Rates(0.0, 60e6)}
    action = decide(situation(SegmentLayout.initial(2), loads)).action
    assert isinstance(action, Split)
    assert action.segment_id == 0, "the hottest segment"


@pytest.mark.parametrize(("consumers", "code"), [(8, "cold"), (9, "needs-buckets"), (12, "needs-buckets")])
def test_a_merge_takes_no_buckets_that_consumers_need(consumers: int, code: str) -> None:
    """Hazard A2-26434e: of the 8 that two segments have, what comes out keeps no more than one may have."""
    layout = SegmentLayout.initial(3, bucket_budget=12)
    assert [one.buckets for one in layout.active] == [4, 4, 4]
    config = replace(CONFIG, max_buckets_per_segment=4)
    loads = {key: Rates() for key in range(3)}
    decision = decide(situation(layout, loads, consumers={"s": consumers}, config=config))
    assert next(finding.code for finding in decision.findings if finding.rule is Rule.MERGE) == code
    assert (decision.action is None) == (code != "cold")


def idle(buckets: int, peak: int = 0, **changes: object) -> Situation:
    """One segment of so many buckets, whose consumers have been watched for long enough."""
    layout = SegmentLayout.initial(1, bucket_budget=buckets)
    window = CONFIG.rebucket_down_window_seconds
    demand = Demand(window, LONG_AGO, ((NOW - 1, peak),))
    return situation(layout, {0: Rates()}, demand=demand, **changes)


def test_what_consumers_no_longer_need_goes_back_to_the_budget() -> None:
    decision = decide(idle(64, 5))
    assert decision.action == Rebucket((0,), 8, Reason.IDLE_BUCKETS)
    assert decision.findings[-1].why == (
        "64 entry buckets in all, rebucket.budget is 4, and there were 5 consumers of one subscription at most for "
        "600 s; 8 in each of 1 segments"
    )
    assert decide(idle(64, 3)).action == Rebucket((0,), 4, Reason.IDLE_BUCKETS)
    assert decide(idle(64, 40)).action is None
    assert decide(idle(64, 3, consumers={"a": 9, "b": 2})).action == Rebucket((0,), 16, Reason.IDLE_BUCKETS)
    budget = replace(CONFIG, bucket_budget=64)
    assert decide(idle(64, 3, config=budget)).action is None


def test_buckets_that_rounding_lost_come_back() -> None:
    """Hazard B11."""
    layout = SegmentLayout.initial(1, bucket_budget=3).split(0, now_ms=0).merge([1, 2], now_ms=0)
    assert [one.buckets for one in layout.active] == [2]
    config = replace(CONFIG, bucket_budget=3)
    found = replace(idle(3, config=config), layout=layout, loads={3: SegmentLoad(Rates(), LONG_AGO)})
    assert decide(found).action == Rebucket((3,), 3, Reason.BUCKET_DRIFT)


@pytest.mark.parametrize("kind", ["split_at_ms", "merge_at_ms", "rebucket_at_ms"])
def test_a_rollover_for_order_waits_until_nothing_else_was_done_for_the_window(kind: str) -> None:
    """Hazard A2-26434a: the times are in the record, so that no other leader begins at once."""
    soon = decide(idle(64, clocks=Clocks(**{kind: NOW - 599_000})))
    assert (soon.action, soon.findings[-1].code) == (None, "idle-window")
    assert decide(idle(64, clocks=Clocks(**{kind: NOW - 600_000}))).action is not None


def test_the_cooldown_of_rebuckets_holds_rollovers_for_order_back_too() -> None:
    config = replace(CONFIG, rebucket_cooldown_seconds=900.0)
    decision = decide(idle(64, config=config, clocks=Clocks(rebucket_at_ms=NOW - 800_000)))
    assert (decision.action, decision.findings[-1].code) == (None, "rebucket-cooldown")
    assert decision.look_again_at_ms == NOW + 100_000


def test_sealed_segments_that_pile_up_leave_room_for_what_is_urgent() -> None:
    decision = decide(idle(64, spare_records=0))
    assert (decision.action, decision.findings[-1].code) == (None, "layout-filling")
    wide = SegmentLayout.initial(4, bucket_budget=64)
    loads = {one.segment_id: SegmentLoad(Rates(1e4), LONG_AGO) for one in wide.active}
    some = decide(replace(idle(64, spare_records=3), layout=wide, loads=loads))
    assert some.action == Rebucket((0, 1, 2), 1, Reason.IDLE_BUCKETS)


def test_who_has_just_begun_to_watch_consumers_takes_no_buckets_from_them() -> None:
    decision = decide(replace(idle(64), demand=Demand()))
    assert (decision.action, decision.findings[-1].code) == (None, "idle-window")
    assert decide(idle(64, stale="broker b1 is missing")).action is None


def test_R36_depth_is_forgiven_with_time() -> None:
    layout = SegmentLayout.initial(2)
    for _ in range(3):
        layout = layout.merge([one.segment_id for one in layout.active], now_ms=NOW)
        layout = layout.split(layout.active[0].segment_id, now_ms=NOW)
    config = replace(CONFIG, max_dag_depth=2, depth_recovery_seconds=3600.0)
    loads = {one.segment_id: SegmentLoad(Rates(), NOW) for one in layout.active}
    at_once = Situation(layout, loads, {}, config, Clocks(), NOW + 400_000)
    assert decide(at_once).code == "at-max-depth"
    assert isinstance(decide(replace(at_once, now_ms=NOW + 2 * 3_600_000)).action, Merge)


def test_a_cooldown_says_when_to_look_again() -> None:
    """Hazard A2-26434c."""
    loads = {0: Rates(20_000)}
    decision = decide(situation(SegmentLayout.initial(1), loads, clocks=Clocks(split_at_ms=NOW - 20_000)))
    assert decision.action is None
    assert decision.look_again_at_ms == NOW + 40_000
    assert "another 40.0 s" in next(finding.why for finding in decision.findings if finding.code == "split-cooldown")


@pytest.mark.parametrize(
    "knobs",
    [
        {"min_segments": 0},
        {"min_segments": 5, "max_segments": 4},
        {"merge": Rates(10_000.0)},
        {"split": Rates(0.0, 1.0, 1.0, 1.0)},
        {"split_cooldown_seconds": math.nan},
        {"max_fanout": 1},
    ],
)
def test_knobs_that_contradict_each_other_are_refused(knobs: dict[str, object]) -> None:
    """Hazard A2-25980e."""
    with pytest.raises(ConfigError, match=r"[a-zA-Z.]+ must"):
        AutoScaleConfig(**knobs)  # type: ignore[arg-type]
