"""The tutorial, pasted into a shell in a clean clone: what each command prints, and how long it takes.

`make show-tutorial`.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from tests.support.documentation.clean_clone import Taken, clean_clone, take_the_walk
from tests.support.evidence import Evidence, table

_TUTORIAL = "docs/tutorial.md"
_SECONDS = 1800
_TIMES, _SEEN = "How long it takes", "What is seen"


@pytest.mark.timeout(_SECONDS + 200)
def test_the_tutorial_from_a_clean_clone(tmp_path: Path) -> None:
    page = Evidence("tutorial.md", "The tutorial, pasted", "make show-tutorial", [_TIMES, _SEEN])
    with clean_clone(tmp_path) as clone:
        outcome = take_the_walk(clone, _SECONDS)
    assert not outcome.problems, "\n".join(outcome.problems)
    taken = [one for one in outcome.taken if one.step.page == _TUTORIAL]
    rows = [
        (f"[{heading}](../tutorial.md#{heading})", f"{sum(one.seconds for one in group):.1f} s")
        for heading, group in groupby(taken, key=lambda one: one.step.heading)
    ]
    page.show(
        _TIMES,
        "A shell in a clean clone was given each command as printed, one after the other, on a machine that had built "
        "Kubernetes and fetched Pulsar before. Other pages went on with its cluster before it was cleaned up.",
        "",
        *table(("section", "time"), rows),
        "",
        f"{len(taken)} commands, {sum(one.seconds for one in taken):.0f} s in all; "
        f"with the other pages {len(outcome.taken)} commands.",
    )
    page.show(_SEEN, "```text", *(line for one in taken for line in _lines(one)), "```")
    assert page.write()


def _lines(taken: Taken) -> list[str]:
    first, *further = taken.step.command.text.splitlines()
    return [f"$ {first}", *further, *taken.printed.rstrip().splitlines()]
