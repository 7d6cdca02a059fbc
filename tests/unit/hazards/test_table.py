"""The list of hazards is complete only if every one has a test that names it, or a reason why it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazards.table import Hazard, find_problems, naming_tests, read_hazards, render

TESTS = '''"""Hazard C99: what a module says is nobody's test."""

def test_A1_26680b_and_more() -> None:
    """R14, hazards B4 and A3-25642a."""

def test_c7_and_C8() -> None: ...

def test_a1_25719() -> None: ...

def helper_c9() -> None:
    """Hazard C10."""

class TestMore:
    async def test_it_hazard_b12(self) -> None:
        """Not B123, xC11, A7-00001 nor A1-123."""
        assert True, "hazard C12"
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tests = tmp_path / "tests"
    (tests / "unit").mkdir(parents=True)
    (tests / "unit" / "test_some.py").write_text(TESTS)
    (tests / "unit" / "helpers.py").write_text("def test_c13() -> None: ...")
    return tests


def test_names_and_docstrings_of_tests_count_and_nothing_else(folder: Path) -> None:
    some = "tests/unit/test_some.py::"
    assert naming_tests(folder) == {
        "A1-25719": [f"{some}test_a1_25719"],
        "A1-26680b": [f"{some}test_A1_26680b_and_more"],
        "A3-25642a": [f"{some}test_A1_26680b_and_more"],
        "B12": [f"{some}test_it_hazard_b12"],
        "B4": [f"{some}test_A1_26680b_and_more"],
        "C7": [f"{some}test_c7_and_C8"],
        "C8": [f"{some}test_c7_and_C8"],
    }


def test_a_complete_list_has_no_problem() -> None:
    hazards = [Hazard("B1", "a"), Hazard("B2", "b", impossible="so"), Hazard("B3", "c", open="later")]
    assert find_problems([*hazards, Hazard("B4", "d", open="the rest later")], {"B1": ["t"], "B4": ["t"]}) == ()


@pytest.mark.parametrize(
    ("hazards", "tests", "problem"),
    [
        ([Hazard("B1", "it breaks")], {}, "B1 has neither a test that names it nor a reason: it breaks"),
        ([Hazard("B1", "a", "never")], {"B1": ["t"]}, "B1 cannot happen, and yet has a test or is open"),
        ([Hazard("B1", "a", "never", "later")], {}, "B1 cannot happen, and yet has a test or is open"),
        ([], {"B1": ["tests/a.py::test_b1"]}, "B1 is named by tests/a.py::test_b1 and is not listed"),
        ([Hazard("B1", "a", open="x"), Hazard("B1", "b", open="y")], {}, "B1 is listed twice"),
    ],
)
def test_what_is_missing_or_too_much_is_a_problem(
    hazards: list[Hazard], tests: dict[str, list[str]], problem: str
) -> None:
    assert find_problems(hazards, tests) == (problem,)


def test_the_list_is_read_and_fields_that_nobody_knows_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "hazards.toml"
    file.write_text('[[hazard]]\nid = "B1"\nwhat = "a"\n[[hazard]]\nid = "C2"\nwhat = "b"\nopen = "later"\n')
    assert read_hazards(file) == [Hazard("B1", "a"), Hazard("C2", "b", open="later")]
    file.write_text('[[hazard]]\nid = "B1"\nwhat = "a"\nclosed = "never"\n')
    with pytest.raises(TypeError, match="closed"):
        read_hazards(file)


def test_the_page_counts_by_part_and_shows_what_notices_each() -> None:
    hazards = [
        Hazard("A1-26680", "a seal comes undone"),
        Hazard("B5", "cursors are lost", open="comes later"),
        Hazard("C1", "it hangs", impossible="there is none"),
        Hazard("C2", "it loops", open="the rest later"),
    ]
    lines = render(
        hazards, {"A1-26680": ["tests/a.py::one", "tests/b.py::two"], "C2": ["tests/c.py::three"]}
    ).splitlines()
    assert "| Reported for Pulsar's own scalable topics | 1 | 1 | 0 | 0 |" in lines
    assert "| Reported for operators of this kind | 2 | 1 | 1 | 1 |" in lines
    assert "| **all** | 4 | 2 | 1 | 2 |" in lines
    assert "| A1-26680 | a seal comes undone | `a.py::one`<br>`b.py::two` |" in lines
    assert "| B5 | cursors are lost | **open**: comes later |" in lines
    assert "| C1 | it hangs | cannot happen: there is none |" in lines
    assert "| C2 | it loops | `c.py::three`<br>**open**: the rest later |" in lines
