"""Runs peer cases of the automatic decision through ours."""

from __future__ import annotations

from typing import Any

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig, ConfigError
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.decision import Merge, Rebucket, Split
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad, is_material
from tests.conformance.peer_case import PeerCase

_KNOBS = {
    "enabled": "enabled",
    "maxSegments": "max_segments",
    "minSegments": "min_segments",
    "maxDagDepth": "max_dag_depth",
    "splitCooldownSeconds": "split_cooldown_seconds",
    "mergeCooldownSeconds": "merge_cooldown_seconds",
    "mergeWindowSeconds": "merge_window_seconds",
}
_LATER_KNOBS = {
    "rebucketCooldownSeconds": "rebucket_cooldown_seconds",
    "splitVsRebucketMinMsgRateInThreshold": "split_vs_rebucket_min_msg_rate_in",
    "entryBucketMaxPerSegment": "max_buckets_per_segment",
}
_RATES = ("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut")


def run(case: PeerCase) -> dict[str, Any]:
    """What we do in a case, in the words of its expectation."""
    return {"AutoScaleEvaluator": _decision, "AutoScaleConfig": _config, "LoadReporter": _material}[case.area](case)


def _decision(case: PeerCase) -> dict[str, Any]:
    given = case.given
    now_ms = given["nowMs"]
    config = given["config"]
    layout = _layout(given["layout"])
    loads = {int(key): SegmentLoad(Rates(*values[:4]), now_ms - values[4]) for key, values in given["load"].items()}
    ago = given["lastAgoMs"]
    clocks = Clocks(*(now_ms - ago[kind] if kind in ago else None for kind in ("split", "merge", "rebucket")))
    ours = AutoScaleConfig(
        enabled=config["enabled"],
        min_segments=config["minSegments"],
        max_segments=config["maxSegments"],
        max_dag_depth=config["maxDagDepth"],
        split_cooldown_seconds=config["splitCooldownS"],
        merge_cooldown_seconds=config["mergeCooldownS"],
        rebucket_cooldown_seconds=config["rebucketCooldownS"],
        merge_window_seconds=config["mergeWindowS"],
        split=Rates(*config["split"]),
        merge=Rates(*config["merge"]),
        max_buckets_per_segment=config["maxEntryBucketsPerSegment"],
        # The older peer knew no rebuckets: it split for consumers whatever the rates.
        split_vs_rebucket_min_msg_rate_in=config["splitVsRebucketMinMsgRateIn"]
        if config.get("rebucketLane", True)
        else 0,
    )
    action = decide(Situation(layout, loads, given["consumers"], ours, clocks, now_ms)).action
    match action:
        case Split(segment_id, _, reason):
            return {"decision": "split", "segmentId": segment_id, "reason": reason.value}
        case Merge(ids, _, reason):
            active = [one.segment_id for one in layout.active]
            adjacent = abs(active.index(ids[0]) - active.index(ids[1])) == 1
            return {"decision": "merge", "segmentIds": list(ids), "reason": reason.value, "anyAdjacent": adjacent}
        case Rebucket(segment_ids, buckets, reason):
            return {
                "decision": "rebucket",
                "segmentIds": list(segment_ids),
                "bucketCount": buckets,
                "reason": reason.value,
            }
        case _:
            return {"decision": "none"}


def _layout(given: dict[str, Any]) -> SegmentLayout:
    count, budget = given["init"]
    layout = SegmentLayout.initial(count, bucket_budget=budget)
    for kind, *arguments in given["ops"]:
        if kind == "split":
            layout = layout.split(arguments[0], now_ms=arguments[-1])
        elif kind == "merge":
            layout = layout.merge(arguments[:-1], now_ms=arguments[-1])
        else:
            layout = layout.rebucket(arguments[0], arguments[1], now_ms=arguments[-1])
    return layout


def _config(case: PeerCase) -> dict[str, Any]:
    knobs: dict[str, Any] = {}
    defaults = AutoScaleConfig()
    split = dict(zip(_RATES, (rate for _, rate in defaults.split.by_metric()), strict=True))
    merge = dict(zip(_RATES, (rate for _, rate in defaults.merge.by_metric()), strict=True))
    for level in ("broker", "namespace", "topic"):
        for name, value in (case.given.get(level) or {}).items():
            for rates, prefix in ((split, "split"), (merge, "merge")):
                metric = name.removeprefix(prefix).removesuffix("Threshold")
                if name.startswith(prefix) and name.endswith("Threshold"):
                    rates[metric[0].lower() + metric[1:]] = float(value)
            if name in _KNOBS:
                knobs[_KNOBS[name]] = value
    try:
        config = AutoScaleConfig(split=Rates(*split.values()), merge=Rates(*merge.values()), **knobs)
    except ConfigError:
        return {"error": "illegal-argument"}
    shown = {name: getattr(config, field) for name, field in (_KNOBS | _LATER_KNOBS).items()}
    shown["entryBucketBudget"] = defaults.bucket_budget
    shown |= {"split": list(split.values()), "merge": list(merge.values())}
    shown |= {
        f"{prefix}{name[0].upper()}{name[1:]}": value
        for prefix, rates in (("split", split), ("merge", merge))
        for name, value in rates.items()
    }
    return {**shown, "equals": "broker defaults" if config == defaults else "something else"}


def _material(case: PeerCase) -> dict[str, Any]:
    given = case.given
    return {"material": is_material(Rates(*given["last"]), Rates(*given["current"]), given["threshold"])}
