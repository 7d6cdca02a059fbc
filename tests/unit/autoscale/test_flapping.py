"""Nothing flaps, whatever a load does around a threshold: the matrix on the virtual clock (DESIGN §8, hazard B7)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decision import Merge, Rebucket, Split
from scalable_topics_operator.autoscale.load import Metric, Rates
from tests.unit.autoscale.virtual_topic import PARTS, TICK_MS, VirtualTopic, still

HOURS = 3_600_000 // TICK_MS
CONFIG = AutoScaleConfig()


def even(metric: Metric, at: Callable[[int], float]) -> Callable[[int], list[Rates]]:
    """A load of one metric, spread evenly over the ring, by time."""
    last: tuple[int, list[Rates]] | None = None

    def load(now_ms: int) -> list[Rates]:
        nonlocal last
        if last is None or last[0] != now_ms:
            values = [0.0] * 4
            values[list(Metric).index(metric)] = at(now_ms) / PARTS
            last = now_ms, [Rates(*values)] * PARTS
        return last[1]

    return load


def bound(metric: Metric, config_rates: Rates) -> float:
    return dict(config_rates.by_metric())[metric]


def turns(topic: VirtualTopic) -> int:
    """How often it changed its mind between growing and shrinking."""
    kinds = [type(action) for _, action in topic.actions if isinstance(action, Split | Merge)]
    return sum(one is not other for one, other in pairwise(kinds))


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("edge", ["split", "merge", "between"])
@pytest.mark.parametrize("metric", Metric)
def test_noise_around_a_threshold_makes_nothing_flap(metric: Metric, edge: str, noise: float) -> None:
    split, merge = bound(metric, CONFIG.split), bound(metric, CONFIG.merge)
    # Of the whole topic: at the split threshold with one segment, at the merge threshold with four.
    level = {"split": split, "merge": 4 * merge, "between": (split + merge) / 2}[edge]
    draw = random.Random(f"{metric}{edge}{noise}")
    topic = VirtualTopic(CONFIG, even(metric, lambda _: level * draw.uniform(1 - noise, 1 + noise)))
    topic.run(8 * HOURS)
    assert turns(topic) <= 1, topic.actions
    assert len(topic.actions) <= 4


@pytest.mark.parametrize("metric", Metric)
def test_a_step_up_and_down_again_is_followed_once_each_way(metric: Metric) -> None:
    """Hazards C51 and C52."""
    split = bound(metric, CONFIG.split)
    high_until_ms = 6 * HOURS * TICK_MS
    topic = VirtualTopic(CONFIG, even(metric, lambda now_ms: 16 * split * 0.9 if now_ms < high_until_ms else 0.0))
    topic.run(6 * HOURS)
    assert len(topic.layout.active) == 16
    topic.run(24 * HOURS)
    assert len(topic.layout.active) == 1
    assert turns(topic) == 1


def test_R36_a_daily_tide_is_followed_for_weeks() -> None:
    """Ten merges in an ancestry would have ended it for good."""
    split = CONFIG.split.msg_rate_in
    day_ms = 24 * HOURS * TICK_MS
    topic = VirtualTopic(
        CONFIG, even(Metric.MSG_RATE_IN, lambda now_ms: 3.5 * split if now_ms % day_ms < day_ms // 2 else 0.0)
    )
    for _ in range(14):
        topic.run(12 * HOURS - 1)
        assert len(topic.layout.active) == 4
        topic.run(12 * HOURS)
        assert len(topic.layout.active) == 1, topic.last
        topic.run(1)


@pytest.mark.parametrize("fanout", [2, 8])
def test_a_ramp_is_followed_within_its_cooldowns(fanout: int) -> None:
    """×16 in one step: one split a minute by halves, or straight into eighths."""
    config = AutoScaleConfig(max_fanout=fanout)
    topic = VirtualTopic(config, even(Metric.MSG_RATE_IN, lambda _: 15.5 * config.split.msg_rate_in))
    topic.until_still(quiet_ticks=10, most_ticks=200)
    assert len(topic.layout.active) == 16
    took_minutes = topic.actions[-1][0] // 60_000
    assert took_minutes <= (15 if fanout == 2 else 9)


NO_LOAD = still(Rates(), [1.0] * PARTS)


def rebuckets(topic: VirtualTopic) -> list[tuple[int, int]]:
    """When segments got other entry buckets, and how many."""
    return [(at_ms, action.buckets) for at_ms, action in topic.actions if isinstance(action, Rebucket)]


def several(counts: Callable[[int], int]) -> Callable[[int], dict[str, int]]:
    """Consumers of one subscription, by time."""
    return lambda now_ms: {"s": counts(now_ms)}


def test_entry_buckets_follow_consumers_up_at_once_and_down_after_the_window() -> None:
    hour_ms = 60 * TICK_MS
    topic = VirtualTopic(CONFIG, NO_LOAD, several(lambda now_ms: 40 if hour_ms <= now_ms < 3 * hour_ms else 3))
    topic.run(6 * HOURS)
    (up_ms, many), (down_ms, few) = rebuckets(topic)
    assert (up_ms, many) == (hour_ms, 64)
    window_ms = CONFIG.rebucket_down_window_seconds * 1000
    assert few == CONFIG.bucket_budget
    assert window_ms <= down_ms - 3 * hour_ms <= window_ms + TICK_MS


@pytest.mark.parametrize("period", [1, 3, 9])
def test_consumers_that_come_and_go_within_the_window_cost_one_rollover(period: int) -> None:
    topic = VirtualTopic(CONFIG, NO_LOAD, several(lambda now_ms: 20 if now_ms // TICK_MS // period % 2 else 1))
    topic.run(8 * HOURS)
    assert [many for _, many in rebuckets(topic)] == [32]


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), budget=st.sampled_from([1, 4, 6]), restart=st.sampled_from([0, 7, 25]))
def test_whatever_consumers_do_buckets_never_go_down_sooner_than_the_window_after_anything(
    seed: int, budget: int, restart: int
) -> None:
    """Hazard A2-26434a: not after a change of leader either, who at first knows of no consumers at all."""
    draw = random.Random(seed)
    count = 0

    def walk(_: int) -> dict[str, int]:
        nonlocal count
        count = max(0, count + draw.choice([-9, -2, -1, 0, 0, 0, 1, 2, 9]))
        return {"s": count}

    config = replace(CONFIG, bucket_budget=budget)
    # A sealed segment is pruned, and its sum with it, so that all there is is compared.
    topic = VirtualTopic(config, NO_LOAD, walk, SegmentLayout.initial(2, bucket_budget=budget))
    seen: list[tuple[int, int]] = []
    changed_ms = 0
    for number in range(4 * HOURS):
        if restart and number % restart == restart - 1:
            topic.restart()
            seen.clear()
        before = sum(one.buckets for one in topic.layout.active)
        action = topic.tick().action
        seen.append((topic.now_ms, count))
        after = sum(one.buckets for one in topic.layout.active)
        if after < before:
            window_ms = topic.now_ms - config.rebucket_down_window_seconds * 1000
            assert changed_ms <= window_ms
            assert seen[0][0] <= window_ms, "nobody knows how many there were before"
            assert after >= max(consumers for at_ms, consumers in seen if at_ms >= window_ms)
            assert after >= budget
        if action is not None:
            changed_ms = topic.now_ms
