"""Lives of processes are judged, and what rises is named."""

from __future__ import annotations

from tests.support.soak import verdict
from tests.support.soak.samples import FILES, MEMORY, Life


def _life(begin: float, seconds: int, megabytes_an_hour: float = 0.0, base: float = 100.0) -> Life:
    life = Life(1)
    for at in range(0, seconds, 10):
        life.add(begin + at, {MEMORY: base + megabytes_an_hour * at / 3600, FILES: 20.0 + at % 3})
    return life


def test_the_longest_life_of_each_is_judged() -> None:
    lives = {"long": [_life(0, 7200)], "leaks": [_life(0, 100), _life(110, 7000, 20.0)]}
    series = verdict.measured(lives, 600)
    assert [(one.whose, one.what, round(one.seconds)) for one in series] == [
        ("long", MEMORY, 7190),
        ("long", FILES, 7190),
        ("leaks", MEMORY, 6990),
        ("leaks", FILES, 6990),
    ]
    assert all(one.flatness.is_judged for one in series)
    (found,) = verdict.leaks(series, [])
    assert found.startswith(f"leaks: {MEMORY} rose by 17.")
    assert len(verdict.told(series)) == 6


def test_a_life_that_begins_late_is_warm_after_a_quarter_of_it() -> None:
    (memory, _) = verdict.measured({"short": [_life(5000, 400)]}, 600)
    assert memory.flatness.is_judged


def test_lives_that_begin_with_ever_more_are_named() -> None:
    flat = {"one": [_life(100.0 * number, 90) for number in range(9)]}
    assert not verdict.leaks([], verdict.compared(flat))
    rising = {"one": [_life(100.0 * number, 90, base=100.0 + 3 * number) for number in range(9)]}
    (found,) = verdict.leaks([], verdict.compared(rising))
    assert f"late lives have {MEMORY} of 121.0, early ones 103.0" in found
    assert not verdict.compared({"one": [_life(0, 90)]})


def test_events_are_shown_and_not_judged() -> None:
    rising = [(float(at), float(at)) for at in range(200)]
    series = verdict.on_servers({"Events": rising, "Leases": rising}, 10)
    assert [one.flatness.is_leak for one in series] == [True, True]
    assert verdict.leaks(series, []) == ["servers: Leases rose by 94.5, allowed 20.2"]
    assert [row.split(" | ")[-1] for row in verdict.told(series)[2:]] == ["- |", "20.2 |"]


def test_every_bound_has_a_reason() -> None:
    told = list(verdict.reasons())
    assert len(told) == len(verdict.ALLOWED) + 1
    assert all(len(line.rsplit(": ", 1)[1]) > 20 for line in told)
