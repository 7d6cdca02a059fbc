"""What is found in the logs of those who drained a backlog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.drain_record import DrainRecord, read_drain

SECOND = 1_000_000_000


def record(folder: Path, *logs: Sequence[str], stored: int = 3) -> DrainRecord:
    """What is found in these logs, of one key."""
    paths = []
    for number, lines in enumerate(logs):
        paths.append(folder / f"{number}.log")
        paths[-1].write_text("".join(f"{line}\n" for line in lines))
    return read_drain(paths, {("p", "k"): stored}, 0)


def got(second: int, counter: int, segment: int = 0) -> str:
    return f"R {second * SECOND} {segment}/-1 1:2:3 p k {counter}"


def test_a_drain_without_fault(tmp_path: Path) -> None:
    found = record(tmp_path, [got(1, 0), "A 1 1", got(4, 2), "A 1 1"], [got(3, 1), "A 1 1"])
    assert (found.seconds, found.busy_seconds) == (3, 2)
    assert list(found.shares) == [2, 1]
    assert (found.received, found.again, found.disordered, found.lost, found.unacknowledged) == (3, 0, 0, 0, 0)


def test_gaps_losses_and_repetitions_are_found(tmp_path: Path) -> None:
    found = record(tmp_path, [got(1, 0), got(2, 2), got(3, 2), "A 1 2"], stored=5)
    assert (found.again, found.disordered, found.lost, found.unacknowledged) == (1, 1, 2, 1)


def test_successors_that_are_read_before_the_end_are_found(tmp_path: Path) -> None:
    found = record(tmp_path, [got(1, 0), got(2, 1, segment=7), got(3, 2), got(4, 3, segment=7)], stored=4)
    assert (found.early, found.seconds) == (1, 2)
