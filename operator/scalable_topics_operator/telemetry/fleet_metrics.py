"""Metrics of the topics that a replica leads, read from their objects whenever somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class TopicStanding(StrEnum):
    """How a topic stands, as one word."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    NEW = "New"


@dataclass(frozen=True, slots=True)
class TopicGlimpse:
    """What the status of one topic tells.

    Args:
        topic: canonical name; may be empty if no operation is open, as may be the next.
        connection: of the topic, `namespace/name`.
        standing: how it stands; `NEW` while nothing was written yet.
        reason: why, one CamelCase word; empty of a new one.
        operation: kind of the operation in its journal; empty if none is open.
        started_seconds: when that was begun, seconds since 1970.
    """

    topic: str
    connection: str
    standing: TopicStanding
    reason: str = ""
    operation: str = ""
    started_seconds: float = 0.0


class FleetMetrics(Collector):
    """Collects what topics stand like. Nothing is kept: a replica that hands a topic over shows it no more.

    Args:
        registry: where it is registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._led: Callable[[], Iterable[TopicGlimpse]] = tuple
        registry.register(self)

    def follow(self, led: Callable[[], Iterable[TopicGlimpse]]) -> None:
        """Ask this for the topics that this replica leads."""
        self._led = led

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The families without series."""
        return iter(_families())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The families as of now."""
        topics, stalled, operations = _families()
        standings: Counter[TopicStanding] = Counter()
        reasons: Counter[str] = Counter()
        for glimpse in self._led():
            standings[glimpse.standing] += 1
            if glimpse.standing is TopicStanding.STALLED:
                reasons[glimpse.reason] += 1
            if glimpse.operation:
                labels = [glimpse.topic, glimpse.connection, glimpse.operation]
                operations.add_metric(labels, glimpse.started_seconds)
        for standing in TopicStanding:
            topics.add_metric([standing.value], standings[standing])
        for reason, count in sorted(reasons.items()):
            stalled.add_metric([reason], count)
        return iter((topics, stalled, operations))


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily(
            "scalable_topics_topics", "Topics that this replica leads, by how they stand.", labels=["state"]
        ),
        GaugeMetricFamily(
            "scalable_topics_stalled_topics",
            "Topics that wait for a person, by the reason of their condition Stalled.",
            labels=["reason"],
        ),
        # With its topic always: there are as many series as operations under way, whatever the size of the fleet.
        GaugeMetricFamily(
            "scalable_topics_operation_start_timestamp_seconds",
            "When the operation in a topic's journal was begun, seconds since 1970; none while no operation is open.",
            labels=["topic", "connection", "kind"],
        ),
    )
