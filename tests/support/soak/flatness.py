"""Whether something that is measured again and again stays flat, or rises for ever. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

Series = Sequence[tuple[float, float]]
"""Seconds since the beginning, and what was measured then."""

_QUARTERS = 4
_FEWEST_SAMPLES = 4
_FEWEST_LIVES = 6
# Their slopes are a few ten thousand, which is no work; more samples say no more.
_MOST_SAMPLES = 250


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more something may be at the end than early on.

    Args:
        absolute: so much in any case.
        share: of what it was early on, if that is more.
        why: the reason for this bound, for people.
    """

    absolute: float
    share: float = 0.0
    why: str = ""

    def of(self, level: float) -> float:
        """What is allowed to be added to a level."""
        return max(self.absolute, self.share * level)


@dataclass(frozen=True, slots=True)
class Quarter:
    """The least, the middle and the most of what was measured in a quarter of the time."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class Flatness:
    """What became of a series.

    Args:
        quarters: the four of the time after the warm-up; fewer than four if too little was measured.
        rise: from the median of the second to that of the last.
        drift: what the slope comes to over the same time; the median of the slopes between all pairs of samples, which
            a step, a peak or noise does not move.
        allowed: how much that may be.
    """

    quarters: Sequence[Quarter]
    rise: float = 0.0
    drift: float = 0.0
    allowed: float = 0.0

    @property
    def is_judged(self) -> bool:
        """Whether there was enough to judge."""
        return len(self.quarters) == _QUARTERS

    @property
    def is_leak(self) -> bool:
        """Whether it rises beyond what is allowed, and steadily: in both halves of the time, and by its slope."""
        if not self.is_judged:
            return False
        _, second, third, last = (quarter.median for quarter in self.quarters)
        halves = min(third - second, last - third)
        return self.rise > self.allowed and self.drift > self.allowed / 2 and halves > self.rise / 4


def judge(series: Series, allowance: Allowance, warm_up_seconds: float = 0.0) -> Flatness:
    """Judge a series.

    A leak rises in both halves of the time from the second quarter to the last, and the median of all slopes tells of
    it. A cache that is filled once, or an arena that the allocator keeps, is a step: it rises in one half.

    Args:
        series: in order of time.
        allowance: how much it may rise.
        warm_up_seconds: of its beginning, which does not count.
    """
    if not series:
        return Flatness([])
    begin = series[0][0] + warm_up_seconds
    quarter_seconds = (series[-1][0] - begin) / _QUARTERS
    counted = [(at, value) for at, value in series if at >= begin]
    if quarter_seconds <= 0:
        return Flatness([])
    parts: list[list[tuple[float, float]]] = [[] for _ in range(_QUARTERS)]
    for at, value in counted:
        parts[min(_QUARTERS - 1, int((at - begin) / quarter_seconds))].append((at, value))
    if min(len(part) for part in parts) < _FEWEST_SAMPLES:
        return Flatness([])
    quarters = [_quarter([value for _, value in part]) for part in parts]
    level = quarters[1].median
    slope = _slope([sample for part in parts[1:] for sample in part])
    drift = slope * 2 * quarter_seconds
    return Flatness(quarters, quarters[-1].median - level, drift, allowance.of(level))


@dataclass(frozen=True, slots=True)
class Lives:
    """The lives of a process that was ended and started again, each at the same age.

    Args:
        age_seconds: at which they are compared.
        count: of the lives that reached it.
        early: median of the first third of them.
        late: median of the last third.
        allowed: how much more the late ones may have.
    """

    age_seconds: float
    count: int
    early: float
    late: float
    allowed: float

    @property
    def is_leak(self) -> bool:
        """Whether what outlives the process makes every life begin with more."""
        return self.late - self.early > self.allowed


def compare_lives(lives: Sequence[Series], allowance: Allowance) -> Lives | None:
    """Compare lives at the age that half of them reached; None if too few did.

    Args:
        lives: one series for each, in the order of the lives.
        allowance: how much more late lives may have.
    """
    ages = [life[-1][0] - life[0][0] for life in lives if life]
    if not ages:
        return None
    age_seconds = statistics.median(ages)
    reached = [_at_age(life, age_seconds) for life in lives if life and life[-1][0] - life[0][0] >= age_seconds]
    if len(reached) < _FEWEST_LIVES:
        return None
    third = len(reached) // 3
    early, late = statistics.median(reached[:third]), statistics.median(reached[-third:])
    return Lives(age_seconds, len(reached), early, late, allowance.of(early))


def _at_age(life: Series, age_seconds: float) -> float:
    return min(life, key=lambda sample: abs(sample[0] - life[0][0] - age_seconds))[1]


def _quarter(values: Sequence[float]) -> Quarter:
    return Quarter(min(values), statistics.median(values), max(values))


def _slope(samples: Series) -> float:
    """Median of the slopes between all pairs of samples, a second (Theil and Sen)."""
    thinned = samples[:: -(-len(samples) // _MOST_SAMPLES)]
    slopes = [(b - a) / (later - at) for (at, a), (later, b) in combinations(thinned, 2) if later > at]
    return statistics.median(slopes) if slopes else 0.0
