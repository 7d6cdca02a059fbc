"""Metrics of consumers that share segments by entry buckets (pip-486, R37)."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from scalable_topics_operator.assignment.overview import SegmentReading
from scalable_topics_operator.telemetry.series import LabelledCounter, LabelledGauge

_Subscription = tuple[str, str]


class SharingMetrics:
    """What is read of ordered subscriptions.

    Args:
        registry: where they are registered.
        per_topic: whether series carry a topic's name; there are none of these otherwise.
        per_segment: whether each segment is shown, too.
    """

    def __init__(self, registry: CollectorRegistry, *, per_topic: bool = True, per_segment: bool = False) -> None:
        self._per_topic = per_topic
        self._per_segment = per_topic and per_segment
        labels = ["topic", "subscription"]
        self._withheld = LabelledGauge(
            "scalable_topics_buckets_withheld",
            "Entry buckets of an ordered subscription that nobody may read until their former readers let go.",
            labels,
            registry=registry,
        )
        self._reassignments = LabelledCounter(
            "scalable_topics_bucket_reassignments",
            "Entry buckets that went from one consumer of an ordered subscription to another.",
            labels,
            registry=registry,
        )
        self._draining = LabelledGauge(
            "scalable_topics_draining_segments",
            "Sealed segments of which several consumers share what is left.",
            labels,
            registry=registry,
        )
        of_segment = [*labels, "segment"]
        self._segment_sharing = LabelledGauge(
            "scalable_topics_segment_sharing_consumers",
            "Consumers that share a segment; 0 where one reads all of it.",
            of_segment,
            registry=registry,
        )
        self._segment_withheld = LabelledGauge(
            "scalable_topics_segment_buckets_withheld",
            "Entry buckets of a segment that nobody may read until their former readers let go.",
            of_segment,
            registry=registry,
        )
        self._segment_draining = LabelledGauge(
            "scalable_topics_segment_draining",
            "Whether several consumers share what is left of a sealed segment.",
            of_segment,
            registry=registry,
        )
        self._segment_reassignments = LabelledCounter(
            "scalable_topics_segment_bucket_reassignments",
            "Entry buckets of a segment that went from one consumer to another.",
            of_segment,
            registry=registry,
        )
        # Who read each bucket last, by segment.
        self._readers: dict[_Subscription, dict[int, dict[int, str]]] = {}

    def show(self, topic: str, subscription: str, reading: Mapping[int, SegmentReading]) -> None:
        """Show what is read of a subscription, and take away the segments that were and are not any more.

        Args:
            topic: canonical name.
            subscription: its name.
            reading: by segment.
        """
        if not self._per_topic:
            return
        labels = topic, subscription
        before = self._readers.get(labels, {})
        moved = {one: _moved(before.get(one, {}), found.readers) for one, found in reading.items()}
        self._withheld.set(sum(found.withheld for found in reading.values()), *labels)
        self._draining.set(sum(found.drains for found in reading.values()), *labels)
        self._reassignments.add(sum(moved.values()), *labels)
        # A bucket that is withheld was read by somebody before, whom the next reader is compared with.
        self._readers[labels] = {one: {**before.get(one, {}), **found.readers} for one, found in reading.items()}
        if not self._per_segment:
            return
        for one, found in reading.items():
            self._segment_sharing.set(found.sharing, *labels, str(one))
            self._segment_withheld.set(found.withheld, *labels, str(one))
            self._segment_draining.set(found.drains, *labels, str(one))
            self._segment_reassignments.add(moved[one], *labels, str(one))
        for gone in before.keys() - reading.keys():
            self._forget_segment(*labels, str(gone))

    def forget(self, topic: str, subscription: str) -> None:
        """Take a subscription's series away."""
        for metric in (self._withheld, self._draining, self._reassignments):
            metric.remove(topic, subscription)
        for segment_id in self._readers.pop((topic, subscription), ()):
            self._forget_segment(topic, subscription, str(segment_id))

    def _forget_segment(self, *labels: str) -> None:
        for metric in (
            self._segment_sharing,
            self._segment_withheld,
            self._segment_draining,
            self._segment_reassignments,
        ):
            metric.remove(*labels)


def _moved(before: Mapping[int, str], after: Mapping[int, str]) -> int:
    return sum(bucket in before and before[bucket] != name for bucket, name in after.items())
