"""R38: every machine case of the automatic decision passes, or is a listed difference that does differ."""

from __future__ import annotations

import pytest

from tests.conformance import autoscale_driver
from tests.conformance.deliberate_differences import DIFFERENCES
from tests.conformance.peer_case import PeerCase, judge, load_cases

AREAS = {"AutoScaleEvaluator", "AutoScaleConfig", "LoadReporter"}
CASES = [case for case in load_cases() if case.area in AREAS and case.machine]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_peer_case(case: PeerCase) -> None:
    """Hazards A2-26434d and B10."""
    judge(case, autoscale_driver.run(case))


def test_every_difference_of_the_decision_names_a_case_and_a_reason() -> None:
    keys = {case.key for case in load_cases()}
    for key, difference in DIFFERENCES.items():
        if key[0] in AREAS:
            assert key in keys
            assert difference.reason


def test_no_area_of_the_decision_is_empty() -> None:
    assert {case.area for case in CASES} == AREAS
