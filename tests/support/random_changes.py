"""Random changes of a layout, as a person might ask for them; the same seed asks for the same ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from scalable_topics.layout import SegmentLayout

_BUCKETS = (1, 2, 4, 8)
_KINDS = ("Split", "Split", "Split", "Merge", "Merge", "Merge", "Merge", "Rebucket")


@dataclass(frozen=True, slots=True)
class WantedChange:
    """A change to ask for: its type, and the block of a SegmentOperation's spec that says which."""

    kind: str
    block: dict[str, Any] = field(default_factory=dict)


def next_change(layout: SegmentLayout, random: Random, *, fewest: int = 2, most: int = 12) -> WantedChange:
    """What to do next with a layout so that it has between `fewest` and `most` active segments."""
    active = layout.active
    kind = random.choice(_KINDS)
    if len(active) <= fewest:
        kind = "Split"
    elif len(active) >= most - 2:
        kind = "Merge"
    match kind:
        case "Split":
            segment = max(random.sample(active, k=min(3, len(active))), key=lambda one: one.hash_range.size)
            return WantedChange("Split", {"segment": segment.segment_id, "into": random.choice((2, 2, 2, 3))})
        case "Merge":
            count = min(random.choice((2, 2, 2, 3)), len(active) - fewest + 1)
            first = random.randrange(len(active) - count + 1)
            return WantedChange("Merge", {"segments": [one.segment_id for one in active[first : first + count]]})
        case _:
            segment = random.choice(active)
            buckets = random.choice([count for count in _BUCKETS if count != segment.buckets])
            return WantedChange("Rebucket", {"segment": segment.segment_id, "buckets": buckets})
