"""Options of the simulation: how many random stories are told, and which one is told again."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

DEFAULT_SEEDS = 200
_STORIES = {"story_seed": 1, "consumers_seed": 4}
"""Names of the arguments that stand for a seed, and of how many seeds one is told."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        dest="simulation_seed",
        type=int,
        default=None,
        help="tell only the random story of this seed (pytest tests/simulation --seed=N)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, share in _STORIES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, _seeds(metafunc.config, share))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _one_seed(config) is None:
        return
    told = [item for item in items if _STORIES.keys() & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=[item for item in items if item not in told])
    items[:] = told


def _seeds(config: pytest.Config, share: int) -> Sequence[int]:
    one = _one_seed(config)
    return range(int(os.environ.get("SIMULATION_SEEDS", DEFAULT_SEEDS)) // share) if one is None else [one]


def _one_seed(config: pytest.Config) -> int | None:
    # The option is known only where pytest is called for this directory.
    seed: int | None = config.getoption("simulation_seed", None)
    return seed
