"""R38: no case of the peer's is there without being run."""

from __future__ import annotations

import importlib
import pkgutil

from tests import conformance
from tests.conformance.deliberate_differences import NOT_ON_CLASSIC, NOT_ON_NATIVE
from tests.conformance.peer_case import PeerCase, load_cases
from tests.integration.operator import test_classic_peer_cases as classic
from tests.integration.operator import test_native_peer_cases as native


def _cases_of(module: str) -> set[tuple[str, str]]:
    cases = importlib.import_module(f"{conformance.__name__}.{module}").CASES
    found: list[PeerCase] = list(cases.values()) if isinstance(cases, dict) else cases
    return {case.key for case in found}


def test_every_case_belongs_to_a_test() -> None:
    modules = [found.name for found in pkgutil.iter_modules(conformance.__path__)]
    run = [key for name in modules if name.endswith("_peer_cases") for key in _cases_of(name)]
    # Those are of applications: Pulsar's own client with its own brokers, and our library with segments of ours.
    run += [case.key for case in native.CASES if case.area == native.END_TO_END]
    assert sorted(run) == sorted(case.key for case in load_cases())


def test_every_case_of_the_gateway_is_run_with_brokers_of_pulsar_5_or_cannot_be() -> None:
    of_the_gateway = {case.key for case in load_cases() if case.area in native.AREAS}
    run = {(case.area, case.name) for case in native.CASES}
    assert run.isdisjoint(NOT_ON_NATIVE)
    assert run | NOT_ON_NATIVE.keys() == of_the_gateway
    assert native.STORIES.keys() == {case.name for case in native.CASES}


def test_every_case_of_applications_is_run_with_our_library_or_cannot_be() -> None:
    of_applications = {case.key for case in load_cases() if case.area == native.END_TO_END}
    run = {case.key for case in classic.CASES}
    assert run.isdisjoint(NOT_ON_CLASSIC)
    assert run | NOT_ON_CLASSIC.keys() == of_applications
    assert classic.STORIES.keys() == {case.name for case in classic.CASES}
