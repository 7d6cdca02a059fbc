"""Which knobs apply to one topic, and which policy gave each (pip-483 policy resolution, R3). Pure."""

from __future__ import annotations

import functools
import json
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scalable_topics.layout import MAX_BUCKETS
from scalable_topics_operator.autoscale.config import AutoScaleConfig, ConfigError
from scalable_topics_operator.autoscale.load import Rates

Knob = bool | int | float
Knobs = Mapping[str, Knob]

DEFAULT = "default"
"""Origin of the knobs that no policy sets."""

DRAIN_FAN_OUT = "rebucket.drainFanOut"
BUCKET_BUDGET = "rebucket.budget"


class Unit(StrEnum):
    """What a knob counts in."""

    SWITCH = "switch"
    COUNT = "count"
    SECONDS = "seconds"
    MESSAGES = "messages/s"
    BYTES = "bytes/s"


@dataclass(frozen=True, slots=True)
class KnobEntry:
    """One knob, under all of its names.

    Args:
        path: in a manifest.
        field: of `AutoScaleConfig`; with a dot, of the rates in it.
        unit: of its exact value.
        broker: the brokers' setting that it mirrors (R37); empty where they have none.
    """

    path: str
    field: str
    unit: Unit
    broker: str = ""


KNOBS: tuple[KnobEntry, ...] = (
    KnobEntry("enabled", "enabled", Unit.SWITCH, "scalableTopicAutoScaleEnabled"),
    KnobEntry("minSegments", "min_segments", Unit.COUNT, "scalableTopicMinSegments"),
    KnobEntry("maxSegments", "max_segments", Unit.COUNT, "scalableTopicMaxSegments"),
    KnobEntry("maxDagDepth", "max_dag_depth", Unit.COUNT, "scalableTopicMaxDagDepth"),
    KnobEntry("depthRecovery", "depth_recovery_seconds", Unit.SECONDS),
    KnobEntry("split.cooldown", "split_cooldown_seconds", Unit.SECONDS, "scalableTopicSplitCooldown"),
    KnobEntry("split.maxFanout", "max_fanout", Unit.COUNT),
    KnobEntry("split.msgRateIn", "split.msg_rate_in", Unit.MESSAGES, "scalableTopicSplitMsgRateInThreshold"),
    KnobEntry("split.bytesRateIn", "split.bytes_rate_in", Unit.BYTES, "scalableTopicSplitBytesRateInThreshold"),
    KnobEntry("split.msgRateOut", "split.msg_rate_out", Unit.MESSAGES, "scalableTopicSplitMsgRateOutThreshold"),
    KnobEntry("split.bytesRateOut", "split.bytes_rate_out", Unit.BYTES, "scalableTopicSplitBytesRateOutThreshold"),
    KnobEntry("merge.cooldown", "merge_cooldown_seconds", Unit.SECONDS, "scalableTopicMergeCooldown"),
    KnobEntry("merge.window", "merge_window_seconds", Unit.SECONDS, "scalableTopicMergeWindow"),
    KnobEntry("merge.msgRateIn", "merge.msg_rate_in", Unit.MESSAGES, "scalableTopicMergeMsgRateInThreshold"),
    KnobEntry("merge.bytesRateIn", "merge.bytes_rate_in", Unit.BYTES, "scalableTopicMergeBytesRateInThreshold"),
    KnobEntry("merge.msgRateOut", "merge.msg_rate_out", Unit.MESSAGES, "scalableTopicMergeMsgRateOutThreshold"),
    KnobEntry("merge.bytesRateOut", "merge.bytes_rate_out", Unit.BYTES, "scalableTopicMergeBytesRateOutThreshold"),
    KnobEntry("rebucket.cooldown", "rebucket_cooldown_seconds", Unit.SECONDS, "scalableTopicRebucketCooldown"),
    KnobEntry("rebucket.maxPerSegment", "max_buckets_per_segment", Unit.COUNT, "scalableTopicEntryBucketMaxPerSegment"),
    KnobEntry(
        "rebucket.splitVsRebucketMinMsgRateIn",
        "split_vs_rebucket_min_msg_rate_in",
        Unit.MESSAGES,
        "scalableTopicSplitVsRebucketMinMsgRateInThreshold",
    ),
    KnobEntry("rebucket.downWindow", "rebucket_down_window_seconds", Unit.SECONDS),
    KnobEntry(BUCKET_BUDGET, "bucket_budget", Unit.COUNT, "scalableTopicEntryBucketBudget"),
    KnobEntry(DRAIN_FAN_OUT, "drain_fan_out", Unit.SWITCH),
)
"""Every knob there is, in the order people see them."""

_PATHS = frozenset(entry.path for entry in KNOBS)
_WORD = re.compile(r"[A-Za-z]+(?:\.[A-Za-z]+)?")


@dataclass(frozen=True, slots=True)
class Level:
    """The knobs one policy sets.

    Args:
        origin: what people call it, such as `SegmentAutoScalePolicy acme/orders`.
        knobs: by their path in a manifest, such as `split.msgRateIn`; seconds, counts, or rates a second.
    """

    origin: str
    knobs: Knobs


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """What applies to a topic.

    Args:
        knobs: all of them, by path.
        origins: by the same paths, the origin of the level each came from.
        config: the knobs for the decision; None if they contradict each other.
        problem: which knobs do, and where they came from; empty if none do.
    """

    knobs: Knobs
    origins: Mapping[str, str]
    config: AutoScaleConfig | None
    problem: str = ""


def resolve(levels: Sequence[Level]) -> EffectivePolicy:
    """Lay the levels over each other, widest first: the most specific wins knob by knob.

    The defaults lie below all of them. Knobs that contradict each other are told of, not raised; paths that name no
    knob are left out.
    """
    changed: dict[str, Knob] = {}
    changed_by: dict[str, str] = {}
    for level in levels:
        for path in level.knobs.keys() & _PATHS:
            changed[path], changed_by[path] = level.knobs[path], level.origin
    # Very many topics may change a knob or two, each for itself: what is left is there once.
    knobs, origins = ChainMap(changed, _DEFAULTS), ChainMap(changed_by, _DEFAULT_ORIGINS)
    try:
        config = _config(tuple(knobs.values()))
    except ConfigError as error:
        return EffectivePolicy(knobs, origins, None, _problem(str(error), knobs, origins))
    return EffectivePolicy(knobs, origins, config)


def drains_fanned_out(policy: EffectivePolicy) -> bool:
    """Whether a topic's sealed segments may have several readers each until they are drained (pip-486).

    It holds whatever else the policies contradict each other in.
    """
    return bool(policy.knobs[DRAIN_FAN_OUT])


def bucket_budget(policy: EffectivePolicy) -> int:
    """Entry buckets that a topic's segments share, 1..1024, whatever else the policies contradict each other in."""
    return min(max(int(policy.knobs[BUCKET_BUDGET]), 1), MAX_BUCKETS)


def exact(value: Knob) -> Knob:
    """A knob's value for people and for JSON: whole numbers are shown whole."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def knob_text(value: Knob) -> str:
    """A knob's exact value as text, as JSON writes it."""
    return json.dumps(exact(value))


def knob_list(policy: EffectivePolicy) -> list[dict[str, Any]]:
    """The knobs with exact value, unit and origin, in the order people see them. A switch has no unit."""
    return [
        {
            "knob": entry.path,
            "value": exact(policy.knobs[entry.path]),
            **({} if entry.unit in (Unit.SWITCH, Unit.COUNT) else {"unit": entry.unit.value}),
            "origin": policy.origins[entry.path],
        }
        for entry in KNOBS
    ]


def policy_json(policy: EffectivePolicy) -> dict[str, Any]:
    """What applies to a topic, for HTTP: `knobs` as `knob_list` has them, and `problem` if there is one."""
    return {"knobs": knob_list(policy), **({"problem": policy.problem} if policy.problem else {})}


@functools.lru_cache(maxsize=256)
def _config(values: tuple[Knob, ...]) -> AutoScaleConfig:
    """The knobs for the decision, of their values in the order of the defaults. Raises ConfigError."""
    knobs = dict(zip(_DEFAULTS, values, strict=True))
    fields: dict[str, Any] = {}
    rates: dict[str, dict[str, float]] = {}
    for entry in KNOBS:
        value = knobs[entry.path]
        if entry.unit is Unit.COUNT:
            if not float(value).is_integer():
                raise ConfigError(f"{entry.path} must be a whole number")
            value = int(value)
        group, _, rate = entry.field.partition(".")
        if rate:
            rates.setdefault(group, {})[rate] = float(value)
        else:
            fields[group] = value
    fields |= {group: Rates(**found) for group, found in rates.items()}
    return AutoScaleConfig(**fields)


def _problem(what: str, knobs: Knobs, origins: Mapping[str, str]) -> str:
    named = [path for path in dict.fromkeys(_WORD.findall(what)) if path in _PATHS]
    return f"{what}: " + ", ".join(f"{path} is {knob_text(knobs[path])} ({origins[path]})" for path in named)


def _read_defaults() -> dict[str, Knob]:
    config = AutoScaleConfig()
    knobs: dict[str, Knob] = {}
    for entry in KNOBS:
        value: Any = config
        for step in entry.field.split("."):
            value = getattr(value, step)
        knobs[entry.path] = value
    return knobs


_DEFAULTS = _read_defaults()
_DEFAULT_ORIGINS = dict.fromkeys(_DEFAULTS, DEFAULT)
