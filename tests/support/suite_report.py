"""What a run of a whole suite has told in its JUnit report, for pages of evidence."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree


def passed_cases(report: Path) -> list[ElementTree.Element]:
    """All test cases of a report, of which none failed and none was skipped."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert cases
    assert [case.attrib["name"] for case in cases if len(case)] == []
    return cases
