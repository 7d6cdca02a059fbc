"""What the chart's alerts and dashboards ask Prometheus for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dev.chart_values import CHART

_NAMES = re.compile(r"\b(?:scalable_topics|pulsar_scalable_topic)_\w+")


def dashboard_expressions() -> Iterator[str]:
    """Of all panels and variables."""
    for _, expression in panel_expressions():
        yield expression
    for _, dashboard in _dashboards():
        for variable in dashboard["templating"]["list"][1:]:
            yield variable["query"]["query"]


def panel_expressions() -> Iterator[tuple[str, str]]:
    """Of all panels, which are PromQL; each with what a rule of it may be called: dashboard, panel and query."""
    for name, dashboard in _dashboards():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                yield f"{name.replace('-', '_')}:{panel['id']}:{target['refId'].lower()}", target["expr"]


def alert_expressions(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of all alerts of a rendered chart."""
    for rule in documents:
        if rule["kind"] == "PrometheusRule":
            for group in rule["spec"]["groups"]:
                yield from (alert["expr"] for alert in group["rules"])


def metrics_in(expression: str) -> set[str]:
    """Names of our metrics in an expression, with `_bucket` and its like."""
    return set(_NAMES.findall(expression))


def _dashboards() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted((CHART / "files" / "dashboards").glob("*.json")):
        yield file.stem, json.loads(file.read_text())
