"""The formulas of growth, held to the operator's own control plane in virtual time at a size that takes seconds."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from bench.growth import Costs, Fleet
from bench.growth_formulas import FORMULAS, replica_bytes, replica_cores
from bench.growth_limits import LIMITS, PLANS, first_limits
from bench.measurement import Better, Group, Measured, Measurement
from bench.report import Report, to_json
from tests.simulation.growth.counting import count_calls
from tests.simulation.growth.scenarios import tell
from tests.simulation.growth.whole import TopicShape
from tests.unit.bench.reports import occasion

_COSTS = Costs()
# At rest exact counts, in a start or a failover what is rounded to whole shards and turns of the election.
_LEAST, _MOST = 0.6, 1.6


def test_the_costs_that_are_counts_are_what_the_operators_code_asks() -> None:
    """Whoever adds a call to a comparison with the brokers adds it to that of a million topics."""
    counted = count_calls(1, TopicShape(segments=10, subscriptions=2))
    assert counted.create.broker == pytest.approx(_COSTS.create_calls, abs=2)
    # The first comparison of a single topic is made at once, and with it all that a take-over asks for.
    assert counted.take_over.broker == pytest.approx(_COSTS.drift_calls, abs=2)
    assert _COSTS.take_over_calls < _COSTS.drift_calls
    assert counted.drift_look.broker == pytest.approx(_COSTS.drift_calls, abs=2)
    assert counted.split.broker == pytest.approx(_COSTS.split_calls, abs=2)
    assert (counted.create.writes, counted.split.writes) == (_COSTS.create_writes, _COSTS.split_writes)
    assert (counted.take_over.writes, counted.drift_look.writes, counted.drift_look.reads) == (0, 0, 0)
    assert counted.object_bytes == pytest.approx(_COSTS.object_bytes, rel=0.1)
    assert counted.object_bytes_with_history == pytest.approx(_COSTS.history_bytes, rel=0.1)


def test_paper_and_simulation_agree() -> None:
    story = tell(Fleet(400, replicas=3, shards=12), _COSTS)
    ratios = {one.what: round(one.ratio, 2) for one in story.compared}
    assert all(_LEAST <= ratio <= _MOST for ratio in ratios.values()), ratios
    # Nobody is starved: a topic is decided on every minute, whatever happens to others.
    assert max(seen.longest_unseen_seconds for seen in story.seen) < 60 + 30
    assert story.late_latency < 2


def test_each_plan_keeps_to_what_one_replica_can_be() -> None:
    for plan in PLANS.values():
        assert replica_cores(_COSTS, plan) < 0.6
        assert replica_bytes(_COSTS, plan) < 4e9
        for limit in LIMITS:
            if "after" not in limit.what:
                assert limit.value(_COSTS, plan) <= limit.most(_COSTS, plan), (plan.topics, limit.what)


def test_limits_are_met_in_order_and_each_is_one() -> None:
    found = first_limits(_COSTS, Fleet(1))
    assert [topics for _, topics in found] == sorted(topics for _, topics in found)
    for limit, topics in found:
        below, beyond = replace(Fleet(1), topics=topics), replace(Fleet(1), topics=round(topics * 1.02) + 2)
        assert limit.value(_COSTS, below) <= limit.most(_COSTS, below)
        assert limit.value(_COSTS, beyond) > limit.most(_COSTS, beyond)


def test_the_page_on_scale_has_these_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    rows = page.partition("## First limits")[2].partition("##")[0].splitlines()
    shown = [int(row.split("|")[1].replace(",", "")) for row in rows if row.startswith("| ") and row[2].isdigit()]
    assert shown == pytest.approx([topics for _, topics in first_limits(_COSTS, Fleet(1))], rel=0.05)


def test_costs_come_from_the_report_of_the_benchmarks_where_it_has_them(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.json"
    assert _COSTS.with_report(path) == _COSTS
    rows = (Measurement("1,000 sessions, TLS", "KiB", (60, 40, 50), Better.LOWER),)
    found = Measured((Group("Resident memory of a session", rows),))
    path.write_text(to_json(Report().with_result("watching", occasion(), found)))
    assert _COSTS.with_report(path) == replace(_COSTS, session_bytes=50 * 1024)


def test_every_cost_says_where_it_comes_from_and_every_formula_has_a_value_of_its_own() -> None:
    assert all(one.metadata["where"] and one.metadata["unit"] and one.metadata["spread"] for one in fields(Costs))
    assert len({(one.part, one.name) for one in FORMULAS}) == len(FORMULAS)
