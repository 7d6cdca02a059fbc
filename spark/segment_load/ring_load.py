"""How the load of recorded segments lies on the hash ring, and what of it any other part of the ring has. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scalable_topics.layout import RING_SIZE, HashRange
from scalable_topics_operator.autoscale.load import Rates


@dataclass(frozen=True, slots=True)
class RecordedSegment:
    """A segment in one minute of the history.

    Args:
        segment_id: its id.
        hash_range: its part of the ring.
        rates: averages of the minute; None where they do not count.
        at_ms: when the minute began, milliseconds since 1970.
    """

    segment_id: int
    hash_range: HashRange
    rates: Rates | None
    at_ms: int


def newest(segments: Iterable[RecordedSegment]) -> list[RecordedSegment]:
    """Those that take writes, in ring order: what overlaps a segment of a higher id has been replaced by it."""
    found: list[RecordedSegment] = []
    for one in sorted(segments, key=lambda it: -it.segment_id):
        if not any(one.hash_range.overlaps(it.hash_range) for it in found):
            found.append(one)
    return sorted(found, key=lambda it: it.hash_range)


@dataclass(frozen=True, slots=True)
class _Part:
    """Load of a part of the ring, evenly over it.

    Args:
        hash_range: where.
        rates: all it has.
        at_ms: of when.
    """

    hash_range: HashRange
    rates: Rates
    at_ms: int


class RingLoad:
    """The load at a time: a recorded segment's lies evenly over its range, as no more is known of where its keys are.

    Args:
        parts: in ring order, none overlapping another.
    """

    def __init__(self, parts: Sequence[_Part] = ()) -> None:
        self._parts = parts
        self._starts = [part.hash_range.start for part in parts]

    def after(self, minute: Sequence[RecordedSegment], now_ms: int, kept_ms: int) -> RingLoad:
        """The load one minute on.

        Where nothing counts, as for a while after a segment was made, what was there before stays for a while.

        Args:
            minute: `newest` of the minute.
            now_ms: when the minute began, milliseconds since 1970.
            kept_ms: for how long what was known stays.
        """
        fresh = [_Part(one.hash_range, one.rates, now_ms) for one in minute if one.rates is not None]
        kept = [part for part in self._parts if now_ms - part.at_ms <= kept_ms]
        left = [piece for part in kept for piece in _without(part, fresh)]
        return RingLoad(sorted([*fresh, *left], key=lambda part: part.hash_range))

    def of(self, hash_range: HashRange) -> Rates | None:
        """What a part of the ring has; None if that is not known of all of it."""
        found, known = Rates(), 0
        first = max(0, bisect_right(self._starts, hash_range.start) - 1)
        for part in self._parts[first:]:
            if part.hash_range.start > hash_range.end:
                break
            shared = _shared(part.hash_range, hash_range)
            if shared:
                known += shared
                found = found.plus(part.rates.times(shared / part.hash_range.size))
        return found if known == hash_range.size else None

    @property
    def is_whole(self) -> bool:
        """Whether the load of all of the ring is known."""
        return sum(part.hash_range.size for part in self._parts) == RING_SIZE


def _shared(one: HashRange, other: HashRange) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start) + 1)


def _without(part: _Part, others: Sequence[_Part]) -> Iterable[_Part]:
    """What is left of a part where others, in ring order, have nothing."""
    start, whole = part.hash_range.start, part.hash_range
    for one in others:
        taken = one.hash_range
        if taken.end < start or taken.start > whole.end:
            continue
        if taken.start > start:
            yield _cut(part, HashRange(start, taken.start - 1))
        start = taken.end + 1
    if start <= whole.end:
        yield _cut(part, HashRange(start, whole.end))


def _cut(part: _Part, to: HashRange) -> _Part:
    return replace(part, hash_range=to, rates=part.rates.times(to.size / part.hash_range.size))
