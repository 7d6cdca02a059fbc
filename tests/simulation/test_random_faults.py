"""Random stories with several faults at once and calls in any order.

`pytest tests/simulation --seed=N` tells one again; SIMULATION_SEEDS sets how many are told.
"""

from __future__ import annotations

import pytest

from tests.simulation.explore import SimulationFailed
from tests.simulation.random_story import tell_random


def test_a_random_story(story_seed: int) -> None:
    tell_random(story_seed)


def test_a_seed_tells_the_same_story_again() -> None:
    first, second = tell_random(7), tell_random(7)
    assert first.trace == second.trace
    assert first.trace != tell_random(8).trace


def test_a_failure_says_how_to_run_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(world: object) -> None:
        raise AssertionError("something that must never be")

    monkeypatch.setattr("tests.simulation.random_story.check_end", fail)
    with pytest.raises(SimulationFailed) as failure:
        tell_random(11)
    assert str(failure.value).startswith("seed 11: AssertionError: something that must never be\n")
    assert "run it again: pytest tests/simulation --seed=11" in str(failure.value)
