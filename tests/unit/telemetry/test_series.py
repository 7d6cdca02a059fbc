"""Metrics whose series are entries of a dict, beside prometheus-client's own."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from scalable_topics_operator.telemetry.series import LabelledCounter, LabelledGauge, remove

_LABELS = ("topic", "subscription")
_series = st.tuples(st.sampled_from(["a", 'b"\n\\']), st.sampled_from(["", "x"]))
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), _series, st.floats(allow_nan=False)),
        st.tuples(st.just("add"), _series, st.integers(0, 1000)),
        st.tuples(st.just("remove"), _series, st.just(0)),
    ),
    max_size=30,
)


@given(_steps)
def test_a_page_is_as_with_the_clients_own(steps: list[tuple[str, tuple[str, str], float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    gauge, counter = (
        LabelledGauge("backlog", "What waits.", _LABELS, registry=ours),
        LabelledCounter("splits", "Splits.", _LABELS, registry=ours),
    )
    their_gauge, their_counter = (
        Gauge("backlog", "What waits.", _LABELS, registry=theirs),
        Counter("splits", "Splits.", _LABELS, registry=theirs),
    )
    for what, labels, value in steps:
        if what == "set":
            gauge.set(value, *labels)
            their_gauge.labels(*labels).set(value)
        elif what == "add":
            counter.add(value, *labels)
            their_counter.labels(*labels).inc(value)
        else:
            gauge.remove(*labels)
            counter.remove(*labels)
            remove(their_gauge, *labels)
            remove(their_counter, *labels)
    assert _page(ours) == _page(theirs)


def _page(registry: CollectorRegistry) -> set[str]:
    """Its lines, but for the times at which the client's own counters were made."""
    return {line for line in generate_latest(registry).decode().splitlines() if "_created" not in line}


def test_a_name_is_taken_once() -> None:
    registry = CollectorRegistry()
    LabelledCounter("splits", "Splits.", _LABELS, registry=registry)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        LabelledGauge("splits_total", "Others.", _LABELS, registry=registry)


def test_ten_thousand_topics_have_room() -> None:
    gauge = LabelledGauge("backlog", "What waits.", ["topic"], registry=CollectorRegistry())
    topics = [f"topic://tenant/namespace/topic-{number}" for number in range(10_000)]
    tracemalloc.start()
    try:
        for topic in topics:
            gauge.set(float(len(topic)), topic)
        assert tracemalloc.get_traced_memory()[0] / len(topics) < 250
    finally:
        tracemalloc.stop()
