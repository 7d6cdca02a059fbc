"""Auto-scale policies as brokers take them: one whole object a topic (pip-483, Pulsar 5.0). Pure.

Brokers resolve field by field: the topic's own object over the namespace's over their configuration. So an object says
only what some policy here says; the rest stays theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.autoscale.policy import DEFAULT, DRAIN_FAN_OUT, EffectivePolicy, Knob, exact

OFF: Mapping[str, Any] = {"enabled": False}
"""Nothing is done by the brokers: one controller at a time (DESIGN §8)."""

FIELDS: Mapping[str, str] = {
    "enabled": "enabled",
    "minSegments": "minSegments",
    "maxSegments": "maxSegments",
    "maxDagDepth": "maxDagDepth",
    "split.cooldown": "splitCooldownSeconds",
    "split.msgRateIn": "splitMsgRateInThreshold",
    "split.bytesRateIn": "splitBytesRateInThreshold",
    "split.msgRateOut": "splitMsgRateOutThreshold",
    "split.bytesRateOut": "splitBytesRateOutThreshold",
    "merge.cooldown": "mergeCooldownSeconds",
    "merge.window": "mergeWindowSeconds",
    "merge.msgRateIn": "mergeMsgRateInThreshold",
    "merge.bytesRateIn": "mergeBytesRateInThreshold",
    "merge.msgRateOut": "mergeMsgRateOutThreshold",
    "merge.bytesRateOut": "mergeBytesRateOutThreshold",
    "rebucket.cooldown": "rebucketCooldownSeconds",
    "rebucket.splitVsRebucketMinMsgRateIn": "splitVsRebucketMinMsgRateInThreshold",
}
"""Knobs that brokers take a topic's own value of, by their path in a manifest."""

_WHOLE = frozenset(
    {
        "minSegments",
        "maxSegments",
        "maxDagDepth",
        "splitCooldownSeconds",
        "mergeCooldownSeconds",
        "mergeWindowSeconds",
        "rebucketCooldownSeconds",
        "splitBytesRateInThreshold",
        "splitBytesRateOutThreshold",
        "mergeBytesRateInThreshold",
        "mergeBytesRateOutThreshold",
    }
)


def override_of(policy: EffectivePolicy) -> dict[str, Any] | None:
    """The object that says what policies say; None where none says anything that brokers know.

    Amounts that brokers keep as whole numbers are rounded up, so that a limit never becomes 0.
    """
    said = {
        field: _value(field, policy.knobs[path])
        for path, field in FIELDS.items()
        if policy.origins.get(path, DEFAULT) != DEFAULT
    }
    return said or None


def unknown_to_brokers(policy: EffectivePolicy) -> tuple[str, ...]:
    """Knobs that some policy sets and that brokers have no value of a topic's own for."""
    return tuple(path for path, origin in policy.origins.items() if origin != DEFAULT and path not in FIELDS)


def not_applied(policy: EffectivePolicy, *, brokers_decide: bool) -> tuple[str, ...]:
    """What some policy says and nobody goes by, in words.

    Args:
        policy: that applies to the topic.
        brokers_decide: whether it is for the brokers to change the topic by themselves.
    """
    unknown = unknown_to_brokers(policy)
    told = []
    if brokers_decide and (paths := [path for path in unknown if path != DRAIN_FAN_OUT]):
        told.append(
            f"the brokers of the Native backend know no {', '.join(paths)} of a topic's own; "
            "autoScale.engine: Operator goes by them"
        )
    if DRAIN_FAN_OUT in unknown:
        told.append(f"the brokers of the Native backend deal segments to consumers, and know no {DRAIN_FAN_OUT}")
    return tuple(told)


def is_same(stored: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None) -> bool:
    """Whether what brokers have stored is what is wanted; 5 and 5.0 are the same."""
    if stored is None or wanted is None:
        return (stored or None) == (wanted or None)
    return stored.keys() == wanted.keys() and all(stored[key] == wanted[key] for key in wanted)


def not_in_force(resolved: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None) -> str:
    """Why brokers do not go by what is stored; empty if they do.

    A combination of a topic's, its namespace's and their own settings that makes no sense switches automatic changes
    off at the brokers, who say so in their log only (measured).

    Args:
        resolved: the policy that brokers say they go by.
        wanted: what is stored with the topic.
    """
    if wanted is None or wanted.get("enabled") is False:
        return ""
    if resolved is None:
        return "the brokers show no policy in force for the topic"
    if wanted.get("enabled", True) and resolved.get("enabled") is False:
        return (
            "the brokers have switched automatic changes off: the topic's policy makes no sense together with what the "
            "Pulsar namespace or the brokers' own settings say; look at minSegments, maxSegments and thresholds there"
        )
    differing = [key for key, value in wanted.items() if resolved.get(key) != value]
    return f"the brokers go by other values of {', '.join(sorted(differing))}" if differing else ""


def _value(field: str, knob: Knob) -> Knob:
    value = exact(knob)
    if field in _WHOLE and isinstance(value, float):
        return int(-(-value // 1))
    return value
