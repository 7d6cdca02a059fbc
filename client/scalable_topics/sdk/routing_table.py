"""From the hash of a key to a lane, for the active segments of one layout (R23). Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from scalable_topics.layout import bucket_hash, equal_splits, partition_of, segment_hash
from scalable_topics.sdk.layout_message import FollowedSegment, Routing
from scalable_topics.sdk.segment_lane import KEYLESS, LaneKey, SegmentLane


class RoutingTable:
    """Routes by segment and, where messages are batched, by entry bucket, so that no batch mixes buckets (pip-486).

    Args:
        active: the active segments, in ring order; with modulo routing in the order of their ids.
        per_bucket: whether each bucket has a lane of its own.
        lane: finds or makes the lane of a key.
        routing: how a key finds its segment.
    """

    def __init__(
        self,
        active: Sequence[FollowedSegment],
        *,
        per_bucket: bool,
        lane: Callable[[LaneKey, FollowedSegment], SegmentLane],
        routing: Routing = Routing.RANGES,
    ) -> None:
        self._active = active
        self._starts = [segment.hash_range.start for segment in active]
        self._splits = [equal_splits(segment.buckets if per_bucket else 1) for segment in active]
        self._lanes: list[list[SegmentLane | None]] = [[None] * (len(splits) + 1) for splits in self._splits]
        self._lane = lane
        self._is_modulo = routing is Routing.MODULO
        self._next_keyless = 0

    def keyed(self, hash_value: int) -> SegmentLane:
        """The lane of a message whose routing key has this hash."""
        if self._is_modulo:
            index = partition_of(hash_value, len(self._active))
        else:
            index = bisect_right(self._starts, segment_hash(hash_value)) - 1
        splits = self._splits[index]
        bucket = bisect_right(splits, bucket_hash(hash_value)) if splits else 0
        found = self._lanes[index][bucket]
        if found is None:
            segment = self._active[index]
            found = self._lane(LaneKey(segment.segment_id, bucket), segment)
            self._lanes[index][bucket] = found
        return found

    def keyless(self) -> SegmentLane:
        """The lane of the next message without any key: round robin, passing over those that are held up."""
        first: SegmentLane | None = None
        for _ in self._active:
            segment = self._active[self._next_keyless]
            self._next_keyless = (self._next_keyless + 1) % len(self._active)
            lane = self._lane(LaneKey(segment.segment_id, KEYLESS), segment)
            if not lane.is_held_up:
                return lane
            first = first or lane
        if first is None:
            raise RuntimeError("a layout has no active segment")
        return first
