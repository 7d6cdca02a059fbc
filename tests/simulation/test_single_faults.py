"""Every story is told with one fault at each call, to brokers and store, one at a time.

Of faults that come in several degrees the default run takes one degree a call, in turn, and of all those every third;
SIMULATION_THOROUGH=1 takes all of them.
"""

from __future__ import annotations

import os
from itertools import islice

import pytest

from tests.simulation.explore import SimulationFailed, calls_of, single_faults, tell, tell_with
from tests.simulation.faults import Fault, FaultKind, NoFaults
from tests.simulation.scripts import SCRIPTS, Script

# Shares no factor with the number of kinds of fault, so that each kind is met all along a story.
_STRIDE = 3
_THOROUGH = bool(os.environ.get("SIMULATION_THOROUGH"))


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_story_without_faults(script: Script) -> None:
    world = tell(script, NoFaults())
    assert world.calls_under_plan > 0


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_any_one_fault_at_any_call(script: Script) -> None:
    """R8, R9, R11, R14, R16, R19; hazards A1-26680, A1-26678, A1-26048, A1-26008, A1-25717b, A1-25719a, A1-25719b,
    A3-25668, B1, B2, B6, C14, C29 and C67.
    """
    told = 0
    stride = 1 if _THOROUGH else _STRIDE
    for call, fault in islice(single_faults(script, thorough=_THOROUGH), 0, None, stride):
        tell_with(script, call, fault)
        told += 1
    assert told > 10


def test_a_failure_says_what_happened() -> None:
    """The trace names every call up to the fault and after it, so that a failure can be read."""
    script = next(script for script in SCRIPTS if script.name == "split")
    call = next(call for call in calls_of(script) if call.verb == "terminate")
    impossible = Script("impossible", script.setup, script.acts, ("0000-0000",))
    with pytest.raises(SimulationFailed) as failure:
        tell_with(impossible, call, Fault(FaultKind.CRASH_AFTER))
    text = str(failure.value)
    assert text.startswith(f"CRASH_AFTER(0) at {call} of impossible: AssertionError: the active ranges are")
    assert f"p1 {call} !! CRASH_AFTER(0)" in text
    assert "p2 #" in text, "another process went on"
