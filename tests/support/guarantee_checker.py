"""Whether what was sent, stored and received keeps the guarantees: nothing lost, duplicated or out of order. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from scalable_topics.layout import HashRange, key_hash, segment_hash


class Numbered(NamedTuple):
    """One message: which producer's, under which key, and its number among those."""

    producer: str
    key: str
    counter: int

    def payload(self, size_bytes: int = 0) -> bytes:
        """What is sent, padded to a size."""
        return f"{self.producer}|{self.key}|{self.counter}|".encode().ljust(size_bytes, b".")

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read a payload. Raises ValueError if it is something else."""
        producer, key, counter, _ = payload.decode().split("|", 3)
        return cls(producer, key, int(counter))


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment as it was read back.

    Args:
        segment_id: its id; children have higher ones than their parents.
        hash_range: what it covers.
        messages: everything on it, in order; None if it could not be read because it has been pruned.
    """

    segment_id: int
    hash_range: HashRange
    messages: Sequence[Numbered] | None


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong; empty if the guarantees held.

    Args:
        lost: acknowledged to the producer and stored nowhere.
        duplicated: stored more than once.
        disordered: stored after a later message of the same producer and key, along the key's segments.
        misrouted: stored on a segment that does not cover the key, with the segment's id.
        unreceived: acknowledged to the producer, and delivered to no consumer.
        strange: stored although nobody sent it.
    """

    lost: list[Numbered] = field(default_factory=list)
    duplicated: list[Numbered] = field(default_factory=list)
    disordered: list[Numbered] = field(default_factory=list)
    misrouted: list[tuple[Numbered, int]] = field(default_factory=list)
    unreceived: list[Numbered] = field(default_factory=list)
    strange: list[Numbered] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)

    def __str__(self) -> str:
        return ", ".join(f"{name} {len(getattr(self, name))}" for name in self.__slots__) + "".join(
            f"\n  {name}: {getattr(self, name)[:5]}" for name in self.__slots__ if getattr(self, name)
        )


def check(
    sent: Iterable[Numbered],
    acknowledged: Iterable[Numbered],
    segments: Iterable[StoredSegment],
    received: Iterable[Numbered],
) -> Findings:
    """Compare what was sent with what became of it.

    Args:
        sent: every message an application handed over.
        acknowledged: those reported as stored.
        segments: what each segment that ever was holds. What consumers received counts as stored where one was pruned.
        received: what consumers got, in any order and as often as it came.
    """
    known, told, got = set(sent), list(acknowledged), set(received)
    copies: Counter[Numbered] = Counter()
    highest: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    findings = Findings()
    is_pruned = False
    for segment in sorted(segments, key=lambda segment: segment.segment_id):
        is_pruned = is_pruned or segment.messages is None
        for message in segment.messages or ():
            copies[message] += 1
            if copies[message] == 1:
                lane = (message.producer, message.key)
                if message.counter < highest[lane]:
                    findings.disordered.append(message)
                highest[lane] = max(highest[lane], message.counter)
            if not segment.hash_range.contains(segment_hash(key_hash(message.key))):
                findings.misrouted.append((message, segment.segment_id))
    findings.lost.extend(m for m in told if m not in copies and not (is_pruned and m in got))
    findings.duplicated.extend(message for message, count in copies.items() if count > 1)
    findings.unreceived.extend(message for message in told if message not in got)
    findings.strange.extend(message for message in copies if message not in known)
    return findings


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long sends took, in seconds, from the call to the outcome."""

    count: int
    p50_seconds: float
    p99_seconds: float
    max_seconds: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self:
        """Sum up; zeros if there are none."""
        ordered = sorted(seconds)
        if not ordered:
            return cls(0, 0.0, 0.0, 0.0)
        last = len(ordered) - 1
        return cls(len(ordered), ordered[last // 2], ordered[round(last * 0.99)], ordered[-1])

    def __str__(self) -> str:
        p50, p99, most = (f"{value * 1000:.0f}" for value in (self.p50_seconds, self.p99_seconds, self.max_seconds))
        return f"{self.count} sends, p50 {p50} ms, p99 {p99} ms, max {most} ms"


def near_changes(
    sends: Iterable[tuple[float, float]], changes: Sequence[tuple[float, float]], within_seconds: float
) -> tuple[Latencies, Latencies]:
    """Latencies of the sends that were under way during a change, or called soon after, and those of the others.

    Args:
        sends: when each was called, and how long it took.
        changes: when each began and ended.
        within_seconds: how long after its end a change counts.
    """
    near: list[float] = []
    quiet: list[float] = []
    for called_at, took_seconds in sends:
        touched = any(called_at <= end + within_seconds and called_at + took_seconds >= begin for begin, end in changes)
        (near if touched else quiet).append(took_seconds)
    return Latencies.of(near), Latencies.of(quiet)


def by_segment(
    messages: Mapping[int, Sequence[Numbered] | None], ranges: Mapping[int, HashRange]
) -> list[StoredSegment]:
    """Put together what was read and what the layout says."""
    return [StoredSegment(segment_id, ranges[segment_id], found) for segment_id, found in messages.items()]
