"""The real operations on a model broker and a model store, with something going wrong at every step.

`SIMULATION_FAULTS=0 SIMULATION_SEEDS=2000 make test-simulation` tells all of it; a failure says how to tell it again.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.conftest import faults_per_script
from tests.simulation.explore import single_faults, tell, tell_with
from tests.simulation.faults import NoFaults
from tests.simulation.random_story import tell_random
from tests.simulation.scripts import SCRIPTS, Script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_story_without_faults_ends_as_it_says(script: Script) -> None:
    tell(script, NoFaults())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_one_fault_at_any_call_breaks_nothing(script: Script) -> None:
    """R8, R9, R11, R14, R16-R19: a crash, a lost reply, a late effect, a stale write or a refusal at each call."""
    everything = list(single_faults(script))
    wanted = faults_per_script() or len(everything)
    stride = max(1, len(everything) // wanted)
    # A stride that shares no factor with the number of kinds meets every kind at every part of the story.
    stride += stride > 1 and stride % 2 == 0
    chosen = everything[::stride]
    assert len({fault.kind for _, fault in chosen}) > 1, Counter(fault.kind.name for _, fault in everything)
    for call, fault in chosen:
        tell_with(script, call, fault)


def test_a_made_up_story_breaks_nothing(seed: int) -> None:
    tell_random(seed)
