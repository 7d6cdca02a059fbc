"""`python -m tests.hazards [--check]`: write docs/hazards.md, or find out whether it is complete and up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.hazards.table import find_problems, naming_tests, read_hazards, render

_TESTS = Path(__file__).parents[1]
_PAGE = _TESTS.parent / "docs" / "hazards.md"
_DATA = Path(__file__).with_name("hazards.toml")


def main(arguments: list[str]) -> int:
    """Write or check the page; answers the exit code."""
    hazards, tests = read_hazards(_DATA), naming_tests(_TESTS)
    problems = find_problems(hazards, tests)
    page = render(hazards, tests)
    if arguments == ["--check"]:
        if not _PAGE.exists() or _PAGE.read_text() != page:
            problems = (*problems, f"{_PAGE.name} is not up to date: make generate")
    elif arguments:
        problems = (*problems, "usage: python -m tests.hazards [--check]")
    else:
        _PAGE.write_text(page)
    for problem in problems:
        print(f"hazards: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
