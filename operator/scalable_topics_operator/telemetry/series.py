"""Series of metrics, one a combination of labels."""

from __future__ import annotations

from contextlib import suppress

from prometheus_client import Counter, Gauge


def remove(metric: Counter | Gauge, *labels: str) -> None:
    """Take a series away, if there is one.

    Args:
        metric: of which.
        labels: its values, in the order of the metric's names.
    """
    with suppress(KeyError):
        metric.remove(*labels)
