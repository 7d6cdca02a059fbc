"""Overrides of the auto-scale policy as brokers' REST has them (pip-483), and the policy that comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from scalable_topics.layout import TopicName


@dataclass(frozen=True, slots=True)
class AutoScalePolicy:
    """An override; what is None is left to the levels below.

    Rates are of one segment, in messages or bytes a second; docs/policies.md says what each knob does.

    Args:
        enabled: whether topics scale themselves.
        min_segments: active segments that merges leave at least.
        max_segments: active segments that splits make at most.
        max_dag_depth: merges in the ancestry of a segment at most.
        depth_recovery_seconds: how long a segment must live before it may be merged deeper.
        split_cooldown_seconds: between two automatic splits.
        split_max_fanout: parts of one split at most.
        split_msg_rate_in_threshold: messages in above which a segment is split.
        split_bytes_rate_in_threshold: bytes in above which a segment is split.
        split_msg_rate_out_threshold: messages out above which a segment is split.
        split_bytes_rate_out_threshold: bytes out above which a segment is split.
        merge_cooldown_seconds: between two automatic merges.
        merge_window_seconds: how long segments must have been cold before they are merged.
        merge_msg_rate_in_threshold: messages in below which a segment is cold.
        merge_bytes_rate_in_threshold: bytes in below which a segment is cold.
        merge_msg_rate_out_threshold: messages out below which a segment is cold.
        merge_bytes_rate_out_threshold: bytes out below which a segment is cold.
        rebucket_cooldown_seconds: between two automatic rebuckets.
        entry_bucket_max_per_segment: entry buckets of a segment at most.
        split_vs_rebucket_min_msg_rate_in_threshold: messages in from which a split is preferred to a rebucket.
        rebucket_down_window_seconds: how long fewer entry buckets must have been enough before there are fewer.
        entry_bucket_budget: entry buckets that the segments of a topic share.
        rebucket_drain_fan_out: whether consumers share the entry buckets of a sealed segment until it is drained.
        extra: fields of later releases, as they came.
    """

    enabled: bool | None = None
    min_segments: int | None = None
    max_segments: int | None = None
    max_dag_depth: int | None = None
    depth_recovery_seconds: float | None = None
    split_cooldown_seconds: float | None = None
    split_max_fanout: int | None = None
    split_msg_rate_in_threshold: float | None = None
    split_bytes_rate_in_threshold: float | None = None
    split_msg_rate_out_threshold: float | None = None
    split_bytes_rate_out_threshold: float | None = None
    merge_cooldown_seconds: float | None = None
    merge_window_seconds: float | None = None
    merge_msg_rate_in_threshold: float | None = None
    merge_bytes_rate_in_threshold: float | None = None
    merge_msg_rate_out_threshold: float | None = None
    merge_bytes_rate_out_threshold: float | None = None
    rebucket_cooldown_seconds: float | None = None
    entry_bucket_max_per_segment: int | None = None
    split_vs_rebucket_min_msg_rate_in_threshold: float | None = None
    rebucket_down_window_seconds: float | None = None
    entry_bucket_budget: int | None = None
    rebucket_drain_fan_out: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))

    def to_json(self) -> dict[str, Any]:
        """What is set, as the REST has it."""
        known = {spelled: getattr(self, name) for spelled, name in _NAMES.items()}
        return {**self.extra, **{spelled: value for spelled, value in known.items() if value is not None}}

    @classmethod
    def from_json(cls, override: Mapping[str, Any]) -> AutoScalePolicy:
        """Read what the REST shows."""
        known = {_NAMES[spelled]: value for spelled, value in override.items() if spelled in _NAMES}
        return cls(**known, extra={spelled: value for spelled, value in override.items() if spelled not in _NAMES})


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting that applies to a topic.

    Args:
        path: of the knob in a manifest, like `split.cooldown`.
        value: of it, exact.
        unit: of the value; empty for switches and counts.
        origin: the level that gave it.
    """

    path: str
    value: bool | int | float
    unit: str
    origin: str


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """Every knob that applies to a topic.

    Args:
        topic: of the policy.
        knobs: in the order people see them.
        problem: why the knobs cannot be applied together; empty if they can.
    """

    topic: TopicName
    knobs: tuple[Knob, ...]
    problem: str = ""

    def value(self, path: str) -> bool | int | float:
        """The value of a knob. Raises KeyError if there is none of this path."""
        return {knob.path: knob.value for knob in self.knobs}[path]


def _spelled(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


_NAMES = {_spelled(one.name): one.name for one in fields(AutoScalePolicy) if one.name != "extra"}
