"""Whether what was sampled over a soak is flat, and how that is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.support.evidence import table
from tests.support.soak.flatness import Allowance, Flatness, Lives, Quarter, compare_lives, judge
from tests.support.soak.samples import FILES, MEMORY, TASKS, THREADS, Life

ALLOWED: Mapping[str, Allowance] = {
    MEMORY: Allowance(
        8.0,
        0.05,
        "CPython keeps arenas of 1 MiB, and glibc some MiB a thread, for the next burst to find room in",
    ),
    FILES: Allowance(8, 0.1, "pools hold a connection to each server for each call under way at the time of the look"),
    THREADS: Allowance(3, 0.0, "the thread pool of a process grows to its bound as calls happen to meet"),
    TASKS: Allowance(10, 0.1, "one for each session, request and topic being worked on at the time of the look"),
}
_ON_SERVERS = Allowance(6, 0.25, "what operations under way have made, and not deleted yet")
_EVENTS = "Events"


@dataclass(frozen=True, slots=True)
class Measured:
    """One series, judged.

    Args:
        whose: process, or server.
        what: was measured.
        seconds: how long.
        flatness: what became of it.
    """

    whose: str
    what: str
    seconds: float
    flatness: Flatness


@dataclass(frozen=True, slots=True)
class LivesMeasured:
    """All lives of a process, compared."""

    whose: str
    what: str
    lives: Lives


def measured(lives: Mapping[str, Sequence[Life]], warm_up_seconds: float) -> list[Measured]:
    """Judge the longest life of each process."""
    found = []
    for whose, all_lives in lives.items():
        longest = max(all_lives, key=_seconds)
        for what, series in longest.series.items():
            seconds = _seconds(longest)
            # A process that was started again later is warm after the same share of its life.
            warm_up = min(warm_up_seconds, seconds / 4)
            found.append(Measured(whose, what, seconds, judge(series, ALLOWED[what], warm_up)))
    return found


def on_servers(series: Mapping[str, Sequence[tuple[float, float]]], warm_up_seconds: float) -> list[Measured]:
    """Judge what is on the brokers and the API server; Events are shown and go an hour after they came."""
    return [
        Measured("servers", what, one[-1][0] - one[0][0], judge(one, _ON_SERVERS, warm_up_seconds))
        for what, one in series.items()
    ]


def compared(lives: Mapping[str, Sequence[Life]]) -> list[LivesMeasured]:
    """Compare the lives of those processes that had several."""
    found = []
    for whose, all_lives in lives.items():
        for what in ALLOWED:
            one = compare_lives([life.series[what] for life in all_lives], ALLOWED[what])
            if one is not None:
                found.append(LivesMeasured(whose, what, one))
    return found


def leaks(series: Sequence[Measured], lives: Sequence[LivesMeasured]) -> list[str]:
    """What rises, in words."""
    found = [
        f"{one.whose}: {one.what} rose by {one.flatness.rise:.1f}, allowed {one.flatness.allowed:.1f}"
        for one in series
        if one.flatness.is_leak and one.what != _EVENTS
    ]
    found += [
        f"{one.whose}: at {one.lives.age_seconds:.0f} s of age late lives have {one.what} of {one.lives.late:.1f}, "
        f"early ones {one.lives.early:.1f}, allowed are {one.lives.allowed:.1f} more"
        for one in lives
        if one.lives.is_leak
    ]
    return found


def told(series: Sequence[Measured]) -> list[str]:
    """A table of series: least / median / most of each quarter."""
    rows = [
        (
            one.whose,
            one.what,
            *(_quarter(quarter) for quarter in one.flatness.quarters),
            f"{one.flatness.rise:+.1f}",
            f"{one.flatness.drift:+.1f}",
            "-" if one.what == _EVENTS else f"{one.flatness.allowed:.1f}",
        )
        for one in series
        if one.flatness.is_judged
    ]
    header = ("whose", "what", "first quarter", "second", "third", "last", "rise", "by slope", "allowed")
    return table(header, rows)


def told_lives(lives: Sequence[LivesMeasured]) -> list[str]:
    """A table of lives that were compared."""
    rows = [
        (
            one.whose,
            one.lives.count,
            f"{one.lives.age_seconds:.0f} s",
            one.what,
            f"{one.lives.early:.1f}",
            f"{one.lives.late:.1f}",
            f"{one.lives.allowed:.1f}",
        )
        for one in lives
    ]
    return table(("whose", "lives", "at the age of", "what", "early lives", "late lives", "allowed rise"), rows)


def reasons() -> Iterator[str]:
    """Why each bound is what it is."""
    for what, allowed in (*ALLOWED.items(), ("counts on servers", _ON_SERVERS)):
        share = f", or {allowed.share:.0%} if that is more" if allowed.share else ""
        yield f"- {what}: {allowed.absolute:g}{share}: {allowed.why}"


def _seconds(life: Life) -> float:
    series = life.series.get(MEMORY, [])
    return series[-1][0] - series[0][0] if series else 0.0


def _quarter(quarter: Quarter) -> str:
    return f"{quarter.least:.0f} / {quarter.median:.0f} / {quarter.most:.0f}"
