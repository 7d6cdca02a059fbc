"""The report as it is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measurement import Better, Group, Measured, Measurement, Of, Target
from bench.report import Occasion, Report, from_json, rounded, to_json
from tests.unit.bench.reports import MACHINE, measured, occasion, rate

_TEXTS = st.text(min_size=1, max_size=8)
_VALUES = st.floats(0, 1e9).map(rounded)
_TARGETS = st.none() | st.builds(Target, _TEXTS, _VALUES, st.sampled_from(Of))
_MEASUREMENTS = st.builds(
    Measurement,
    _TEXTS,
    _TEXTS,
    st.lists(_VALUES, min_size=1, max_size=3).map(tuple),
    st.sampled_from([Better.HIGHER, Better.LOWER]),
    _TARGETS,
    st.booleans(),
)


@st.composite
def _groups(draw: st.DrawFn) -> Group:
    rows = draw(st.lists(_MEASUREMENTS, min_size=1, max_size=3, unique_by=lambda one: one.name))
    reference = draw(st.none() | st.sampled_from([one.name for one in rows]))
    return Group(draw(_TEXTS), tuple(rows), reference, reference is not None and draw(st.booleans()))


_MEASURED = st.builds(
    Measured,
    st.lists(_groups(), max_size=2, unique_by=lambda one: one.title).map(tuple),
    st.lists(_TEXTS, max_size=2).map(tuple),
)
_OCCASIONS = st.builds(
    Occasion, st.just(MACHINE), _TEXTS, _TEXTS, st.just("2026-11-30T15:59:21Z"), _VALUES, _VALUES, st.integers(1, 9)
)


@given(st.lists(st.tuples(st.sampled_from("ab"), _OCCASIONS, _MEASURED), max_size=3))
def test_what_is_kept_is_read_as_it_was(found: list[tuple[str, Occasion, Measured]]) -> None:
    report = Report()
    for key, when, what in found:
        report = report.with_result(key, when, what)
    assert from_json(to_json(report)) == report


def test_only_the_section_that_was_measured_changes() -> None:
    report = Report().with_result("a", occasion("1"), measured(rate("m", 1)))
    report = report.with_result("b", occasion("1"), measured(rate("m", 2)))
    after = report.with_result("b", occasion("2"), measured(rate("m", 3)))
    assert after.results["a"] == report.results["a"]
    assert after.results["b"].measured == measured(rate("m", 3))
    assert after.results["b"].before == report.results["b"]


def test_one_predecessor_is_kept() -> None:
    report = Report()
    for commit in "123":
        report = report.with_result("a", occasion(commit), measured(rate("m", 1)))
    before = report.results["a"].before
    assert before is not None
    assert (before.occasion.commit, before.before) == ("2", None)


def test_tiny_sizes_are_no_predecessor() -> None:
    report = Report().with_result("a", occasion(is_small=True), measured(rate("m", 1)))
    assert report.with_result("a", occasion(), measured(rate("m", 1))).results["a"].before is None


def test_values_are_kept_without_noise() -> None:
    report = Report().with_result("a", occasion(), measured(rate("m", 1 / 3, 1234567)))
    values = json.loads(to_json(report))["sections"]["a"]["measured"]["groups"][0]["measurements"][0]["values"]
    assert values == [0.333333, 1234567]


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        from_json(json.dumps({"version": 0, "sections": {}}))


def test_the_machine_is_part_of_the_occasion() -> None:
    other = replace(occasion(), machine=replace(MACHINE, cores=64))
    report = Report().with_result("a", other, measured(rate("m", 1)))
    assert from_json(to_json(report)).results["a"].occasion.machine.cores == 64
