"""How loaded segments are, as brokers show it (pip-483 SegmentLoadStats, R35). Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

MATERIAL_CHANGE = 0.25
"""A rate that moved by more than this share of what was recorded last is recorded anew."""


class Metric(StrEnum):
    """The four rates, by the names of the knobs that bound them."""

    MSG_RATE_IN = "msgRateIn"
    BYTES_RATE_IN = "bytesRateIn"
    MSG_RATE_OUT = "msgRateOut"
    BYTES_RATE_OUT = "bytesRateOut"


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one segment, or bounds of them, a second each.

    Args:
        msg_rate_in: messages published.
        bytes_rate_in: bytes published.
        msg_rate_out: messages dispatched, over all subscriptions.
        bytes_rate_out: bytes dispatched, over all subscriptions.
    """

    msg_rate_in: float = 0.0
    bytes_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    bytes_rate_out: float = 0.0

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The rates in the order of `Metric`."""
        return self.msg_rate_in, self.bytes_rate_in, self.msg_rate_out, self.bytes_rate_out

    def by_metric(self) -> Iterator[tuple[Metric, float]]:
        """The rates with their names."""
        return zip(Metric, self.values, strict=True)

    @property
    def is_usable(self) -> bool:
        """Whether all of them are numbers a broker can mean."""
        return all(0 <= rate < math.inf for rate in self.values)

    def highest_ratio(self, bounds: Rates) -> tuple[Metric, float]:
        """The rate that is most in parts of its bound, the first of equals.

        A bound of 0 is exceeded by any rate, and by none when there is none.
        """
        highest, found = -1.0, Metric.MSG_RATE_IN
        for metric, rate, bound in zip(Metric, self.values, bounds.values, strict=True):
            ratio = rate / bound if bound > 0 else (math.inf if rate > 0 else 0.0)
            if ratio > highest:
                highest, found = ratio, metric
        return found, highest

    def reaches(self, bounds: Rates) -> bool:
        """Whether any of them is at or above its bound."""
        return any(rate >= bound for rate, bound in zip(self.values, bounds.values, strict=True))

    def plus(self, other: Rates) -> Rates:
        """Both together, as a merged segment would have them."""
        return Rates(*(mine + theirs for mine, theirs in zip(self.values, other.values, strict=True)))

    def times(self, factor: float) -> Rates:
        """All of them so many times."""
        return Rates(*(rate * factor for rate in self.values))


@dataclass(frozen=True, slots=True)
class SegmentLoad:
    """What is recorded of a segment's load.

    Args:
        rates: as of the last material change.
        last_hot_at_ms: when a rate was last seen at or above its merge threshold, milliseconds since 1970; a segment
            that was never seen hot counts from when it was first seen.
    """

    rates: Rates
    last_hot_at_ms: int


def is_material(last: Rates | None, current: Rates, share: float = MATERIAL_CHANGE) -> bool:
    """Whether a sample differs enough from the last recorded one to be recorded.

    Any of the four rates counts. From or to nothing is always a material change; a change of exactly `share` is none.
    """
    if last is None:
        return True
    return any(
        (before == 0) != (now == 0) or abs(now - before) > share * before
        for before, now in zip(last.values, current.values, strict=True)
    )
