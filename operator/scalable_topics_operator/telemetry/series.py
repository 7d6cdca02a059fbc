"""Series of metrics, one a combination of labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector


class _LabelledValues(Collector):
    """A metric whose series are entries of one dict.

    There are a dozen series for each topic, and of prometheus-client's each has locks, lists and a dict of its own:
    8 kB a topic, a fifth of all that a replica keeps of it. These have none, as only the event loop changes them.

    Args:
        name: of the metric; that of a counter without `_total`.
        documentation: what it says.
        labels: names of its labels.
        registry: where it is registered.
    """

    def __init__(self, name: str, documentation: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._values: dict[tuple[str, ...], float] = {}
        registry.register(self)

    def remove(self, *labels: str) -> None:
        """Take a series away, if there is one.

        Args:
            labels: its values, in the order of the metric's names.
        """
        self._values.pop(labels, None)

    def describe(self) -> Iterable[Metric]:
        """The metric without its series."""
        return (self._family(),)

    def collect(self) -> Iterator[Metric]:
        """The metric with all its series. May be called in any thread."""
        family = self._family()
        # A copy, which no other thread can change amid its making.
        for labels, value in self._values.copy().items():
            family.add_metric(labels, value)
        yield family

    def _family(self) -> CounterMetricFamily | GaugeMetricFamily:
        raise NotImplementedError


class LabelledGauge(_LabelledValues):
    """A gauge with many series."""

    def set(self, value: float, *labels: str) -> None:
        """Show a value.

        Args:
            value: what it is now.
            labels: of its series, in the order of the metric's names.
        """
        self._values[labels] = value

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(self._name, self._documentation, labels=self._labels)


class LabelledCounter(_LabelledValues):
    """A counter with many series."""

    def add(self, amount: float, *labels: str) -> None:
        """Count.

        Args:
            amount: how many more; 0 to show the series from its beginning.
            labels: of its series, in the order of the metric's names.
        """
        self._values[labels] = self._values.get(labels, 0) + amount

    def _family(self) -> CounterMetricFamily:
        return CounterMetricFamily(self._name, self._documentation, labels=self._labels)


def remove(metric: Counter | Gauge, *labels: str) -> None:
    """Take a series of one of prometheus-client's own metrics away, if there is one.

    Args:
        metric: of which.
        labels: its values, in the order of the metric's names.
    """
    with suppress(KeyError):
        metric.remove(*labels)
