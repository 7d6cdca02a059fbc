"""Tells a script once without faults, and then again and again with them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from functools import cache

from tests.simulation.faults import Call, Fault, FaultKind, FaultPlan, NoFaults, OneFault, possible_faults
from tests.simulation.run import Run, check_end
from tests.simulation.scripts import Script
from tests.simulation.world import World

_MAY_CHANGE_THE_END = frozenset({FaultKind.DENIED, FaultKind.DROPPED, FaultKind.REPLACED, FaultKind.RESTORED})


class SimulationFailed(AssertionError):
    """A run in which something that must never be was; the text holds the trace."""


def tell(script: Script, plan: FaultPlan, *, strict: bool = True) -> World:
    """Run a script under a plan; answers the world it ends in. Raises SimulationFailed.

    Args:
        script: the story.
        plan: what goes wrong during its acts.
        strict: whether it must end as the script says.
    """
    run = pickle.loads(_prepared(script))
    world: World = run.world
    try:
        asyncio.run(_tell(script, run, plan, strict=strict))
    except BaseException as error:
        trace = "\n".join([*world.trace[-120:], *(f"   event {event}" for event in world.events[-10:])])
        raise SimulationFailed(f"{script}: {type(error).__name__}: {error}\n{trace}") from error
    return world


@cache
def _prepared(script: Script) -> bytes:
    """The run as it is after the script's setup."""
    run = Run(World())

    async def set_up() -> None:
        for act in script.setup:
            act(run.world)
            await run.settle()

    asyncio.run(set_up())
    run.world.trace.clear()
    run.world.calls.clear()
    for body in run.world.objects:
        body.forget_what_was_read()
    return pickle.dumps(run)


async def _tell(script: Script, run: Run, plan: FaultPlan, *, strict: bool) -> None:
    world = run.world
    world.plan = plan
    for act in script.acts:
        act(world)
        await run.settle()
    world.calls_under_plan = len(world.calls)
    await run.calm()
    check_end(world)
    if strict:
        script.check(world)
        bodies = [body for body in world.objects if not body.gone]
        layout = bodies[0].state.layout if bodies else None
        ranges = tuple(one.hash_range.descriptor for one in layout.active) if layout else ()
        assert ranges == tuple(script.ranges), f"the active ranges are {ranges}"


def prepare(script: Script) -> None:
    """Run a script's setup now, if it was not run yet."""
    _prepared(script)


def calls_of(script: Script) -> list[Call]:
    """Every call of a script without faults."""
    world = tell(script, NoFaults())
    return world.calls[: world.calls_under_plan]


def single_faults(script: Script, *, thorough: bool = True) -> Iterator[tuple[Call, Fault]]:
    """Every fault at every call of a script, one at a time; see `possible_faults`."""
    calls = calls_of(script)
    for call in calls if thorough else calls[:: script.stride]:
        for fault in possible_faults(call, thorough=thorough):
            yield call, fault


def tell_with(script: Script, call: Call, fault: Fault) -> World:
    """Run a script with one fault. Raises SimulationFailed, naming them."""
    try:
        return tell(script, OneFault(call.index, fault), strict=not _may_change_the_end(script, fault))
    except SimulationFailed as failure:
        raise SimulationFailed(f"{fault} at {call} of {failure}") from failure.__cause__


def _may_change_the_end(script: Script, fault: Fault) -> bool:
    """Whether a request may end as Failed, something is lost for good, or comes back after its owner is gone."""
    if fault.kind is FaultKind.WIPED:
        return script.needs_status
    if fault.kind is FaultKind.RESURRECTED:
        return not script.ranges
    return fault.kind in _MAY_CHANGE_THE_END
