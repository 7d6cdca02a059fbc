"""One look at the load of all segments of a Pulsar cluster, and its form between replicas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.autoscale.load import Rates


@dataclass(frozen=True, slots=True)
class SegmentSample:
    """A segment in a sample.

    Args:
        rates: as its broker shows them.
        backlog: messages not yet acknowledged, by subscription.
        cold: since when all rates have been below which bounds, if who made the sample knows: milliseconds since 1970.
    """

    rates: Rates
    backlog: Mapping[str, int] = field(default_factory=dict)
    cold: tuple[int, Rates] | None = None


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What the brokers showed at one time.

    Args:
        at_ms: when they were asked, milliseconds since 1970.
        unseen_seconds: for how long a topic that is loaded may be in no answer.
        segments: by full topic name, those whose rates can be relied on.
        unsettled: topics just loaded, or just gone from a broker: their rates mean nothing yet.
        missing: brokers that did not answer, and why.
        settled: whether brokers have been asked for long enough that a topic in none of the answers is not loaded.
    """

    at_ms: int
    unseen_seconds: float
    segments: Mapping[str, SegmentSample]
    unsettled: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    settled: bool = True

    def to_json(self, now_ms: int) -> dict[str, Any]:
        """The form between replicas, whose clocks may differ: it tells its age."""
        return {
            "ageMs": max(0, now_ms - self.at_ms),
            "unseenSeconds": self.unseen_seconds,
            "segments": {
                name: [
                    list(one.rates.values),
                    dict(one.backlog),
                    *([] if one.cold is None else [now_ms - one.cold[0], *one.cold[1].values]),
                ]
                for name, one in self.segments.items()
            },
            "unsettled": sorted(self.unsettled),
            "missing": dict(self.missing),
            "settled": self.settled,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], now_ms: int) -> LoadSample:
        """Read that form. Raises AttributeError, KeyError, TypeError or ValueError for a broken one."""
        return cls(
            at_ms=now_ms - int(data["ageMs"]),
            unseen_seconds=float(data["unseenSeconds"]),
            segments={
                name: SegmentSample(Rates(*rates), backlog, (now_ms - int(cold[0]), Rates(*cold[1:])) if cold else None)
                for name, (rates, backlog, *cold) in data["segments"].items()
            },
            unsettled=frozenset(data["unsettled"]),
            missing=dict(data["missing"]),
            settled=bool(data["settled"]),
        )
