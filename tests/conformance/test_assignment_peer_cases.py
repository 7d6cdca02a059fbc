"""R38: the peer's SubscriptionCoordinator cases pass, or are listed differences that do differ."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import assignment_driver
from tests.conformance.deliberate_differences import DIFFERENCES
from tests.conformance.peer_case import PeerCase, load_cases

CASES = [case for case in load_cases() if case.area == "SubscriptionCoordinator"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_peer_case(case: PeerCase) -> None:
    """Hazards A2-26434f, A3-25642a, A3-25642b and B15."""
    assert case.machine
    outcome = assignment_driver.run(case.given)
    difference = DIFFERENCES.get(case.key)
    if difference is None:
        assert _agrees(outcome, case.expect)
    else:
        assert _agrees(outcome, difference.ours)
        assert not _agrees(outcome, case.expect), "no longer a difference: take it off the list"


def test_there_are_cases_and_none_twice() -> None:
    assert len({case.key for case in CASES}) == len(CASES) > 10


def _agrees(outcome: dict[str, Any], expected: dict[str, Any]) -> bool:
    for name, value in expected.items():
        if name in ("includes", "excludes"):
            if not set(value) <= set(outcome[name]):
                return False
        elif name == "ownersOf":
            if any(outcome[name].get(segment, 0) != count for segment, count in value.items()):
                return False
        elif outcome[name] != value:
            return False
    return True
