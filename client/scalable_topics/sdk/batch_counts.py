"""Into how many entries a producer's messages were put, by entry bucket (pip-486).

An entry never mixes buckets, so the more buckets a segment has, the fewer messages an entry may hold where traffic is
low. What is counted here tells whether that costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalable_topics.sdk.options import ProducerOptions
    from scalable_topics.sdk.segment_lane import SegmentLane, Send


class BatchCounts:
    """What one lane has stored. Written for every message, so it is a bare record."""

    __slots__ = ("entries", "messages", "size_bytes")

    def __init__(self) -> None:
        self.messages = 0
        self.entries = 0
        self.size_bytes = 0


@dataclass(frozen=True, slots=True)
class BucketBatches:
    """What a producer has stored of one entry bucket since it first sent to the segment.

    Args:
        segment_id: the segment.
        bucket: index of the bucket, 0 too where the segment has only one or nothing is batched; -1 for messages without
            any key.
        messages: how many are stored. Those are not counted whose place is not known: of a send whose broker died
            before it could answer, for instance.
        entries: in how many entries.
        size_bytes: payload, keys and properties of the messages.
        fill_ratio: how full an entry was on average, from 0 to 1: the greater one of its share of
            `batching_max_messages` and of `batching_max_bytes`; 1 where nothing is batched, 0 while there is nothing.
    """

    segment_id: int
    bucket: int
    messages: int
    entries: int
    size_bytes: int
    fill_ratio: float

    @property
    def mean_messages(self) -> float:
        """Messages in an entry on average; 0 while there is nothing."""
        return self.messages / self.entries if self.entries else 0.0


def count_batches(stored: Iterable[Send]) -> None:
    """Count sends that were just stored at the places that they have."""
    for send in stored:
        lane = send.lane
        if lane is not None:
            counts = lane.batches
            counts.messages += 1
            counts.size_bytes += send.size_bytes
            # 0 for the first of a batch, and -1 for a message that is an entry of its own.
            if send.position.batch_index() <= 0:
                counts.entries += 1


def batches_of(lane: SegmentLane, options: ProducerOptions) -> BucketBatches:
    """What a lane of a producer with these options has stored."""
    counts = lane.batches
    return BucketBatches(
        lane.key.segment_id,
        lane.key.bucket,
        counts.messages,
        counts.entries,
        counts.size_bytes,
        _fill_ratio(counts, options),
    )


def _fill_ratio(counts: BatchCounts, options: ProducerOptions) -> float:
    if not counts.entries:
        return 0.0
    if not options.batches:
        return 1.0
    of_messages = counts.messages / (counts.entries * options.batching_max_messages)
    of_bytes = counts.size_bytes / (counts.entries * options.batching_max_bytes)
    # A message that is larger than a batch may be goes alone.
    return min(1.0, max(of_messages, of_bytes))
