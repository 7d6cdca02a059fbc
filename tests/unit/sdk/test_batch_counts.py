"""How full a producer's entries are is told by segment and entry bucket (pip-486)."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from scalable_topics.layout import HashRange
from scalable_topics.sdk.batch_counts import BucketBatches, batches_of, count_batches
from scalable_topics.sdk.layout_message import FollowedSegment
from scalable_topics.sdk.options import ProducerOptions
from scalable_topics.sdk.segment_lane import LaneKey, SegmentLane, Send


def lane(bucket: int = 2) -> SegmentLane:
    return SegmentLane(LaneKey(7, bucket), FollowedSegment(7, HashRange(0, 0xFFFF), "topic", 4))


def stored(lane: SegmentLane, batch_index: int, size_bytes: int = 10) -> Send:
    """A send that a broker has answered."""
    send = Send(0, 0, size_bytes)
    send.lane = lane
    send.position = pulsar.MessageId(-1, 3, 4, batch_index)
    return send


def counted(options: ProducerOptions, *batches: int, size_bytes: int = 10) -> BucketBatches:
    """What is told of batches of so many messages each; of 0 is a message on its own."""
    of = lane()
    for messages in batches:
        indexes = range(messages) if messages else (-1,)
        count_batches(stored(of, index, size_bytes) for index in indexes)
    return batches_of(of, options)


def test_entries_are_told_by_the_first_of_each() -> None:
    found = counted(ProducerOptions(batching_max_messages=10), 5, 3, 0)
    assert (found.segment_id, found.bucket) == (7, 2)
    assert (found.messages, found.entries, found.size_bytes) == (9, 3, 90)
    assert found.mean_messages == 3
    assert found.fill_ratio == pytest.approx(0.3)


def test_entries_of_few_large_messages_are_full_too() -> None:
    found = counted(ProducerOptions(batching_max_messages=1000, batching_max_bytes=100), 4, 4, size_bytes=20)
    assert found.fill_ratio == pytest.approx(0.8)


def test_a_message_larger_than_a_batch_fills_its_entry() -> None:
    assert counted(ProducerOptions(batching_max_bytes=100), 1, size_bytes=5000).fill_ratio == 1


@pytest.mark.parametrize("unbatched", [{"batching_enabled": False}, {"encryption_key": "key"}])
def test_entries_of_one_message_each_are_full_where_nothing_is_batched(unbatched: dict[str, Any]) -> None:
    found = counted(ProducerOptions(**unbatched), 0, 0)
    assert (found.fill_ratio, found.mean_messages) == (1, 1)


def test_nothing_is_stored_yet() -> None:
    found = batches_of(lane(), ProducerOptions())
    assert (found.messages, found.entries, found.fill_ratio, found.mean_messages) == (0, 0, 0, 0)
