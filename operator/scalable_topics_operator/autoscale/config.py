"""The knobs of automatic changes, resolved and checked (pip-483 and pip-486 configuration, R36, R37). Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scalable_topics.layout import DEFAULT_BUCKET_BUDGET, MAX_BUCKETS
from scalable_topics_operator.autoscale.load import Rates

SECONDS_MS = 1000
MOST_SEGMENTS = 256


class ConfigError(ValueError):
    """Knobs that contradict each other; the message names them."""


@dataclass(frozen=True, slots=True)
class AutoScaleConfig:
    """All knobs of one topic. Defaults are those of the peer; durations in seconds, rates a segment and second.

    Args:
        enabled: whether anything is changed automatically.
        min_segments: active segments at which nothing is merged any more, 1 or more.
        max_segments: active segments at which nothing is split any more.
        max_dag_depth: merges in an ancestry at which a segment is not merged again, 0 or more.
        depth_recovery_seconds: time after a lineage's last merge in which one unit of that depth is forgiven (R36).
        split_cooldown_seconds: least time between two splits of a topic.
        merge_cooldown_seconds: least time between two merges of a topic.
        rebucket_cooldown_seconds: least time between two bucket changes of a topic.
        merge_window_seconds: how long both of a pair must have been cold.
        max_fanout: into how many parts one split may go, 2 or more.
        split: a segment above any of these is split.
        merge: a segment is cold while it is below all of these; 0 is never.
        max_buckets_per_segment: most entry buckets of one segment.
        split_vs_rebucket_min_msg_rate_in: of the busiest segment; below it consumers bring buckets, not a split.
        rebucket_down_window_seconds: how long fewer entry buckets must have been enough before there are fewer.
        bucket_budget: entry buckets of the topic, which its segments share.
        drain_fan_out: whether several consumers may share a sealed segment until it is drained; nothing for decisions.

    Raises:
        ConfigError: knobs out of range, or that contradict each other.
    """

    enabled: bool = True
    min_segments: int = 1
    max_segments: int = 64
    max_dag_depth: int = 10
    depth_recovery_seconds: float = 3600.0
    split_cooldown_seconds: float = 60.0
    merge_cooldown_seconds: float = 300.0
    rebucket_cooldown_seconds: float = 60.0
    merge_window_seconds: float = 300.0
    max_fanout: int = 2
    split: Rates = field(default_factory=lambda: Rates(10_000.0, 50e6, 50_000.0, 250e6))
    merge: Rates = field(default_factory=lambda: Rates(1_000.0, 5e6, 5_000.0, 25e6))
    max_buckets_per_segment: int = MAX_BUCKETS
    split_vs_rebucket_min_msg_rate_in: float = 1_000.0
    rebucket_down_window_seconds: float = 600.0
    bucket_budget: int = DEFAULT_BUCKET_BUDGET
    drain_fan_out: bool = True

    def __post_init__(self) -> None:
        _require(self.min_segments >= 1, "minSegments must be 1 or more")
        _require(self.min_segments <= self.max_segments, "minSegments must not be greater than maxSegments")
        _require(self.max_segments <= MOST_SEGMENTS, f"maxSegments must be {MOST_SEGMENTS} or less")
        _require(self.max_dag_depth >= 0, "maxDagDepth must be 0 or more")
        _require(self.max_fanout >= 2, "split.maxFanout must be 2 or more")
        _require(1 <= self.max_buckets_per_segment <= MAX_BUCKETS, f"rebucket.maxPerSegment must be 1..{MAX_BUCKETS}")
        _require(1 <= self.bucket_budget <= MAX_BUCKETS, f"rebucket.budget must be 1..{MAX_BUCKETS}")
        for name, seconds in (
            ("depthRecovery", self.depth_recovery_seconds),
            ("split.cooldown", self.split_cooldown_seconds),
            ("merge.cooldown", self.merge_cooldown_seconds),
            ("rebucket.cooldown", self.rebucket_cooldown_seconds),
            ("merge.window", self.merge_window_seconds),
            ("rebucket.downWindow", self.rebucket_down_window_seconds),
            ("rebucket.splitVsRebucketMinMsgRateIn", self.split_vs_rebucket_min_msg_rate_in),
        ):
            _require(math.isfinite(seconds) and seconds >= 0, f"{name} must be 0 or more")
        for (metric, split), (_, merge) in zip(self.split.by_metric(), self.merge.by_metric(), strict=True):
            _require(split > 0, f"split.{metric} must be greater than 0")
            _require(merge >= 0, f"merge.{metric} must be 0 or more")
            _require(
                merge < split, f"merge.{metric} must be lower than split.{metric}, or merged segments would split again"
            )


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ConfigError(what)
