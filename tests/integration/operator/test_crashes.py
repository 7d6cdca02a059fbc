"""kill -9 of the operator in the middle of its work (R8, R9, hazards B1, B2, B6, C1, C29).

`tests/long` has every kind of work with every kind of death; here are those that differ most from each other.
"""

from __future__ import annotations

from itertools import chain

import pytest

from tests.support.crash_scenarios import Scenario, survive
from tests.support.crash_steps import Death, Kind
from tests.support.proxied_operator import ProxiedOperator

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = (
    *((Kind.SPLIT, death) for death in Death),
    *((Kind.MERGE, death) for death in Death),
    (Kind.CREATE, Death.AFTER),
    (Kind.REBUCKET, Death.LATE),
    (Kind.ROLLBACK, Death.AFTER),
    (Kind.PRUNE, Death.AFTER),
    (Kind.UNSUBSCRIBE, Death.BEFORE),
    (Kind.DELETE, Death.AFTER),
)


@pytest.mark.parametrize(("kind", "death"), CASES)
async def test_work_survives_the_death_of_the_operator_at_every_step(
    bench: ProxiedOperator, kind: Kind, death: Death
) -> None:
    await survive(bench, kind, death)


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
