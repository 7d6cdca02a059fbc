"""The table of an operator beside the bare loop that sends the same calls."""

from __future__ import annotations

from bench.judging import comparisons, targets
from bench.topic_calls import OPERATOR, beside_bare


def test_the_operator_stands_beside_the_bare_loop_and_has_to_come_near_to_it() -> None:
    group = beside_bare("Table", [10, 20], [12, 13])
    (comparison,), (target,) = comparisons([group]), targets([group])
    assert (comparison.measurement.name, comparison.ratio) == (OPERATOR, 12.5 / 15)
    assert (target.target.limit, target.value, target.is_met) == (0.8, 12.5 / 15, True)


def test_where_the_bare_loop_was_not_run_there_is_nothing_to_reach() -> None:
    group = beside_bare("Table", [], [12])
    assert [one.name for one in group.measurements] == [OPERATOR]
    assert not list(targets([group]))
