"""How many stories are told, and which."""

from __future__ import annotations

import os

import pytest

SEEDS_VARIABLE = "SIMULATION_SEEDS"
FAULTS_VARIABLE = "SIMULATION_FAULTS"
_SEEDS = 60
_FAULTS = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="tell one made-up story again")


def faults_per_script() -> int:
    """How many single faults of each script are tried; 0 for all (SIMULATION_FAULTS)."""
    return int(os.environ.get(FAULTS_VARIABLE, _FAULTS))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        count = int(os.environ.get(SEEDS_VARIABLE, _SEEDS))
        metafunc.parametrize("seed", [chosen] if chosen is not None else range(count))
