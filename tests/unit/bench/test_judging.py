"""What is met, ahead, behind and worse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.judging import Change, Standing, changes, comparisons, targets
from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.report import Report
from tests.unit.bench.reports import at_least_share, beside_peer, count, delay, measured, occasion, rate

_VALUES = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=5).map(tuple)
_WAYS = st.sampled_from([Better.HIGHER, Better.LOWER])


@pytest.mark.parametrize(("value", "is_met"), [(100, True), (99, True), (101, False)])
def test_a_target_is_the_most_where_lower_is_better(value: float, is_met: bool) -> None:
    (outcome,) = targets([Group("Table", (delay("stall", value, target=Target("at most 100 ms", 100)),))])
    assert (outcome.value, outcome.is_met) == (value, is_met)


@pytest.mark.parametrize(("ours", "is_met"), [(95, True), (94, False)])
def test_a_target_may_be_about_the_ratio(ours: float, is_met: bool) -> None:
    group = beside_peer(rate("peer", 100), rate("ours", ours, target=at_least_share(0.95)))
    (outcome,) = targets([group])
    assert (outcome.value, outcome.is_met) == (ours / 100, is_met)


def test_a_target_without_a_ratio_is_missed() -> None:
    (outcome,) = targets([beside_peer(rate("peer", 0), rate("ours", 1, target=at_least_share(0.95)))])
    assert (outcome.value, outcome.is_met) == (None, False)


@pytest.mark.parametrize(
    ("peer", "ours", "standing"),
    [
        ((100, 110), (120, 130), Standing.AHEAD),
        ((100, 110), (80, 90), Standing.BEHIND),
        ((100, 130), (120, 140), Standing.LEVEL),
        ((100, 101), (102, 103), Standing.LEVEL),
    ],
)
def test_standing_beside_a_peer(peer: tuple[float, ...], ours: tuple[float, ...], standing: Standing) -> None:
    (found,) = comparisons([beside_peer(rate("peer", *peer), rate("ours", *ours))])
    assert found.standing is standing


def test_sizes_are_no_peers_and_what_goes_nowhere_is_not_judged() -> None:
    sizes = Group("Sizes", (rate("4", 100), rate("64", 10)), reference="4")
    size = Measurement("ours", "messages/s", (5,), Better.NEITHER)
    assert not list(comparisons([sizes, beside_peer(rate("peer", 100), size)]))


def test_worse_than_in_the_report_before() -> None:
    before = Report().with_result("one", occasion("a"), measured(rate("a", 100, 101), rate("b", 100), delay("c", 10)))
    after = before.with_result("one", occasion("b"), measured(rate("a", 80, 85), rate("b", 95), delay("c", 12)))
    found = {one.now.name: one.is_worse for one in changes(after.results["one"])}
    assert found == {"a": True, "b": False, "c": True}


def test_what_is_new_or_in_another_unit_has_no_change() -> None:
    before = Report().with_result("one", occasion("a"), measured(rate("a", 1)))
    now = measured(replace(rate("a", 1), unit="kB/s"), rate("b", 1))
    assert not list(changes(before.with_result("one", occasion("b"), now).results["one"]))
    elsewhere = Measured((Group("Another", (rate("a", 1),)),))
    assert not list(changes(before.with_result("one", occasion("b"), elsewhere).results["one"]))


def test_counts_are_told_of_whichever_way_they_go() -> None:
    assert Change("Table", count("calls", 11), count("calls", 12)).is_other_count
    assert Change("Table", count("calls", 12), count("calls", 11)).is_other_count
    assert not Change("Table", count("calls", 11), count("calls", 11)).is_other_count
    assert not Change("Table", delay("wait", 11), delay("wait", 12)).is_other_count


@given(_VALUES, _VALUES, _WAYS)
def test_of_two_reports_at_most_one_is_worse(now: tuple[float, ...], before: tuple[float, ...], way: Better) -> None:
    one, other = Measurement("m", "u", now, way), Measurement("m", "u", before, way)
    assert not (Change("t", one, other).is_worse and Change("t", other, one).is_worse)
    assert not Change("t", one, one).is_worse


@given(_VALUES, _WAYS)
def test_rounds_that_overlap_are_never_worse(values: tuple[float, ...], way: Better) -> None:
    now = Measurement("m", "u", (values[0], values[0] * 100), way)
    assert not Change("t", now, Measurement("m", "u", values, way)).is_worse
