"""The table of hazards: what each is, and which tests name it. Pure but for reading files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ID = re.compile(r"\b(?:A[1-6]-\d{5}[a-z]?|B\d{1,2}|C\d{1,2})\b")
_ID_IN_NAME = re.compile(r"(?:(?<=_)|^)(a[1-6]_\d{5}[a-z]?|b\d{1,2}|c\d{1,2})(?=_|$)", re.IGNORECASE)
_PARTS = {
    "A": "Reported for Pulsar's own scalable topics",
    "B": "Found by reading that code",
    "C": "Reported for operators of this kind",
}


@dataclass(frozen=True, slots=True)
class Hazard:
    """One fault that somebody paid for.

    Args:
        id: part, section and number, for example `A1-26680`, `B4`, `C24`.
        what: what goes wrong, in a few words.
        impossible: why it cannot happen here; empty if it can.
        open: what is missing for it to be tested, and where that is planned; empty if nothing is.
    """

    id: str
    what: str
    impossible: str = ""
    open: str = ""


def read_hazards(path: Path) -> Sequence[Hazard]:
    """Read the list. Raises TypeError for fields it does not know."""
    return [Hazard(**entry) for entry in tomllib.loads(path.read_text())["hazard"]]


def naming_tests(root: Path) -> Mapping[str, Sequence[str]]:
    """The tests under a folder by the hazards that their names or docstrings name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(root.rglob("test_*.py")):
        for name, docstring in _tests_of(ast.parse(path.read_text())):
            # A1-26680b is a1_26680b in a name.
            named = {one[:1].upper() + one[1:].replace("_", "-") for one in _ID_IN_NAME.findall(name)}
            for hazard in named | set(_ID.findall(docstring)):
                found[hazard].add(f"{path.relative_to(root.parent)}::{name}")
    return {hazard: sorted(tests) for hazard, tests in found.items()}


def find_problems(hazards: Sequence[Hazard], tests: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What is wrong with the list: hazards without a test and without a reason, or with too much of either."""
    known = [hazard.id for hazard in hazards]
    problems = [f"{one} is listed twice" for one in sorted(set(known)) if known.count(one) > 1]
    problems += [f"{one} is named by {tests[one][0]} and is not listed" for one in sorted(tests.keys() - set(known))]
    for hazard in hazards:
        said = [bool(tests.get(hazard.id)), bool(hazard.impossible), bool(hazard.open)]
        if not any(said):
            problems.append(f"{hazard.id} has neither a test that names it nor a reason: {hazard.what}")
        elif hazard.impossible and sum(said) > 1:
            problems.append(f"{hazard.id} cannot happen, and yet has a test or is open")
    return tuple(problems)


def render(hazards: Sequence[Hazard], tests: Mapping[str, Sequence[str]]) -> str:
    """The page."""
    tested = [hazard for hazard in hazards if tests.get(hazard.id)]
    impossible = [hazard for hazard in hazards if hazard.impossible]
    still_open = [hazard for hazard in hazards if hazard.open]
    lines = [
        "# Hazards",
        "",
        "Faults that others have paid for, and the tests here that would notice them. Written by `make generate` from",
        "`tests/hazards/hazards.toml` and from the names and docstrings of the tests; `make lint` refuses one that has",
        "neither a test nor a reason.",
        "",
        "| part | hazards | tested | cannot happen here | open |",
        "|---|---|---|---|---|",
    ]
    for part, title in (*_PARTS.items(), ("", "**all**")):
        counts = [sum(one.id.startswith(part) for one in group) for group in (hazards, tested, impossible, still_open)]
        lines.append(f"| {title} | {' | '.join(str(count) for count in counts)} |")
    lines += ["", "What is tested in part and open in part is counted in both columns.", ""]
    for part, title in _PARTS.items():
        lines += [f"## {part}. {title}", "", "| hazard | what goes wrong | what notices it |", "|---|---|---|"]
        lines += [_row(hazard, tests.get(hazard.id, ())) for hazard in hazards if hazard.id.startswith(part)]
        lines.append("")
    return "\n".join(lines)


def _row(hazard: Hazard, tests: Sequence[str]) -> str:
    answers = [f"`{test.removeprefix('tests/')}`" for test in tests]
    if hazard.impossible:
        answers.append(f"cannot happen: {hazard.impossible}")
    if hazard.open:
        answers.append(f"**open**: {hazard.open}")
    return f"| {hazard.id} | {hazard.what} | {'<br>'.join(answers)} |"


def _tests_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""
