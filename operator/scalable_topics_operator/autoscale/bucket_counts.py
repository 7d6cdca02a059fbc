"""How many entry buckets segments should have: for consumers, and of the topic's budget (pip-486). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Correction:
    """Segments that have too many or too few entry buckets, and how many they should have.

    Args:
        segment_ids: those with too few first, so that there are never fewer in all than before or after.
        buckets: of each of them from then on.
        lowers: whether some have too many.
    """

    segment_ids: tuple[int, ...]
    buckets: int
    lowers: bool


def for_consumers(consumers: int, segments: int) -> int:
    """Entry buckets of each segment that are enough for so many consumers: a power of two."""
    share = max(1, math.ceil(consumers / segments))
    return 1 << (share - 1).bit_length()


def correction(buckets: Mapping[int, int], *, budget: int, consumers: int, most: int) -> Correction | None:
    """What brings segments back to their share of the budget, as far as consumers leave it; None if they are there.

    Splits and merges round, so that the sum drifts from the budget (hazard B11), and what consumers brought stays when
    they have gone. A segment may have the share rounded down, as at creation, or rounded up: between the two nothing
    is done.

    Args:
        buckets: of the active segments, by id.
        budget: entry buckets of the topic.
        consumers: whom the buckets must be enough for, unless they are not now.
        most: entry buckets of a segment at most, unless consumers need what it has.
    """
    count = len(buckets)
    share = min(most, max(1, budget // count))
    short = tuple(sorted(one for one, has in buckets.items() if has < share))
    raised = {one: max(share, has) for one, has in buckets.items()}
    enough = min(most, max(math.ceil(budget / count), for_consumers(consumers, count)))
    needed = min(consumers, sum(raised.values()))
    while sum(min(has, enough) for has in raised.values()) < needed:
        enough = 1 << enough.bit_length()
    beyond = tuple(sorted(one for one, has in raised.items() if has > enough))
    if short and enough != share:
        return Correction(short, share, lowers=False)
    if short or beyond:
        return Correction(short + beyond, enough, lowers=bool(beyond))
    return None
