"""kill -9 of the operator in the middle of its work (R8, R9, hazards B1, B2, B6, C1, C29).

`tests/long` has every kind of work with every kind of death; here are those that differ most from each other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import chain

import pytest
import pytest_asyncio

from dev.access import KubernetesAccess, PulsarAccess
from tests.support.crash_scenarios import Scenario, survive
from tests.support.crash_steps import STEPS, Death, Kind
from tests.support.proxied_operator import ProxiedOperator, proxied_operator
from tests.support.running_operator import FAST_FLAGS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undying(
    kube_environment: KubernetesAccess, pulsar: PulsarAccess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProxiedOperator]:
    """One that nobody kills: a lapse of its Lease on a busy machine would be a death, and roll back."""
    flags = (*FAST_FLAGS, "--drift-seconds=8", "--lease-seconds=15")
    async with proxied_operator(pulsar, tmp_path_factory.mktemp("undying"), flags) as made:
        yield made


# Together they come through one death: each is one topic, held at that step.
CHOSEN = {
    Kind.CREATE: ("journal opened", "claim made", "last segment made", "layout committed"),
    Kind.SPLIT: (
        "journal opened",
        "first segment made",
        "last cursor made",
        "point of no return",
        "first parent sealed",
        "layout committed",
        "shown as done",
    ),
    Kind.MERGE: (
        "journal opened",
        "point of no return",
        "first parent sealed",
        "last parent sealed",
        "layout committed",
    ),
    Kind.REBUCKET: ("first parent sealed",),
    Kind.PRUNE: ("segment left the layout", "segment deleted"),
    Kind.SUBSCRIBE: ("first cursor made",),
    Kind.UNSUBSCRIBE: ("last cursor deleted",),
    Kind.SEEK: ("journal opened", "first cursor moved", "journal closed"),
    Kind.SKIP_ALL: ("last cursor moved",),
    Kind.RESTORE: ("consumers have let go", "first cursor moved"),
    Kind.DELETE: ("first segment deleted", "claim deleted"),
}

# What clients are told (R13, R20). Apart, because each held call takes a place in the operator.
TOLD = {
    Kind.CREATE: ("layout topic made", "layout topic kept", "layout published"),
    Kind.SPLIT: ("seal announced", "announcement published", "layout published"),
}


@pytest.mark.parametrize("chosen", [CHOSEN, TOLD], ids=["work", "telling"])
@pytest.mark.parametrize("death", Death)
async def test_work_survives_the_death_of_the_operator(
    bench: ProxiedOperator, death: Death, chosen: dict[Kind, tuple[str, ...]]
) -> None:
    """Hazards B1, B2, B6, C1 and C29. Of the three deaths each step has one here, and all in the crash matrix."""
    steps = [(kind, step) for kind, names in chosen.items() for step in STEPS[kind] if step.name in names]
    assert len(steps) == sum(map(len, chosen.values()))
    deaths = list(Death)
    await survive(bench, steps[deaths.index(death) :: len(deaths)], death)


async def test_a_migration_survives_the_death_of_the_operator(bench: ProxiedOperator) -> None:
    """Hazard B17."""
    chosen = (
        "journal opened",
        "claim made",
        "last cursor made",
        "announcement published",
        "point of no return",
        "first partition sealed",
        "last partition sealed",
        "layout committed",
    )
    steps = [(Kind.MIGRATE, step) for step in STEPS[Kind.MIGRATE] if step.name in chosen]
    assert len(steps) == len(chosen)
    await survive(bench, steps, Death.AFTER)


async def test_a_roll_back_survives_the_death_of_the_operator(bench: ProxiedOperator) -> None:
    await survive(bench, [(Kind.ROLLBACK, step) for step in STEPS[Kind.ROLLBACK]], Death.AFTER)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.ROLLBACK])
async def test_every_write_of_the_work_is_a_step_an_operator_is_killed_at(undying: ProxiedOperator, kind: Kind) -> None:
    bench, scenario = undying, Scenario.of(kind, undying)
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
    # A prune needs a topic that was just split, and a sealed segment may be pruned before one looks.
    also = {Kind.PRUNE: Kind.SPLIT, Kind.SPLIT: Kind.PRUNE, Kind.MERGE: Kind.PRUNE, Kind.REBUCKET: Kind.PRUNE}
    known = steps + (scenario.steps_of(also[kind]) if kind in also else [])
    assert [str(call) for call in made if not any(step.is_like(call) for step in known)] == []
    assert [step.name for step in steps if sum(map(step.is_like, made)) <= step.number] == []
    await scenario.verify()
