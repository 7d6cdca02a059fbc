"""Prometheus metrics of the operator."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.operations.journal import OperationKind, Result
from scalable_topics_operator.telemetry.fleet_metrics import FleetMetrics
from scalable_topics_operator.telemetry.pipeline_metrics import PipelineMetrics
from scalable_topics_operator.telemetry.scaling_metrics import ScalingMetrics
from scalable_topics_operator.telemetry.segment_metrics import SegmentMetrics
from scalable_topics_operator.telemetry.series import LabelledGauge
from scalable_topics_operator.telemetry.sharing_metrics import SharingMetrics

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class ReconcileResult(StrEnum):
    """How a reconcile ended."""

    DONE = "done"
    RETRIED = "retried"
    FAILED = "failed"
    NOT_LED = "not led"


class Metrics:
    """All metrics, in a registry of their own.

    `per_topic` switches the series that carry a topic's name; with ten thousand topics one may not want them.
    `per_segment` adds the rates of each segment, and who shares it.
    """

    def __init__(self, *, per_topic: bool = True, per_segment: bool = False) -> None:
        self.registry = CollectorRegistry()
        self.per_topic = per_topic
        self.fleet = FleetMetrics(self.registry)
        self.pipelines = PipelineMetrics(self.registry)
        self.segments = SegmentMetrics(self.registry, per_topic=per_topic)
        self.scaling = ScalingMetrics(self.registry, per_topic=per_topic, per_segment=per_segment)
        self.sharing = SharingMetrics(self.registry, per_topic=per_topic, per_segment=per_segment)
        self.reconciles = Counter(
            "scalable_topics_reconciles",
            "Reconciles by kind and result.",
            ["kind", "result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "scalable_topics_reconcile_seconds",
            "Duration of reconciles that had work to do.",
            ["kind"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.queue_waiting = Gauge(
            "scalable_topics_queue_waiting", "Objects that wait for a worker.", registry=self.registry
        )
        self.queue_oldest_wait_seconds = Gauge(
            "scalable_topics_queue_oldest_wait_seconds",
            "How long the first waiting object has waited.",
            registry=self.registry,
        )
        self.admin_calls = Histogram(
            "scalable_topics_admin_call_seconds",
            "Pulsar admin calls by operation and outcome.",
            ["operation", "outcome"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.operations = Counter(
            "scalable_topics_operations",
            "Finished operations by kind and result.",
            ["kind", "result"],
            registry=self.registry,
        )
        for kind in OperationKind:
            for result in Result:
                # From the beginning, so that the first is seen to be one more than none.
                self.operations.labels(kind.value, result.value)
        self._active_segments = LabelledGauge(
            "pulsar_scalable_topic_active_segments",
            "Active segments of a topic.",
            ["topic"],
            registry=self.registry,
        )
        self._sealed_segments = LabelledGauge(
            "scalable_topics_sealed_segments",
            "Sealed segments of a topic.",
            ["topic"],
            registry=self.registry,
        )
        self._layout_epoch = LabelledGauge(
            "scalable_topics_layout_epoch", "Epoch of a topic's layout.", ["topic"], registry=self.registry
        )
        self._per_segment = per_topic and per_segment
        self._segment_buckets = LabelledGauge(
            "scalable_topics_segment_entry_buckets",
            "Entry buckets of a segment.",
            ["topic", "segment"],
            registry=self.registry,
        )
        self._segments: dict[str, frozenset[int]] = {}
        self.objects = Gauge("scalable_topics_objects", "Objects known, by kind.", ["kind"], registry=self.registry)
        self.tasks = Gauge(
            "scalable_topics_asyncio_tasks",
            "Tasks of the process's event loop that have not ended; one that only rises is a leak.",
            registry=self.registry,
        )
        self.connection_up = Gauge(
            "scalable_topics_connection_up",
            "Whether a connection's last probe succeeded.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.orphans = Gauge(
            "scalable_topics_orphans",
            "Scalable topics on a connection's brokers whose object is gone.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.shards_held = Gauge("scalable_topics_shards_held", "Shards this replica leads.", registry=self.registry)
        self.shards_lost = Counter(
            "scalable_topics_shards_lost",
            "Shards that were taken away or could not be renewed in time.",
            registry=self.registry,
        )
        self.shards_handed_over = Counter(
            "scalable_topics_shards_handed_over", "Shards handed over to another replica.", registry=self.registry
        )
        self.lease_writes = Counter(
            "scalable_topics_lease_writes",
            "Writes of Leases by purpose and result.",
            ["purpose", "result"],
            registry=self.registry,
        )
        self.gateway_requests = Counter(
            "scalable_topics_gateway_requests",
            "Requests to the gateway by route and status code.",
            ["route", "code"],
            registry=self.registry,
        )
        self.gateway_request_seconds = Histogram(
            "scalable_topics_gateway_request_seconds",
            "Duration of requests to the gateway by route.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.gateway_forwarded = Counter(
            "scalable_topics_gateway_forwarded",
            "Requests sent on to the replica that leads the topic, by outcome.",
            ["outcome"],
            registry=self.registry,
        )

        self.assignments_written = Counter(
            "scalable_topics_assignments_written",
            "Commits of what the consumers of ordered subscriptions read.",
            registry=self.registry,
        )
        self.consumers_removed = Counter(
            "scalable_topics_consumers_removed",
            "Consumers of ordered subscriptions that did not come back within their grace period.",
            registry=self.registry,
        )
        self.handovers_overdue = Counter(
            "scalable_topics_handovers_overdue",
            "Consumers that were disconnected because they did not let go of their segments.",
            registry=self.registry,
        )
        self.gateway_sessions = Gauge(
            "scalable_topics_gateway_sessions", "WebSocket sessions by kind.", ["kind"], registry=self.registry
        )
        self.gateway_session_frames = Counter(
            "scalable_topics_gateway_session_frames",
            "Frames sent to clients of sessions by kind.",
            ["kind"],
            registry=self.registry,
        )
        self.gateway_sessions_dropped = Counter(
            "scalable_topics_gateway_sessions_dropped",
            "Sessions that were ended for the sake of their client or its right, by kind and reason.",
            ["kind", "reason"],
            registry=self.registry,
        )

    def expect_kind(self, kind: str) -> None:
        """Show reconciles of a kind of objects from the beginning; `kind` is its plural."""
        self.reconcile_seconds.labels(kind)
        for result in ReconcileResult:
            self.reconciles.labels(kind, result)

    def observe_admin_call(self, operation: str, outcome: str, seconds: float) -> None:
        """Count one Pulsar admin call."""
        self.admin_calls.labels(operation, outcome).observe(seconds)

    def show_layout(self, topic: str, layout: SegmentLayout) -> None:
        """Show a topic's layout."""
        if self.per_topic:
            self._active_segments.set(len(layout.active), topic)
            self._sealed_segments.set(len(layout.sealed), topic)
            self._layout_epoch.set(layout.epoch, topic)
        if self._per_segment:
            for segment in layout.segments.values():
                self._segment_buckets.set(segment.buckets, topic, str(segment.segment_id))
            self._forget_segments(topic, self._segments.get(topic, frozenset()) - layout.segments.keys())
            self._segments[topic] = frozenset(layout.segments)

    def forget_layout(self, topic: str) -> None:
        """Take a topic's series away."""
        self._forget_segments(topic, self._segments.pop(topic, frozenset()))
        for gauge in (self._active_segments, self._sealed_segments, self._layout_epoch):
            gauge.remove(topic)

    def _forget_segments(self, topic: str, segment_ids: Iterable[int]) -> None:
        for segment_id in segment_ids:
            self._segment_buckets.remove(topic, str(segment_id))
