"""Which random stories are told: as many seeds as SIMULATION_SEEDS says, and those that are kept."""

from __future__ import annotations

import os

import pytest

from tests.simulation.kept import KEPT
from tests.simulation.kinds import Story, stories

DEFAULT_SEEDS = 400


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "story" in metafunc.fixturenames:
        seeds = int(os.environ.get("SIMULATION_SEEDS", DEFAULT_SEEDS))
        told = sorted({*stories(0, seeds), *map(Story.parse, KEPT)})
        metafunc.parametrize("story", told, ids=str)
