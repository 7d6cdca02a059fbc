"""What a topic's load suggests for its segments and thresholds, each with the numbers it comes from. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.autoscale.config import MOST_SEGMENTS
from scalable_topics_operator.autoscale.load import Metric
from segment_load.change_filter import RATES
from segment_load.svg_charts import amount

FILL = 0.7
"""Up to which part of a split threshold a segment is filled: what is above is for load that rises, and for skew."""
_OFTEN_HOT = 0.05
_NEVER_NEAR = 0.5
_MARGIN = 1.2
_TIDE = 4.0
_SKEWED, _UNEQUAL = 2.0, 0.4


@dataclass(frozen=True, slots=True)
class Advice:
    """What is suggested for one topic.

    Args:
        initial_segments: to begin with, 1 or more.
        why_initial: the numbers behind it.
        thresholds: what to think of thresholds and bounds, a sentence or two each.
    """

    initial_segments: int
    why_initial: str
    thresholds: tuple[str, ...]


def advise(topic: Mapping[str, Any]) -> Advice | None:
    """What to make of a row of `topic_summary`; None where its load was never known."""
    if topic["need_p99"] is None:
        return None
    need, skew = topic["need_p99"], max(1.0, topic["skew"] or 1.0)
    wanted = need * skew / FILL
    segments = min(MOST_SEGMENTS, max(1, math.ceil(wanted - 1e-9)))
    metric, rate, split = _tightest(topic)
    spread = f"the busiest has {skew:.2g} times the mean" if topic["skew"] else "how it is spread is not known"
    why = (
        f"99 % of the time the topic needs {need:.2g} segments' worth or less ({metric}: {amount(rate)}/s of "
        f"{amount(split)}/s each); {spread}; filled to {100 * FILL:.0f} % that is "
        f"{need:.2g} * {skew:.2g} / {FILL:g} = {wanted:.2g}"
    )
    return Advice(segments, why, tuple(_on_thresholds(topic)) or ("The thresholds fit what was seen.",))


def _on_thresholds(topic: Mapping[str, Any]) -> list[str]:
    found = []
    metric, busiest, split = _busiest(topic)
    hot, peak = topic["hot_share"], topic["load_peak"]
    if hot >= _OFTEN_HOT:
        found.append(
            f"Above a split threshold for {100 * hot:.0f} % of the time: splits come too late or are held back. Raise "
            f"maxSegments or split.maxFanout, or lower split.cooldown; if brokers carry it well, raise split.{metric} "
            f"from {amount(split)} to {amount(busiest * _MARGIN)} (99th percentile of the busiest segment, "
            f"{amount(busiest)}, and {100 * (_MARGIN - 1):.0f} % more)."
        )
    elif peak < _NEVER_NEAR:
        found.append(
            f"The busiest segment never had more than {100 * peak:.2g} % of a split threshold: load alone does not "
            f"split this topic. If brokers carry less in one than {amount(split)} of split.{metric}, lower that."
        )
    low, high = topic["need_p05"], topic["need_p99"]
    if high >= 1 and high >= _TIDE * low:
        least = max(1, math.ceil(high / 2))
        found.append(
            f"The load goes between {low:.2g} and {high:.2g} segments' worth (5th and 99th percentile): each tide "
            f"splits and merges. minSegments of {least}, half of the upper, spares part of that; merge.window longer "
            f"than the ebb spares all."
        )
    skew, gini = topic["skew"], topic["gini"]
    if skew is not None and (skew >= _SKEWED or gini >= _UNEQUAL):
        found.append(
            f"Segments are loaded unequally: the busiest has {skew:.2g} times the mean, Gini coefficient {gini:.2f}. "
            f"Some keys are heavy, or ranges are of different widths; a key by itself cannot be split."
        )
    return found


def _tightest(topic: Mapping[str, Any]) -> tuple[Metric, float, float]:
    """The rate of the whole topic that is most of its threshold."""
    return _most(topic, "{}_p99")


def _busiest(topic: Mapping[str, Any]) -> tuple[Metric, float, float]:
    """The same of its busiest segment."""
    return _most(topic, "{}_busiest_p99")


def _most(topic: Mapping[str, Any], form: str) -> tuple[Metric, float, float]:
    found = [
        (metric, topic[form.format(rate)] or 0.0, split)
        for metric, rate, split in zip(Metric, RATES, topic["split"], strict=True)
    ]
    return max(found, key=lambda one: one[1] / one[2] if one[2] else 0.0)
