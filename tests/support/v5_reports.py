"""What the process with Pulsar's V5 client tells of its producers and consumers, as values for the judges. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from scalable_topics.layout import Part
from tests.support.consumption import Receipt
from tests.support.guarantee_checker import Latencies, Numbered

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that the producer was told is stored.

    Args:
        message: which one.
        segment: where it is.
        called_at_seconds: when it was handed over, by the machine's monotonic clock.
        took_seconds: from then until it was told.
    """

    message: Numbered
    segment: int
    called_at_seconds: float
    took_seconds: float

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> Self:
        """Read a report that says `sent`."""
        key, number, segment, called_at_ns, took_ns = report["message"]
        return cls(Numbered(report["of"], key, number), segment, called_at_ns / _NS, took_ns / _NS)


@dataclass(frozen=True, slots=True)
class Received:
    """A message as a consumer got it.

    Args:
        key: None if it has none, which an empty one is not.
        producer: name of the producer, or of the list.
        number: among those of its producer and key.
        segment: it came from.
        at_ns: when, by the machine's monotonic clock.
        acknowledged_at_ns: when that was called for; None if it was not.
    """

    key: str | None
    producer: str
    number: int
    segment: int
    at_ns: int
    acknowledged_at_ns: int | None = None

    def receipt(self, consumer: str) -> Receipt:
        """The same for the judges. Raises ValueError for a message without a key, which they do not know."""
        if self.key is None:
            raise ValueError(f"message {self.number} of {self.producer} has no key")
        message = Numbered(self.producer, self.key, self.number)
        return Receipt(message, Part(self.segment), (), consumer, self.at_ns, self.acknowledged_at_ns)


def read_received(report: Mapping[str, Any]) -> list[Received]:
    """Read a report that says `received`."""
    found = []
    for key, value, segment, at_ns in report["messages"]:
        producer, number, *_ = value.split("|")
        found.append(Received(key, producer, int(number), segment, at_ns))
    return found


def acknowledge(received: list[Received], report: Mapping[str, Any]) -> None:
    """Note a report that says `acknowledged`: it is about the last ones received, which nothing has come after."""
    first = len(received) - report["count"]
    received[first:] = [replace(one, acknowledged_at_ns=report["atNs"]) for one in received[first:]]


def read_latencies(report: Mapping[str, Any]) -> Latencies:
    """Read a producer's report that says `ended`."""
    p50, p99, longest = (report[name] / _NS for name in ("p50Ns", "p99Ns", "longestNs"))
    return Latencies(report["count"], p50, p99, longest)
