"""What a topic's leader tells of it: load, layout and effective policy, and why it did or did not act (pip-483)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from scalable_topics.layout import Segment
from scalable_topics_operator.autoscale.decision import Action, Decision, Merge, Rebucket, Split
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.autoscale.policy import knob_list
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.auto_scaler import ScaleMemory, Subject, sampled_segments, useful_parallelism
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_memory import TopicMemory
from scalable_topics_operator.controllers.topic_work import TopicWorkMaker
from scalable_topics_operator.operations.context import format_timestamp

_DECIMALS = 3


class LeaderViews:
    """Views of the topics this replica leads; None of one that nothing is known of yet.

    Args:
        cache: objects as last seen.
        maker: reads a topic as decisions see it.
        memory_of: what the process remembers of a topic.
        consumers: counts of consumers.
    """

    def __init__(
        self,
        cache: ObjectCache,
        maker: TopicWorkMaker,
        memory_of: Callable[[ObjectKey], TopicMemory | None],
        consumers: ConsumerCounts,
    ) -> None:
        self._cache = cache
        self._maker = maker
        self._memory_of = memory_of
        self._consumers = consumers

    def stats(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """Layout with the load of each segment, sums, backlog by subscription, and how many consumers are of use."""
        found = self._find(key)
        if found is None:
            return None
        subject, scale = found
        records, now_ms = scale.load.records, time.time_ns() // 1_000_000
        age_seconds = scale.load.age_seconds(now_ms)
        total = scale.load.total
        names = sampled_segments(subject.topic, subject.layout, subject.backend)
        backlog = dict(sorted(scale.load.backlog.items()))
        return {
            "topic": str(subject.topic),
            "layout": {
                "epoch": subject.layout.epoch,
                "segments": {
                    str(segment.segment_id): _segment(
                        segment,
                        names[segment.segment_id].topic,
                        records.get(segment.segment_id),
                        scale.load.backlogs.get(segment.segment_id),
                        age_seconds,
                    )
                    for segment in subject.layout.active
                },
            },
            **_rates(total),
            "subscriptions": {name: {"msgBacklog": messages} for name, messages in backlog.items()},
            "autoScale": {"policy": _knobs(scale), "engine": subject.engine.value},
            "scaling": {
                "activeSegments": len(subject.layout.active),
                "sealedSegments": len(subject.layout.sealed),
                "usefulParallelism": useful_parallelism(subject.layout),
                "maxBacklog": max(backlog.values(), default=0),
                "loadAgeSeconds": age_seconds,
            },
        }

    def explain(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The last decision with all its findings, and what it was made from."""
        found = self._find(key)
        if found is None or found[1].decision is None:
            return None
        subject, scale = found
        decision, now_ms = found[1].decision, time.time_ns() // 1_000_000
        stale = scale.load.why_stale(now_ms, float(subject.handle.spec.load.interval_seconds))
        clocks = subject.clocks
        return {
            "topic": str(subject.topic),
            "engine": subject.engine.value,
            "observedAt": format_timestamp(scale.decided_at_ms),
            "decision": {"action": _action(decision), "code": decision.code},
            "findings": [
                {"rule": one.rule.value, "fired": one.fired, "code": one.code, "why": one.why}
                for one in decision.findings
            ],
            "load": {
                "fresh": not stale,
                "ageSeconds": scale.load.age_seconds(now_ms),
                "why": stale,
                "segments": [
                    {
                        "id": segment.segment_id,
                        "range": segment.hash_range.descriptor,
                        **_known_rates(scale.load.records.get(segment.segment_id)),
                    }
                    for segment in subject.layout.active
                ],
            },
            "consumers": dict(self._consumers.of(key)),
            "clocks": {
                "split": _time(clocks.split_at_ms),
                "merge": _time(clocks.merge_at_ms),
                "rebucket": _time(clocks.rebucket_at_ms),
            },
            "nextLookSeconds": round(max(0.0, scale.due - time.monotonic()), 1),
        }

    def policy(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The effective policy with the origin of each knob."""
        found = self._find(key)
        if found is None or found[1].policy is None:
            return None
        return {
            "topic": str(found[0].topic),
            "engine": found[0].engine.value,
            "problem": found[1].policy.problem,
            "knobs": knob_list(found[1].policy),
        }

    def _find(self, key: ObjectKey) -> tuple[Subject, ScaleMemory] | None:
        body, memory = self._cache.get(key), self._memory_of(key)
        if body is None or memory is None:
            return None
        subject = self._maker.subject(key, body, memory.scale.subject)
        return None if subject is None else (subject, memory.scale)


def _segment(
    segment: Segment,
    name: str,
    record: SegmentLoad | None,
    backlog: Mapping[str, int] | None,
    age_seconds: float | None,
) -> dict[str, Any]:
    return {
        "name": name,
        "state": segment.state.value,
        "hashRange": segment.hash_range.descriptor,
        "createdAt": _time(segment.created_at_ms),
        "load": None if record is None else {**_rates(record.rates), "ageSeconds": age_seconds},
        "backlog": None if backlog is None else dict(sorted(backlog.items())),
        "entryBuckets": segment.buckets,
    }


def _rates(rates: Rates) -> dict[str, float]:
    """Rates as Pulsar's statistics name them."""
    names = ("msgRateIn", "byteRateIn", "msgRateOut", "byteRateOut")
    return {name: round(rate, _DECIMALS) for name, rate in zip(names, rates.values, strict=True)}


def _known_rates(record: SegmentLoad | None) -> dict[str, Any]:
    """Rates as the knobs name them; None for each that is not known."""
    if record is None:
        return dict.fromkeys(("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut", "lastHotAt"))
    shown: dict[str, Any] = {metric.value: round(rate, _DECIMALS) for metric, rate in record.rates.by_metric()}
    return {**shown, "lastHotAt": _time(record.last_hot_at_ms)}


def _action(decision: Decision) -> dict[str, Any] | None:
    action: Action | None = decision.action
    match action:
        case Split(segment_id, into, reason):
            return {"kind": "Split", "segments": [segment_id], "into": into, "buckets": None, "reason": reason.value}
        case Merge(segment_ids, _, reason):
            return {"kind": "Merge", "segments": list(segment_ids), "into": 1, "buckets": None, "reason": reason.value}
        case Rebucket(segment_ids, buckets, reason):
            return {
                "kind": "Rebucket",
                "segments": list(segment_ids),
                "into": 1,
                "buckets": buckets,
                "reason": reason.value,
            }
        case _:
            return None


def _knobs(scale: ScaleMemory) -> dict[str, Any] | None:
    return None if scale.policy is None else dict(scale.policy.knobs)


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_timestamp(at_ms)
