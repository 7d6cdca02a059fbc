"""Metrics of automatic changes: the names of pip-483 and what explains them (R37)."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

from scalable_topics_operator.autoscale.decision import Decision
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.telemetry.series import LabelledCounter, LabelledGauge

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)


class ScalingMetrics:
    """Metrics of decisions and loads.

    Args:
        registry: where they are registered.
        per_topic: whether series carry a topic's name.
        per_segment: whether the rates of each segment are shown, too.
    """

    def __init__(self, registry: CollectorRegistry, *, per_topic: bool = True, per_segment: bool = False) -> None:
        self._per_topic = per_topic
        self._per_segment = per_topic and per_segment
        self.decision_seconds = Histogram(
            "scalable_topics_decision_seconds",
            "Duration of decisions on one topic.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.decisions = Counter(
            "scalable_topics_decisions", "Decisions by what they found.", ["code"], registry=registry
        )
        self._changes = {
            kind: LabelledCounter(
                f"pulsar_scalable_topic_auto_{kind.lower()}s",
                f"Automatic {kind.lower()}s of a topic.",
                ["topic"],
                registry=registry,
            )
            for kind in ("Split", "Merge", "Rebucket")
        }
        self._rollovers = LabelledCounter(
            "scalable_topics_rebucket_rollovers",
            "Segments of a topic replaced by ones with another number of entry buckets, whoever asked for it.",
            ["topic"],
            registry=registry,
        )
        self._suppressed = {
            "at-max-segments": LabelledCounter(
                "pulsar_scalable_topic_split_suppressed_max_segments",
                "Decisions that wanted a split but for maxSegments.",
                ["topic"],
                registry=registry,
            ),
            "at-max-depth": LabelledCounter(
                "pulsar_scalable_topic_merge_suppressed_max_depth",
                "Decisions that wanted a merge but for maxDagDepth.",
                ["topic"],
                registry=registry,
            ),
        }
        rates = (
            ("msg_rate_in", "Messages published to"),
            ("bytes_rate_in", "Bytes published to"),
            ("msg_rate_out", "Messages dispatched from"),
            ("bytes_rate_out", "Bytes dispatched from"),
        )
        self._topic_rates = [
            LabelledGauge(
                f"scalable_topics_{name}",
                f"{what} all active segments of a topic a second, as recorded.",
                ["topic"],
                registry=registry,
            )
            for name, what in rates
        ]
        self._segment_rates = [
            LabelledGauge(
                f"scalable_topics_segment_{name}",
                f"{what} a segment a second, as recorded.",
                ["topic", "segment"],
                registry=registry,
            )
            for name, what in rates
        ]
        self._parallelism = LabelledGauge(
            "scalable_topics_useful_parallelism",
            "Ordered consumers of one subscription that a topic can employ: entry buckets of its active segments.",
            ["topic"],
            registry=registry,
        )
        self._backlog = LabelledGauge(
            "scalable_topics_backlog",
            "Messages of the active segments that a subscription has not acknowledged, as last sampled.",
            ["topic", "subscription"],
            registry=registry,
        )
        self._info = LabelledGauge(
            "scalable_topics_topic_info",
            # Not namespace and name: those are what Prometheus calls the scraped pod.
            "1, with the ScalableTopic that a topic is declared by, for joins.",
            ["topic", "scalabletopic_namespace", "scalabletopic"],
            registry=registry,
        )
        # What is shown of each topic.
        self._objects: dict[str, tuple[str, str]] = {}
        self._subscriptions: dict[str, set[str]] = {}
        self._segments: dict[str, set[int]] = {}

    def decided(self, topic: str, decision: Decision, seconds: float) -> None:
        """Count a decision."""
        self.decision_seconds.observe(seconds)
        self.decisions.labels(decision.code).inc()
        if self._per_topic:
            for finding in decision.findings:
                if finding.code in self._suppressed:
                    self._suppressed[finding.code].add(1, topic)

    def changed(self, topic: str, kind: str) -> None:
        """Count an automatic change that succeeded; `kind` is Split, Merge or Rebucket."""
        if self._per_topic:
            self._changes[kind].add(1, topic)

    def rolled_over(self, topic: str) -> None:
        """Count a rebucket rollover, whoever asked for it (pip-486)."""
        if self._per_topic:
            self._rollovers.add(1, topic)

    def show_segments(self, topic: str, records: Mapping[int, SegmentLoad]) -> None:
        """Show the rates of a topic's segments, and take away those of others shown before."""
        if not self._per_segment:
            return
        for segment_id, record in records.items():
            for gauge, rate in zip(self._segment_rates, record.rates.values, strict=True):
                gauge.set(rate, topic, str(segment_id))
        for segment_id in self._segments.get(topic, set()).difference(records):
            for gauge in self._segment_rates:
                gauge.remove(topic, str(segment_id))
        self._segments[topic] = set(records)

    def show_topic(
        self,
        topic: str,
        declared_by: tuple[str, str],
        *,
        parallelism: int,
        rates: Rates | None,
        backlog: Mapping[str, int],
    ) -> None:
        """Show what other autoscalers go by.

        Args:
            topic: canonical name.
            declared_by: namespace and name of its ScalableTopic.
            parallelism: how many ordered consumers are of use.
            rates: of all its segments; None while they are not known.
            backlog: what waits, by subscription; empty while that is not known.
        """
        if not self._per_topic:
            return
        if (before := self._objects.get(topic)) != declared_by:
            if before is not None:
                self._info.remove(topic, *before)
            self._objects[topic] = declared_by
            self._info.set(1, topic, *declared_by)
            for counter in (*self._changes.values(), *self._suppressed.values(), self._rollovers):
                # From the beginning, so that the first is seen to be one more than none.
                counter.add(0, topic)
        self._parallelism.set(parallelism, topic)
        for gauge, rate in zip(self._topic_rates, rates.values if rates else (None,) * 4, strict=True):
            if rate is None:
                gauge.remove(topic)
            else:
                gauge.set(rate, topic)
        for subscription, messages in backlog.items():
            self._backlog.set(messages, topic, subscription)
        for gone in self._subscriptions.get(topic, set()).difference(backlog):
            self._backlog.remove(topic, gone)
        self._subscriptions[topic] = set(backlog)

    def forget(self, topic: str) -> None:
        """Take a topic's series away, by their labels: looking through those of all topics would take seconds."""
        for counter in (*self._changes.values(), *self._suppressed.values(), self._rollovers):
            counter.remove(topic)
        for gauge in (self._parallelism, *self._topic_rates):
            gauge.remove(topic)
        if declared_by := self._objects.pop(topic, None):
            self._info.remove(topic, *declared_by)
        for subscription in self._subscriptions.pop(topic, ()):
            self._backlog.remove(topic, subscription)
        for segment_id in self._segments.pop(topic, ()):
            for gauge in self._segment_rates:
                gauge.remove(topic, str(segment_id))
