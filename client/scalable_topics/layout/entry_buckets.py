"""Entry buckets: contiguous parts of a segment's second hash ring (pip-486).

A bucket list is written as its split points: the first hash of every bucket but the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from scalable_topics.layout.errors import LayoutArgumentError
from scalable_topics.layout.hash_range import LAST_HASH, RING_SIZE, HashRange

MAX_BUCKETS = 1024
"""Most buckets one segment may have (pip-486 `N_max`)."""

DEFAULT_BUCKET_BUDGET = 4
"""Entry buckets of a topic at creation, over all its segments (pip-486)."""


def bucket_count_for(budget: int, segments: int) -> int:
    """Buckets of each of `segments` initial segments: an equal share of `budget`, within 1..1024.

    Raises LayoutArgumentError unless both are at least 1.
    """
    if budget < 1 or segments < 1:
        raise LayoutArgumentError(f"a bucket budget of {budget} over {segments} segments: both must be at least 1")
    return min(max(1, budget // segments), MAX_BUCKETS)


def equal_splits(buckets: int) -> tuple[int, ...]:
    """Split points of `buckets` equal buckets; 0 and 1 both mean one bucket and give none.

    Raises LayoutArgumentError outside 0..1024: above 32,768 the first bucket would be [0, 0], which brokers
    refuse (hazard B12).
    """
    if not 0 <= buckets <= MAX_BUCKETS:
        raise LayoutArgumentError(f"{buckets} entry buckets: a segment has 1 to {MAX_BUCKETS}")
    return tuple(index * RING_SIZE // buckets for index in range(1, buckets))


def ranges_of(splits: Sequence[int]) -> tuple[HashRange, ...]:
    """The bucket ranges that `splits` (strictly ascending, 1..65535) make; together they tile the ring.

    Raises LayoutArgumentError when the points do not ascend.
    """
    starts = (0, *splits)
    ends = (*(split - 1 for split in splits), LAST_HASH)
    return tuple(HashRange(start, end) for start, end in zip(starts, ends, strict=True))


def bucket_of(splits: Sequence[int], bucket_hash: int) -> int:
    """Index of the bucket that holds `bucket_hash` (0..65535)."""
    return bisect_right(splits, bucket_hash)


def canonical_hash(splits: Sequence[int], bucket_hash: int) -> int:
    """The hash that stands for a bucket towards the broker: its first one, 0 being nudged to 1 since a sticky
    hash of 0 means "no key" there.
    """
    bucket = bucket_of(splits, bucket_hash)
    return max(1, splits[bucket - 1]) if bucket else 1


def validate_ranges(ranges: Iterable[HashRange | tuple[int, int]]) -> tuple[HashRange, ...]:
    """Check a bucket boundary list as the broker's dispatcher does, and answer it as hash ranges.

    Raises LayoutArgumentError unless the ranges, in order, tile 0..65535 and the first is more than [0, 0].
    """
    buckets = tuple(item if isinstance(item, HashRange) else HashRange(*item) for item in ranges)
    if not buckets:
        raise LayoutArgumentError("a bucket list cannot be empty")
    expected = 0
    for bucket in buckets:
        if bucket.start != expected:
            fault = "overlaps the one before" if bucket.start < expected else "leaves a gap before it"
            raise LayoutArgumentError(f"bucket {bucket} {fault}; it must start at {expected:04x}")
        expected = bucket.end + 1
    if expected != RING_SIZE:
        raise LayoutArgumentError(f"the last bucket {buckets[-1]} does not reach {LAST_HASH:04x}")
    if buckets[0].end == 0:
        raise LayoutArgumentError("the first bucket is [0000, 0000]; brokers keep hash 0 for messages without key")
    return buckets


def bucket_owners(buckets: int, consumers: Iterable[str]) -> tuple[str, ...]:
    """Owner of each bucket when `consumers` share a segment, as brokers decide it.

    Of k consumers sorted by name, number j owns buckets floor(j*N/k) .. floor((j+1)*N/k)-1. Surplus consumers
    own none; without consumers the answer is empty.
    """
    names = sorted(consumers)
    return tuple(
        name
        for index, name in enumerate(names)
        for _ in range(index * buckets // len(names), (index + 1) * buckets // len(names))
    )
