"""A slow leak is noticed; a step, a peak and noise are not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.support.soak.flatness import Allowance, Series, compare_lives, judge

_MEMORY = Allowance(8.0, 0.05)
_HOURS = 8 * 3600
_EVERY = 30


def _series(value: Callable[[float], float], seconds: float = _HOURS, noise: float = 3.0, seed: int = 0) -> Series:
    """Samples of some MiB with noise, `value` by the share of the time that has passed."""
    random = Random(seed)
    return [(at, 150 + value(at / seconds) + random.gauss(0, noise)) for at in range(0, int(seconds) + 1, _EVERY)]


def _staircase(share: float) -> float:
    return 5.0 * int(share * 12)


def _sawtooth(share: float) -> float:
    """Rises and is collected, as a heap."""
    return 40 * (share * 25 % 1)


_LEAKS: dict[str, Callable[[float], float]] = {
    "a leak of 5 MiB an hour": lambda share: 40 * share,
    "one that gets faster": lambda share: 60 * share**2,
    "one that gets slower and does not end": lambda share: 60 * share**0.7,
    "one at each of twelve faults": _staircase,
    "one under a heap that is collected": lambda share: _sawtooth(share) + 60 * share,
}
_FLAT: dict[str, Callable[[float], float]] = {
    "nothing": lambda _: 0.0,
    "noise of a heap that is collected": _sawtooth,
    "a peak": lambda share: 300.0 if 0.7 < share < 0.75 else 0.0,
    "less and less": lambda share: -60 * share,
    "what is allowed": lambda share: 10 * share,
    "a cache that fills at the beginning": lambda share: 80 * min(1.0, share / 0.15),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("leak", _LEAKS)
def test_a_leak_is_noticed(leak: str, seed: int) -> None:
    found = judge(_series(_LEAKS[leak], seed=seed), _MEMORY, 600)
    assert found.is_leak, found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("flat", _FLAT)
def test_what_stays_flat_is_none(flat: str, seed: int) -> None:
    found = judge(_series(_FLAT[flat], seed=seed), _MEMORY, 600)
    assert found.is_judged
    assert not found.is_leak, found


@pytest.mark.parametrize("noise", [0.0, 3.0])
@pytest.mark.parametrize("at", [share / 40 for share in range(41)])
def test_one_step_is_none_whenever_it_comes(at: float, noise: float) -> None:
    found = judge(_series(lambda share: 50.0 if share > at else 0.0, noise=noise), _MEMORY, 600)
    assert not found.is_leak, found


def test_a_leak_is_noticed_in_twenty_minutes_if_it_is_faster() -> None:
    assert judge(_series(lambda share: 30 * share, seconds=1200), _MEMORY, 120).is_leak
    assert not judge(_series(lambda share: 12 * share, seconds=1200), _MEMORY, 120).is_leak


def test_a_count_that_rises_by_one_now_and_then_is_a_leak() -> None:
    files = [(float(at), float(20 + at // 100)) for at in range(0, 3600, 10)]
    assert judge(files, Allowance(8, 0.1)).is_leak
    assert not judge([(at, 20 + (value - 20) % 2) for at, value in files], Allowance(8, 0.1)).is_leak


def test_too_little_is_not_judged() -> None:
    for series in ([], [(0.0, 1.0)], [(float(at), 1.0) for at in range(10)]):
        found = judge(series, _MEMORY)
        assert not found.is_judged
        assert not found.is_leak
    assert not judge([(float(at), 1.0) for at in range(100)], _MEMORY, warm_up_seconds=200).is_judged


def test_quarters_tell_least_median_and_most() -> None:
    found = judge([(float(at), float(at)) for at in range(40)], Allowance(1.0))
    assert [(one.least, one.median, one.most) for one in found.quarters] == [
        (0, 4.5, 9),
        (10, 14.5, 19),
        (20, 24.5, 29),
        (30, 34.5, 39),
    ]
    assert found.rise == 20
    assert found.drift == pytest.approx(19.5)


def test_lives_are_compared_at_the_age_that_half_of_them_reached() -> None:
    def life(begin: float, seconds: int, level: float) -> Series:
        return [(begin + at, level + at / 10) for at in range(0, seconds, 5)]

    lengths = [20, 60, 65, 15, 70, 60, 66, 61, 10, 90, 62, 64]
    same = [life(100.0 * number, seconds, 100) for number, seconds in enumerate(lengths)]
    found = compare_lives(same, _MEMORY)
    assert found is not None
    assert (found.count, found.early, found.late, found.is_leak) == (7, found.late, found.early, False)
    rising = [life(100.0 * number, seconds, 100 + 3 * number) for number, seconds in enumerate(lengths)]
    found = compare_lives(rising, _MEMORY)
    assert found is not None
    assert found.is_leak
    assert compare_lives(same[:5], _MEMORY) is None
    assert compare_lives([], _MEMORY) is None
