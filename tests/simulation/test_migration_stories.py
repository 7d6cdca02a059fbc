"""Stories of an ordinary topic whose migration is called off, and tried again, that must end in one particular way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from scalable_topics_operator.operations.journal import Step
from tests.simulation.faults import WHEN_QUIET, Call, Fault, FaultKind, NoFaults
from tests.simulation.model_store import TopicObject
from tests.simulation.run import Run, check_end
from tests.simulation.scripts import INTENT
from tests.simulation.world import World


class InTurn(NoFaults):
    """Faults that come one after the other, each at the first call after the one before that is meant."""

    def __init__(self, *faults: tuple[Callable[[Call], bool], Fault]) -> None:
        self._left = list(faults)

    def at(self, call: Call) -> Fault | None:
        if not self._left or not self._left[0][0](call):
            return None
        return self._left.pop(0)[1]


def _is(verb: str, target: str = "") -> Callable[[Call], bool]:
    return lambda call: call.verb == verb and target in call.target


def _declared(plan: NoFaults) -> tuple[Run, TopicObject]:
    """A topic of two partitions that is to be migrated."""
    run = Run(World())
    run.world.make_ordinary(2)
    body = run.world.declare(replace(INTENT, initial_segments=1, migrates=True))
    run.world.plan = plan
    return run, body


def _verbs(world: World) -> Sequence[str]:
    return [call.verb for call in world.calls]


async def test_r8_whoever_was_deposed_undoes_no_later_migration() -> None:
    """What the later one has claimed is the same object's, and the layout topic has the same name."""
    run, body = _declared(
        InTurn(
            (_is("create"), Fault(FaultKind.CRASH_BEFORE)),
            (_is("record"), Fault(FaultKind.DEPOSED, WHEN_QUIET)),
        )
    )
    await run.settle()
    assert body.state.layout is not None
    await run.calm()
    assert body.state.migrated_from is not None
    assert _verbs(run.world).count("let_go") == 1, "by the one that took over"
    check_end(run.world)
