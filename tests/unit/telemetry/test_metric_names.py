"""Names of metrics, by Prometheus' own rules, and that counters begin at 0."""

from __future__ import annotations

import re

from prometheus_client import generate_latest

from scalable_topics_operator.operations.journal import OperationKind, Result
from scalable_topics_operator.telemetry.metrics import Metrics, ReconcileResult
from scalable_topics_operator.telemetry.reference import metric_names, metrics_page
from tests.support.metrics import naming_problems


def test_promtool_finds_nothing_to_say_of_them() -> None:
    """Units, suffixes and helps, by `promtool check metrics`, which knows the naming practice."""
    assert naming_problems(generate_latest(Metrics(per_segment=True).registry).decode()) == ""
    for name in metric_names():
        assert name.startswith(("scalable_topics_", "pulsar_scalable_topic_")), name


def test_the_page_has_every_metric_that_is_exposed() -> None:
    exposed = set(re.findall(r"# TYPE (\S+) ", generate_latest(Metrics(per_segment=True).registry).decode()))
    exposed -= {name for name in exposed if name.endswith("_created")}
    assert metric_names() == exposed
    rows = re.findall(r"(?m)^\| `([a-z_]+)` \|", metrics_page())
    assert sorted(rows) == sorted(exposed)


def test_finished_operations_begin_at_zero() -> None:
    registry = Metrics().registry
    for kind in OperationKind:
        for result in Result:
            labels = {"kind": kind.value, "result": result.value}
            assert registry.get_sample_value("scalable_topics_operations_total", labels) == 0


def test_reconciles_of_a_kind_that_is_expected_begin_at_zero() -> None:
    metrics = Metrics()
    metrics.expect_kind("scalabletopics")
    for result in ReconcileResult:
        labels = {"kind": "scalabletopics", "result": result.value}
        assert metrics.registry.get_sample_value("scalable_topics_reconciles_total", labels) == 0
