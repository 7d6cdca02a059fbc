"""The unit of assignment: a segment, or one of its entry buckets (pip-486)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

WHOLE = -1
"""Stands for all buckets of a segment, read as one."""


class Part(NamedTuple):
    """What one consumer reads of a segment.

    Args:
        segment_id: id, unique within the topic.
        bucket: index of the entry bucket, 0 or more; WHOLE for the whole segment.
    """

    segment_id: int
    bucket: int = WHOLE

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole segment."""
        return self.bucket == WHOLE

    def conflicts_with(self, other: Part) -> bool:
        """Whether nobody may read both at a time: they have a bucket in common.

        That holds for one consumer, too: brokers attach nobody Exclusive beside Key_Shared.
        """
        return self.segment_id == other.segment_id and (self.is_whole or other.is_whole or self.bucket == other.bucket)


def whole_of(parts: Iterable[Part]) -> tuple[int, ...]:
    """Ids of the segments that are among `parts` as a whole, in order."""
    return tuple(sorted(part.segment_id for part in parts if part.is_whole))


def buckets_of(parts: Iterable[Part]) -> dict[int, tuple[int, ...]]:
    """The buckets that are among `parts`, in order, by the id of their segment, in order."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for part in sorted(parts):
        if not part.is_whole:
            found[part.segment_id].append(part.bucket)
    return {segment_id: tuple(buckets) for segment_id, buckets in found.items()}


def to_buckets_json(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """The buckets that are among `parts`, as frames and objects have them: `{"segment": 3, "buckets": [0, 2]}`."""
    return [{"segment": segment_id, "buckets": list(buckets)} for segment_id, buckets in buckets_of(parts).items()]
