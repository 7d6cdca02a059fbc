"""R38: no case of the peer's is there without being run."""

from __future__ import annotations

import importlib
import pkgutil

from tests import conformance
from tests.conformance.peer_case import PeerCase, load_cases


def _cases_of(module: str) -> set[tuple[str, str]]:
    cases = importlib.import_module(f"{conformance.__name__}.{module}").CASES
    found: list[PeerCase] = list(cases.values()) if isinstance(cases, dict) else cases
    return {case.key for case in found}


def test_every_case_belongs_to_a_test() -> None:
    modules = [found.name for found in pkgutil.iter_modules(conformance.__path__)]
    run = [key for name in modules if name.endswith("_peer_cases") for key in _cases_of(name)]
    assert sorted(run) == sorted(case.key for case in load_cases())
