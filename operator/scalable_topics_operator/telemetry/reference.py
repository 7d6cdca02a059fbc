"""The page of the metrics, written from the registry."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from scalable_topics_operator.telemetry.metrics import Metrics

METRICS_PAGE = "metrics.md"

_INTRODUCTION = """\
# Metrics of the operator

Served at `/metrics` of every replica, on the port of `--bind-port`. This page is generated from the program.
[running.md](../running.md#health-and-metrics) says what to look at, [runbooks](../runbooks/README.md) what to do when
one of the chart's alerts fires.

- Names end in their unit; counters end in `_total`; times of the day are seconds since 1970.
- `topic` is the canonical name, `topic://tenant/namespace/name`. Where there are `namespace` and `name`, they are those
  of a ScalableTopicConnection: have Prometheus keep them (`honorLabels`, as the chart's monitors do).
- `connection` is that of a topic, `namespace/name`: topics of several Pulsar clusters may have one name.
- Only the replica that leads a topic, or a connection, shows its series; all replicas show those of the process and
  `scalable_topics_connection_up`. Sum or take the maximum over replicas.
- Counters begin at 0 with what they are about, so that `increase()` sees the first event.

"""
_TOPICS = """\
Off with `--per-topic-metrics=false`, but for `scalable_topics_operation_start_timestamp_seconds`, of which there are as
many series as operations under way. Those with the label `segment` are there only with `--per-segment-metrics`.

"""
_SECTIONS = (("Topics", "topic", _TOPICS), ("Connections", "name", ""), ("The process", "", ""))


def metrics_page() -> str:
    """The page as Markdown; the same on every run."""
    found = list(_families())
    parts = [_INTRODUCTION]
    for heading, label, text in _SECTIONS:
        parts += [f"## {heading}\n\n", text, "| metric | type | labels | meaning |\n|---|---|---|---|\n"]
        parts += [_row(family, labels) for family, labels in found if _subject(labels) == label]
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def metric_names() -> frozenset[str]:
    """Names of all families, as they are exposed: counters with `_total`."""
    return frozenset(_shown_name(family) for family, _ in _families())


def _families() -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """All families, sorted by name, with their labels."""
    registry = Metrics(per_topic=True, per_segment=True).registry
    found = [(family, _labels(one, family)) for one in registry._collector_to_names for family in _described(one)]
    return iter(sorted(found, key=lambda pair: pair[0].name))


def _described(collector: Collector) -> Iterator[Metric]:
    describe = getattr(collector, "describe", collector.collect)
    return iter(describe())


def _labels(collector: Collector, family: Metric) -> tuple[str, ...]:
    return tuple(getattr(family, "_labelnames", ()) or getattr(collector, "_labelnames", ()))


def _subject(labels: tuple[str, ...]) -> str:
    return "topic" if "topic" in labels else "name" if "name" in labels else ""


def _shown_name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _row(family: Metric, labels: tuple[str, ...]) -> str:
    named = ", ".join(f"`{label}`" for label in labels)
    return f"| `{_shown_name(family)}` | {family.type} | {named} | {family.documentation} |\n"
