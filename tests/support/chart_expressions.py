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
    for file in sorted((CHART / "files" / "dashboards").glob("*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))
        for variable in dashboard["templating"]["list"][1:]:
            yield variable["query"]["query"]


def alert_expressions(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of all alerts of a rendered chart."""
    for rule in documents:
        if rule["kind"] == "PrometheusRule":
            for group in rule["spec"]["groups"]:
                yield from (alert["expr"] for alert in group["rules"])


def metrics_in(expression: str) -> set[str]:
    """Names of our metrics in an expression, with `_bucket` and its like."""
    return set(_NAMES.findall(expression))
