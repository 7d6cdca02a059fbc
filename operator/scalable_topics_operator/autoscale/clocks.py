"""When a topic was changed last: what cool-downs count from, kept in its record (pip-483). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scalable_topics.layout import CreatedBy, Segment


@dataclass(frozen=True, slots=True)
class Clocks:
    """When the topic was changed last, by whomever; milliseconds since 1970, None for never.

    A change that failed moves none of them.
    """

    split_at_ms: int | None = None
    merge_at_ms: int | None = None
    rebucket_at_ms: int | None = None

    def moved(self, change: CreatedBy, at_ms: int) -> Clocks:
        """These after a change that succeeded."""
        match change:
            case CreatedBy.SPLIT:
                return replace(self, split_at_ms=at_ms)
            case CreatedBy.MERGE:
                return replace(self, merge_at_ms=at_ms)
            case CreatedBy.REBUCKET:
                return replace(self, rebucket_at_ms=at_ms)
            case _:
                return self

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Clocks:
        """What the segments tell themselves, where the record was lost: the newest of each kind."""
        clocks = cls()
        for segment in sorted(segments, key=lambda one: one.created_at_ms):
            clocks = clocks.moved(segment.created_by, segment.created_at_ms)
        return clocks

    def to_json(self) -> dict[str, Any]:
        """The form in `status.clocks`; empty before the first change."""
        times = {"splitAtMs": self.split_at_ms, "mergeAtMs": self.merge_at_ms, "rebucketAtMs": self.rebucket_at_ms}
        return {name: at_ms for name, at_ms in times.items() if at_ms is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Clocks:
        """Read the form in `status.clocks`."""
        return cls(data.get("splitAtMs"), data.get("mergeAtMs"), data.get("rebucketAtMs"))
