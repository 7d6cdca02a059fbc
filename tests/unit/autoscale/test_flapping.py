"""Nothing flaps, whatever a load does around a threshold: the matrix on the virtual clock (DESIGN §8, hazard B7)."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decision import Merge, Split
from scalable_topics_operator.autoscale.load import Metric, Rates
from tests.unit.autoscale.virtual_topic import PARTS, TICK_MS, VirtualTopic

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
