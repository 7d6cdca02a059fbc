"""Metrics of segments with which something is wrong: sealed and not drained, or active and terminated."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from scalable_topics_operator.telemetry.series import LabelledCounter, LabelledGauge

# Topics of several Pulsar clusters may have one name.
_LABELS = ("topic", "connection")


class SegmentMetrics:
    """What looks at the brokers find out about segments.

    Args:
        registry: where they are registered.
        per_topic: whether series carry a topic's name; there are none of these otherwise.
    """

    def __init__(self, registry: CollectorRegistry, *, per_topic: bool = True) -> None:
        self._per_topic = per_topic
        self._undrained = LabelledGauge(
            "scalable_topics_undrained_segments",
            "Sealed segments of a topic that a subscription has not read to their end, or that are open again.",
            _LABELS,
            registry=registry,
        )
        self._undrained_since = LabelledGauge(
            "scalable_topics_undrained_segment_sealed_timestamp_seconds",
            "When the oldest undrained segment of a topic was sealed, seconds since 1970; none while there is none.",
            _LABELS,
            registry=registry,
        )
        self._terminated = LabelledGauge(
            "scalable_topics_terminated_active_segments",
            "Segments of a topic that are active by its layout and terminated on their broker, at the last look.",
            _LABELS,
            registry=registry,
        )
        self._replaced = LabelledCounter(
            "scalable_topics_segments_replaced",
            "Active segments of a topic that others had terminated or deleted, each replaced by a successor.",
            _LABELS,
            registry=registry,
        )

    def show_undrained(self, topic: str, connection: str, sealed_at_ms: list[int]) -> None:
        """Show the sealed segments that are not drained.

        Args:
            topic: canonical name.
            connection: of the topic, `namespace/name`.
            sealed_at_ms: when each of them was sealed, milliseconds since 1970; 0 if that is not known.
        """
        if not self._per_topic:
            return
        self._undrained.set(len(sealed_at_ms), topic, connection)
        if known := [at_ms for at_ms in sealed_at_ms if at_ms]:
            self._undrained_since.set(min(known) / 1000, topic, connection)
        else:
            self._undrained_since.remove(topic, connection)

    def show_terminated(self, topic: str, connection: str, segments: int, *, replaced: int) -> None:
        """Show what a comparison of record and brokers has found.

        Args:
            topic: canonical name.
            connection: of the topic, `namespace/name`.
            segments: how many active ones are terminated on their broker.
            replaced: how many successors it has made.
        """
        if self._per_topic:
            self._terminated.set(segments, topic, connection)
            self._replaced.add(replaced, topic, connection)

    def hide_looks(self, topic: str, connection: str) -> None:
        """Take away what the last looks have found: there are none for now. What was replaced stays counted."""
        for metric in (self._undrained, self._undrained_since, self._terminated):
            metric.remove(topic, connection)

    def forget(self, topic: str, connection: str) -> None:
        """Take a topic's series away."""
        for metric in (self._undrained, self._undrained_since, self._terminated, self._replaced):
            metric.remove(topic, connection)
