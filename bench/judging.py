"""What a report says: targets met and missed, what is ahead and behind, and what is worse than in the last one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from bench.measurement import Better, Group, Measurement, Of, Target
from bench.report import Result

# Less of a difference is nothing to tell of, however steady the rounds.
_WORSE_SHARE = 0.10
_LEVEL_SHARE = 0.05


class Standing(StrEnum):
    """Beside a peer."""

    AHEAD = "ahead"
    LEVEL = "level"
    BEHIND = "behind"


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """Whether a measurement reaches its target.

    Args:
        group: where it stands.
        measurement: of which.
        target: what it is to reach.
        value: what is compared with the limit; None if there is no ratio to compare.
        is_met: whether it keeps to it.
    """

    group: Group
    measurement: Measurement
    target: Target
    value: float | None
    is_met: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measurement beside the reference of its group, which is a peer."""

    group: Group
    measurement: Measurement
    reference: Measurement
    ratio: float
    standing: Standing


@dataclass(frozen=True, slots=True)
class Change:
    """A measurement beside what it was in the last report.

    Args:
        group: title of its group.
        now: as it is.
        before: as it was.
    """

    group: str
    now: Measurement
    before: Measurement

    @property
    def ratio(self) -> float | None:
        """Of medians, now by before; None where it was 0."""
        return self.now.median / self.before.median if self.before.median else None

    @property
    def is_worse(self) -> bool:
        """Whether every round is worse than all were, and the median by more than a tenth."""
        if not self.now.is_apart_from(self.before) or not self.now.is_better(self.before.median, self.now.median):
            return False
        return abs(self.now.median - self.before.median) > _WORSE_SHARE * abs(self.before.median)

    @property
    def is_other_count(self) -> bool:
        """Whether it is a count, and another one."""
        return self.now.is_exact and self.before.is_exact and set(self.now.values) != set(self.before.values)


def targets(groups: Iterable[Group]) -> Iterator[TargetOutcome]:
    """Every target, in the order of the tables."""
    for group in groups:
        for one in group.measurements:
            if one.target is None:
                continue
            value = one.median if one.target.of is Of.MEDIAN else group.ratio(one)
            is_met = value is not None and not one.is_better(one.target.limit, value)
            yield TargetOutcome(group, one, one.target, value, is_met)


def comparisons(groups: Iterable[Group]) -> Iterator[Comparison]:
    """Every measurement that stands beside that of a peer, and is to go some way."""
    for group in groups:
        if not group.is_peer or group.reference is None:
            continue
        reference = group.named(group.reference)
        for one in group.measurements:
            ratio = group.ratio(one)
            if reference is None or ratio is None or one.better is Better.NEITHER:
                continue
            yield Comparison(group, one, reference, ratio, _standing(one, reference, ratio))


def changes(result: Result) -> Iterator[Change]:
    """Everything that was measured in the last report, too, in the same unit."""
    if result.before is None:
        return
    for group in result.measured.groups:
        group_before = result.before.measured.group(group.title)
        for one in group.measurements:
            before = group_before.named(one.name) if group_before is not None else None
            if before is not None and before.unit == one.unit:
                yield Change(group.title, one, before)


def _standing(one: Measurement, reference: Measurement, ratio: float) -> Standing:
    if abs(ratio - 1) < _LEVEL_SHARE or not one.is_apart_from(reference):
        return Standing.LEVEL
    return Standing.AHEAD if one.is_better(one.median, reference.median) else Standing.BEHIND
