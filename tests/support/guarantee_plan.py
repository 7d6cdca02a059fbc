"""A random plan of layout changes that a seed repeats exactly. Pure."""

from __future__ import annotations

import itertools
import os
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from scalable_topics.layout import SegmentChange, SegmentLayout

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One change.

    Args:
        at_seconds: when, counted from the beginning of the traffic.
        kind: `split`, `merge`, or whatever else the caller can do.
        pick: 0 to below 1; picks one of the segments, or of the neighbours, that there are at that time.
    """

    at_seconds: float
    kind: str
    pick: float


def fresh_seed() -> int:
    """A seed that was not used before, or the one in `GUARANTEE_SEED`, to repeat what a report names."""
    return int(os.environ.get("GUARANTEE_SEED") or secrets.randbelow(1 << 32))


def plan_changes(
    seed: int, *, seconds: float, every_seconds: float, kinds: Sequence[str] = ("split", "merge")
) -> list[PlannedChange]:
    """Changes at about equal intervals, the same for the same seed. The first is of the first kind."""
    chance = random.Random(seed)
    changes: list[PlannedChange] = []
    at_seconds = every_seconds
    while at_seconds < seconds:
        kind = chance.choice(kinds) if changes else kinds[0]
        changes.append(PlannedChange(at_seconds + chance.uniform(-0.2, 0.2) * every_seconds, kind, chance.random()))
        at_seconds += every_seconds
    return changes


def plan_segment_change(layout: SegmentLayout, change: PlannedChange, *, most_active: int) -> SegmentChange | None:
    """What a planned split or merge means for the layout there is; the other one where it is impossible, or None.

    Args:
        layout: the present one.
        change: `split` or `merge`.
        most_active: no split beyond this many active segments.
    """
    active = layout.active
    can_split = [segment for segment in active if segment.hash_range.size > 1] if len(active) < most_active else []
    pairs = list(itertools.pairwise(active))
    if can_split and (change.kind == "split" or not pairs):
        return layout.plan_split(_picked(can_split, change.pick).segment_id)
    if pairs:
        return layout.plan_merge([segment.segment_id for segment in _picked(pairs, change.pick)])
    return None


def _picked(items: Sequence[T], pick: float) -> T:
    return items[int(pick * len(items))]
