"""What a measurement and a table of them are."""

from __future__ import annotations

import pytest

from bench.measurement import Better, Group, Measured, Measurement, Target
from tests.unit.bench.reports import delay, rate


def test_median_and_spread() -> None:
    one = rate("ours", 3, 1, 2)
    assert (one.median, one.lowest, one.highest) == (2, 1, 3)


def test_a_measurement_needs_a_value() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        rate("ours")


def test_a_target_needs_a_way_to_go() -> None:
    with pytest.raises(ValueError, match="needs a way"):
        Measurement("size", "bytes", (1,), Better.NEITHER, Target("small", 1))


def test_better_is_judged_by_the_way_values_are_to_go() -> None:
    assert rate("ours", 1).is_better(2, 1)
    assert delay("ours", 1).is_better(1, 2)
    assert not delay("ours", 1).is_better(1, 1)
    neither = Measurement("size", "bytes", (1,), Better.NEITHER)
    assert not neither.is_better(1, 2)
    assert not neither.is_better(2, 1)


def test_ratios_are_those_of_medians_in_the_same_unit() -> None:
    group = Group("Table", (rate("peer", 90, 100, 110), rate("ours", 50), delay("wait", 5)), reference="peer")
    peer, ours, wait = group.measurements
    assert group.ratio(ours) == 0.5
    assert group.ratio(peer) is None
    assert group.ratio(wait) is None


def test_there_is_no_ratio_to_nothing() -> None:
    assert Group("Table", (rate("peer", 0), rate("ours", 1)), reference="peer").ratio(rate("ours", 1)) is None
    assert Group("Table", (rate("ours", 1),)).ratio(rate("ours", 1)) is None


@pytest.mark.parametrize(
    ("rows", "reference", "is_peer"),
    [
        ((rate("ours", 1), rate("ours", 2)), None, False),
        ((rate("ours", 1),), "theirs", False),
        ((rate("ours", 1),), None, True),
    ],
)
def test_a_table_must_fit_together(rows: tuple[Measurement, ...], reference: str | None, is_peer: bool) -> None:
    with pytest.raises(ValueError, match="Table"):
        Group("Table", rows, reference, is_peer)


def test_titles_of_tables_are_unique() -> None:
    with pytest.raises(ValueError, match="twice"):
        Measured((Group("Table", (rate("ours", 1),)), Group("Table", (rate("ours", 1),))))
