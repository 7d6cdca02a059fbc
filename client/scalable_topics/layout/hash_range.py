"""Hash ranges on a 16-bit ring (pip-468)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scalable_topics.layout.errors import LayoutArgumentError, LayoutStateError

RING_SIZE = 0x10000
LAST_HASH = RING_SIZE - 1

_DESCRIPTOR = re.compile(r"([0-9a-f]{4})-([0-9a-f]{4})")


@dataclass(frozen=True, slots=True, order=True)
class HashRange:
    """A part of the ring 0x0000-0xFFFF, both ends inclusive; ordered by start, then end (pip-468).

    Args:
        start: first hash, 0..65535.
        end: last hash, `start`..65535.

    Raises:
        LayoutArgumentError: the bounds leave the ring or are reversed.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not (0 <= self.start <= LAST_HASH and 0 <= self.end <= LAST_HASH):
            raise LayoutArgumentError(f"hash range {self.start}..{self.end} leaves the ring 0..{LAST_HASH}")
        if self.start > self.end:
            raise LayoutArgumentError(f"hash range {self.start}..{self.end} ends before it starts")

    @classmethod
    def full(cls) -> HashRange:
        """The whole ring."""
        return cls(0, LAST_HASH)

    @classmethod
    def parse_descriptor(cls, text: str) -> HashRange:
        """Read the `hhhh-hhhh` form. Raises LayoutArgumentError for anything else."""
        match = _DESCRIPTOR.fullmatch(text)
        if match is None:
            raise LayoutArgumentError(f"{text!r} is not a hash range like 0000-7fff")
        return cls(int(match[1], 16), int(match[2], 16))

    @property
    def descriptor(self) -> str:
        """The `hhhh-hhhh` form that names and records use: lower-case hex, four digits each."""
        return f"{self.start:04x}-{self.end:04x}"

    @property
    def size(self) -> int:
        """How many hashes it covers, 1..65536."""
        return self.end - self.start + 1

    @property
    def midpoint(self) -> int:
        """Last hash of the first half."""
        return self.start + (self.end - self.start) // 2

    def contains(self, value: int) -> bool:
        """Whether the hash `value` lies in the range."""
        return self.start <= value <= self.end

    def contains_range(self, other: HashRange) -> bool:
        """Whether every hash of `other` lies in the range."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: HashRange) -> bool:
        """Whether some hash lies in both."""
        return self.start <= other.end and other.start <= self.end

    def touches(self, other: HashRange) -> bool:
        """Whether one begins right after the other ends, in either order; the ring does not wrap."""
        return self.end + 1 == other.start or other.end + 1 == self.start

    def split(self, at: int | None = None, into: int = 2) -> tuple[HashRange, ...]:
        """Cut the range into parts, in ring order.

        Args:
            at: first hash of the second of two parts; None cuts at the midpoint.
            into: number of parts, 2 or more. Three or more parts have the floor width each and the last
                takes the rest. Not together with `at`.

        Raises:
            LayoutArgumentError: `at` outside the range or at its start, `into` below 2, or both given.
            LayoutStateError: the range is narrower than the number of parts.
        """
        if into < 2:
            raise LayoutArgumentError(f"a range is split into 2 parts or more, not {into}")
        if at is not None and into != 2:
            raise LayoutArgumentError(f"a split point makes two parts; it cannot be combined with {into} parts")
        if self.size == 1:
            raise LayoutStateError(f"{self} is one hash wide and cannot be split")
        if self.size < into:
            raise LayoutStateError(f"{self} is {self.size} hashes wide and cannot be split into {into} parts")
        if at is not None and not self.start < at <= self.end:
            raise LayoutArgumentError(
                f"split point 0x{at:04x} is outside {self}; it must lie in [{self.start + 1:04x}, {self.end:04x}]"
            )
        if into == 2:
            second = self.midpoint + 1 if at is None else at
            return HashRange(self.start, second - 1), HashRange(second, self.end)
        width = self.size // into
        starts = [self.start + index * width for index in range(into)]
        ends = [start - 1 for start in starts[1:]] + [self.end]
        return tuple(HashRange(start, end) for start, end in zip(starts, ends, strict=True))

    def union(self, other: HashRange) -> HashRange:
        """The range covering both. Raises LayoutArgumentError unless they touch."""
        if not self.touches(other):
            raise LayoutArgumentError(f"hash ranges {self} and {other} do not touch")
        return HashRange(min(self.start, other.start), max(self.end, other.end))

    def __str__(self) -> str:
        return f"[{self.start:04x}, {self.end:04x}]"
