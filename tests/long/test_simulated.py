"""Many simulated stories, and every guard taken out in turn: `make show-simulation`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.guards import GUARDS, MOST_SEEDS, first_to_notice
from tests.simulation.kinds import KINDS, Story, stories
from tests.simulation.simulate import tell_all
from tests.support.evidence import Evidence, table

_SEEDS = int(os.environ.get("SIMULATED_SEEDS", "20000"))
_STORIES, _GUARDS = "Stories", "Guards taken out"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("simulation.md", "Simulated stories", "make show-simulation", (_STORIES, _GUARDS))
    yield page
    page.write()


@pytest.mark.timeout(4 * 3600)
def test_no_story_of_many_fails(evidence: Evidence) -> None:
    started = time.monotonic()
    tally = tell_all(stories(0, _SEEDS))
    seconds = time.monotonic() - started
    assert not tally.failed
    rows = [
        [
            kind.name,
            kind.what,
            tally.told[kind.name],
            f"{1000 * tally.seconds[kind.name] / tally.told[kind.name]:.0f} ms",
        ]
        for kind in KINDS
    ]
    evidence.show(
        _STORIES,
        f"{_SEEDS} seeds, {tally.told.total()} stories in {seconds:.0f} s, {_SEEDS / seconds:.1f} seeds a second. "
        "None failed.",
        "",
        *table(["kind", "what it is about", "stories", "each, on one processor"], rows),
    )


@pytest.mark.timeout(2 * 3600)
def test_every_guard_is_missed(evidence: Evidence) -> None:
    """R5–R9, R13, R14, R17, R19, R21: without any one of their guards some story of the first 2,000 seeds fails."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        noticed = list(pool.map(_notice, range(len(GUARDS))))
    rows = [
        [str(guard), str(found[0]), found[1]] if found else [str(guard), "**none**", ""]
        for guard, found in zip(GUARDS, noticed, strict=True)
    ]
    assert all(noticed), [row[0] for row in rows if row[1] == "**none**"]
    evidence.show(
        _GUARDS,
        f"{len(GUARDS)} guards, each taken out of the code, and stories told from seed 0 on until one failed, "
        f"{MOST_SEEDS} at most.",
        "",
        *table(["what no longer holds", "first story to fail", "what it says"], rows),
    )


def _notice(number: int) -> tuple[Story, str] | None:
    return first_to_notice(GUARDS[number])
