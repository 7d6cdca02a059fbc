"""kill -9 of the operator in the middle of its work (R8, R9, hazards B1, B2, B6, C1, C29).

`tests/long` has every step of every kind of work; here are the ones that differ most from each other.
"""

from __future__ import annotations

from itertools import chain

import pytest

from tests.support.crash_scenarios import Scenario
from tests.support.crash_steps import STEPS, Death, Kind
from tests.support.proxied_operator import ProxiedOperator

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = (
    (Kind.CREATE, "journal opened", Death.AFTER),
    (Kind.CREATE, "claim made", Death.AFTER),
    (Kind.CREATE, "last segment made", Death.LATE),
    (Kind.CREATE, "layout committed", Death.BEFORE),
    (Kind.SPLIT, "journal opened", Death.BEFORE),
    (Kind.SPLIT, "journal opened", Death.AFTER),
    (Kind.SPLIT, "first segment made", Death.LATE),
    (Kind.SPLIT, "last cursor made", Death.LATE),
    (Kind.SPLIT, "point of no return", Death.BEFORE),
    (Kind.SPLIT, "point of no return", Death.AFTER),
    (Kind.SPLIT, "first parent sealed", Death.BEFORE),
    (Kind.SPLIT, "first parent sealed", Death.AFTER),
    (Kind.SPLIT, "layout committed", Death.LATE),
    (Kind.SPLIT, "layout committed", Death.AFTER),
    (Kind.SPLIT, "shown as done", Death.BEFORE),
    (Kind.MERGE, "last cursor made", Death.AFTER),
    (Kind.MERGE, "point of no return", Death.LATE),
    (Kind.MERGE, "first parent sealed", Death.AFTER),
    (Kind.MERGE, "last parent sealed", Death.BEFORE),
    (Kind.MERGE, "layout committed", Death.BEFORE),
    (Kind.ROLLBACK, "turning back", Death.AFTER),
    (Kind.ROLLBACK, "last child deleted", Death.LATE),
    (Kind.REBUCKET, "first parent sealed", Death.LATE),
    (Kind.PRUNE, "segment left the layout", Death.AFTER),
    (Kind.PRUNE, "segment deleted", Death.AFTER),
    (Kind.DELETE, "first segment deleted", Death.BEFORE),
    (Kind.DELETE, "claim deleted", Death.AFTER),
)


@pytest.mark.parametrize(("kind", "step", "death"), CASES)
async def test_work_survives_the_death_of_the_operator(
    bench: ProxiedOperator, kind: Kind, step: str, death: Death
) -> None:
    chosen = next(known for known in STEPS[kind] if known.name == step)
    await Scenario.of(kind, bench).survive(chosen, death)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.ROLLBACK])
async def test_every_write_of_the_work_is_a_step_an_operator_is_killed_at(bench: ProxiedOperator, kind: Kind) -> None:
    scenario = Scenario.of(kind, bench)
    await bench.start()
    await scenario.prepare()
    kube_before, admin_before = len(bench.kube.seen), len(bench.admin.seen)
    await scenario.ask()
    await scenario.until_done()
    made = [
        call
        for call in chain(bench.kube.writes(kube_before), bench.admin.writes(admin_before))
        if f"/{scenario.name}" in call.path or f'"name": "{scenario.name}' in call.body
    ]
    steps = scenario.steps_of(kind)
    # A topic that had just been split is what a prune needs.
    known = steps + (scenario.steps_of(Kind.SPLIT) if kind is Kind.PRUNE else [])
    assert [str(call) for call in made if not any(step.is_like(call) for step in known)] == []
    assert [step.name for step in steps if sum(map(step.is_like, made)) <= step.number] == []
    await scenario.verify()
