"""Segments that the brokers have pruned: the history of a layout that they own and do not keep. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import CreatedBy, HashRange, Segment


@dataclass(frozen=True, slots=True)
class PrunedSegment:
    """A segment that has left the layout.

    Args:
        segment_id: its id.
        hash_range: the part of the ring it covered.
        child_ids: segments that replaced it, as far as that is known.
        created_by: the operation that made it.
        created_at_ms: when it was made, milliseconds since 1970; 0 if unknown.
        sealed_at_ms: when it was sealed; 0 if unknown.
        pruned_at_ms: when it was found to be gone.
    """

    segment_id: int
    hash_range: HashRange
    child_ids: tuple[int, ...]
    created_by: CreatedBy
    created_at_ms: int
    sealed_at_ms: int
    pruned_at_ms: int

    @classmethod
    def of(cls, segment: Segment, *, child_ids: Sequence[int], pruned_at_ms: int) -> PrunedSegment:
        """A segment of the record that is in the layout no more."""
        return cls(
            segment.segment_id,
            segment.hash_range,
            tuple(sorted(child_ids)),
            segment.created_by,
            segment.created_at_ms,
            segment.sealed_at_ms,
            pruned_at_ms,
        )

    def to_json(self) -> dict[str, Any]:
        """The form in `status.pruned`."""
        return {
            "id": self.segment_id,
            "range": self.hash_range.descriptor,
            "children": list(self.child_ids),
            "createdBy": self.created_by.value,
            "createdAtMs": self.created_at_ms,
            "sealedAtMs": self.sealed_at_ms,
            "prunedAtMs": self.pruned_at_ms,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PrunedSegment:
        """Read the form in `status.pruned`. Raises KeyError or ValueError for a broken one."""
        return cls(
            data["id"],
            HashRange.parse_descriptor(data["range"]),
            tuple(data.get("children", ())),
            CreatedBy(data["createdBy"]),
            data.get("createdAtMs", 0),
            data.get("sealedAtMs", 0),
            data["prunedAtMs"],
        )
