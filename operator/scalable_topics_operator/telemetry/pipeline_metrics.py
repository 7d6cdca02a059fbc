"""Metrics of where the load of a cluster comes from: its brokers, or the pipeline of its connection (R34, R37)."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge

from scalable_topics_operator.telemetry.series import remove

PIPELINE, BROKERS = "pipeline", "brokers"
"""Where a sample comes from."""


class PipelineMetrics:
    """What is known of the load of each connection, by the replica that leads it.

    Args:
        registry: where they are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["namespace", "name"]
        self._age_seconds = Gauge(
            "scalable_topics_load_age_seconds",
            "Age of the last look that all of a connection's brokers answered; of the wait for the first, until then.",
            labels,
            registry=registry,
        )
        self._brokers_missing = Gauge(
            "scalable_topics_load_brokers_missing",
            "Brokers of a connection that did not answer the last look.",
            labels,
            registry=registry,
        )
        self._segments = Gauge(
            "scalable_topics_load_segments",
            "Topics in the last look at a connection's brokers whose rates can be relied on.",
            labels,
            registry=registry,
        )
        self._unsettled = Gauge(
            "scalable_topics_load_unsettled_segments",
            "Topics in the last look at a connection's brokers that were loaded or unloaded a moment ago.",
            labels,
            registry=registry,
        )
        self._samples = Counter(
            "scalable_topics_load_samples",
            "Looks at a connection's brokers, by who made them: its pipeline, or the operator.",
            [*labels, "source"],
            registry=registry,
        )
        self._followed = Gauge(
            "scalable_topics_pipeline_followed",
            "Whether a connection's load is what its pipeline says (1) or what its brokers are asked for (0).",
            labels,
            registry=registry,
        )
        self._up = Gauge(
            "scalable_topics_pipeline_up",
            "Whether the pipeline of a connection runs, as its runner says; none of connections without one.",
            labels,
            registry=registry,
        )
        self._batch_seconds = Gauge(
            "scalable_topics_pipeline_batch_seconds",
            "How long the last batch of a connection's pipeline took, from its look at the brokers to its last record.",
            labels,
            registry=registry,
        )

    def show_age(self, connection: tuple[str, str], complete_at: float) -> None:
        """Show how old the last complete look is, from now on until there is another.

        Args:
            connection: its namespace and name.
            complete_at: monotonic time of that look; of when they began to be waited for, if there was none yet.
        """
        self._age_seconds.labels(*connection).set_function(lambda: time.monotonic() - complete_at)

    def sampled(self, connection: tuple[str, str], source: str, *, segments: int, unsettled: int, missing: int) -> None:
        """Show a new sample.

        Args:
            connection: its namespace and name.
            source: `PIPELINE` or `BROKERS`.
            segments: topics in it whose rates can be relied on.
            unsettled: those just loaded or unloaded.
            missing: brokers without an answer.
        """
        self._segments.labels(*connection).set(segments)
        self._unsettled.labels(*connection).set(unsettled)
        self._brokers_missing.labels(*connection).set(missing)
        # Both from the beginning, so that the first is seen to be one more than none.
        for one in (PIPELINE, BROKERS):
            self._samples.labels(*connection, one).inc(1 if one == source else 0)

    def show_followed(self, connection: tuple[str, str], *, followed: bool) -> None:
        """Show whether what a connection's pipeline says is fresh."""
        self._followed.labels(*connection).set(1 if followed else 0)

    def show_pipeline(self, connection: tuple[str, str], *, is_up: bool, batch_seconds: float | None) -> None:
        """Show a connection's pipeline itself; `batch_seconds` is None until a batch was seen."""
        self._up.labels(*connection).set(1 if is_up else 0)
        if batch_seconds is not None:
            self._batch_seconds.labels(*connection).set(batch_seconds)

    def hide_load(self, connection: tuple[str, str]) -> None:
        """Take away what is shown of a connection's load: it is gone, or another replica looks at its brokers."""
        for gauge in (self._age_seconds, self._segments, self._unsettled, self._brokers_missing, self._followed):
            remove(gauge, *connection)
        for source in (PIPELINE, BROKERS):
            remove(self._samples, *connection, source)

    def hide_pipeline(self, connection: tuple[str, str]) -> None:
        """Take away what is shown of a connection's pipeline."""
        for gauge in (self._up, self._batch_seconds):
            remove(gauge, *connection)
