"""R38: every machine case of the layout areas passes, or is a listed difference that does differ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance import layout_driver
from tests.conformance.deliberate_differences import DIFFERENCES
from tests.conformance.peer_case import PeerCase, judge, load_cases

LAYOUT_AREAS = {"HashRange", "SegmentLayout", "SegmentName", "Routing", "EntryBucket", "Migration"}
# What a migration does is judged apart.
CASES = [case for case in load_cases() if case.area in LAYOUT_AREAS and (case.machine or case.area != "Migration")]
MACHINE_CASES = [case for case in CASES if case.machine]


@pytest.mark.parametrize("case", MACHINE_CASES, ids=str)
def test_peer_case(case: PeerCase) -> None:
    judge(case, layout_driver.run(case))


def test_every_layout_difference_names_a_case_and_a_reason() -> None:
    keys = {case.key for case in MACHINE_CASES}
    for key, difference in DIFFERENCES.items():
        if key[0] in LAYOUT_AREAS:
            assert key in keys
            assert difference.reason


def test_prose_cases_are_handed_to_a_later_layer_by_name() -> None:
    table = Path(__file__).with_name("later_layers.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (\w+) \| ([^|]+?) \|", table, re.MULTILINE)) - {("area", "case")}
    prose = {case.key for case in CASES if not case.machine}
    assert {key for key in listed if key[0] in LAYOUT_AREAS} == prose


def test_no_area_is_empty_and_no_case_is_there_twice() -> None:
    assert {case.area for case in CASES} == LAYOUT_AREAS
    assert len({case.key for case in CASES}) == len(CASES)
