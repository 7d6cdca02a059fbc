"""What was measured: values of repeated rounds, with what they are to reach and beside what they stand."""

import statistics
from dataclasses import dataclass
from enum import StrEnum


class Better(StrEnum):
    """Which way a value is to go."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Of(StrEnum):
    """What of a measurement a target is about: its median, or the ratio of that to its group's reference."""

    MEDIAN = "median"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class Target:
    """What a measurement is to reach.

    Args:
        text: the target in words, with unit.
        limit: the least where higher is better, the most where lower is; in the unit of the measurement, or a ratio.
        of: what has to keep to the limit.
    """

    text: str
    limit: float
    of: Of = Of.MEDIAN


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing, measured in each of several rounds.

    Args:
        name: what it is, unique in its group; sizes that it depends on are part of the name.
        unit: of the values, such as `messages/s`.
        values: of the rounds, in their order.
        better: which way it is to go.
        target: what it is to reach, if anything.
        is_exact: whether it is a count that is the same in every run of the same code.

    Raises ValueError if there is no value, or a target without a way to go.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    better: Better
    target: Target | None = None
    is_exact: bool = False

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"{self.name}: nothing was measured")
        if self.target is not None and self.better is Better.NEITHER:
            raise ValueError(f"{self.name}: a target needs a way that values are to go")

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.values)

    @property
    def lowest(self) -> float:
        """Of all rounds."""
        return min(self.values)

    @property
    def highest(self) -> float:
        """Of all rounds."""
        return max(self.values)

    def is_better(self, one: float, other: float) -> bool:
        """Tell whether the first of two values is better than the second."""
        return one > other if self.better is Better.HIGHER else self.better is Better.LOWER and one < other

    def is_apart_from(self, other: "Measurement") -> bool:
        """Tell whether no round of one lies within the spread of the other."""
        return self.lowest > other.highest or self.highest < other.lowest


@dataclass(frozen=True, slots=True)
class Group:
    """Measurements that stand side by side in one table.

    Args:
        title: of the table, unique in its section.
        measurements: its rows.
        reference: name of the measurement that ratios refer to, those of its unit; None for no ratios.
        is_peer: whether the reference is another program, or what cannot be surpassed, so that the ratio tells whether
            this project is ahead or behind. False where only sizes differ.

    Raises ValueError if names are not unique, or there is no such reference.
    """

    title: str
    measurements: tuple[Measurement, ...]
    reference: str | None = None
    is_peer: bool = False

    def __post_init__(self) -> None:
        names = [one.name for one in self.measurements]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.title}: names occur twice: {names}")
        if self.reference is not None and self.reference not in names:
            raise ValueError(f"{self.title}: {self.reference} is not among {names}")
        if self.is_peer and self.reference is None:
            raise ValueError(f"{self.title}: who is the peer?")

    def named(self, name: str) -> Measurement | None:
        """The measurement of that name."""
        return next((one for one in self.measurements if one.name == name), None)

    def ratio(self, measurement: Measurement) -> float | None:
        """Its median by that of the reference; None for the reference itself, other units, and a reference of 0."""
        if self.reference is None or measurement.name == self.reference:
            return None
        reference = self.named(self.reference)
        if reference is None or reference.unit != measurement.unit or not reference.median:
            return None
        return measurement.median / reference.median


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run of a section has found.

    Args:
        groups: its tables; titles are unique.
        notes: sentences on what this run saw and no table tells.

    Raises ValueError if titles are not unique.
    """

    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        titles = [one.title for one in self.groups]
        if len(set(titles)) != len(titles):
            raise ValueError(f"titles occur twice: {titles}")

    def group(self, title: str) -> Group | None:
        """The group of that title."""
        return next((one for one in self.groups if one.title == title), None)
