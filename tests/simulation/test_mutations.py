"""The simulation fails for every guard that is taken out of the operations: it would notice its loss."""

from __future__ import annotations

import pytest

from tests.simulation.explore import SimulationFailed, prepare, single_faults, tell, tell_with
from tests.simulation.faults import NoFaults
from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.scripts import SCRIPTS, Script


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_the_simulation_notices(mutation: Mutation) -> None:
    script = next(script for script in SCRIPTS if script.name == mutation.script)
    prepare(script)
    with mutation.applied(), pytest.raises(SimulationFailed):
        _tell_until_it_fails(script, mutation)


def _tell_until_it_fails(script: Script, mutation: Mutation) -> None:
    tell(script, NoFaults())
    for call, fault in single_faults(script):
        if fault.kind in mutation.faults:
            tell_with(script, call, fault)


def test_a_mutation_ends_with_its_block() -> None:
    mutation = MUTATIONS[0]
    before = mutation.function.__code__
    with mutation.applied():
        assert mutation.function.__code__ is not before
    assert mutation.function.__code__ is before
