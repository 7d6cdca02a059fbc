"""What a restored group has received of buckets beyond where its cursor stands (R22)."""

from __future__ import annotations

import base64
from typing import Any

import pulsar
import pytest

from scalable_topics.layout import WHOLE, HashRange, bucket_hash, bucket_of, equal_splits, key_hash, sticky_keys
from scalable_topics.sdk.bucket_floors import BucketFloors
from scalable_topics.sdk.outgoing_message import BASE64, KEY_ENCODING_PROPERTY, ORDERING_KEY_PROPERTY
from scalable_topics.sdk.pulsar_binding import MessageBuilder
from scalable_topics.sdk.session_frames import AssignedSegment, Floor

BUCKETS = 4


def floors(bucket: int = WHOLE, **by_bucket: int) -> BucketFloors:
    """Floors of a segment, or of a bucket: entries by `bN`."""
    found = tuple(Floor(int(name[1:]), 7, entry, -1) for name, entry in by_bucket.items())
    return BucketFloors(
        AssignedSegment(0, HashRange.full(), "topic", bucket=bucket, bucket_count=BUCKETS, floors=found)
    )


def message(key: str | None = None, ordering_key: str | None = None, **properties: str) -> pulsar.Message:
    """A message as a consumer gets it."""
    builder = MessageBuilder().content(b"x")
    if key is not None:
        builder.partition_key(key)
    if ordering_key is not None:
        builder.ordering_key(ordering_key)
    for name, value in properties.items():
        builder.property(name, value)
    return builder.build()


def key_in(bucket: int) -> str:
    """A key of a bucket."""
    return next(
        key
        for key in (f"k{number}" for number in range(1000))
        if bucket_of(equal_splits(BUCKETS), bucket_hash(key_hash(key))) == bucket
    )


def test_a_bucket_is_read_from_its_floor_on() -> None:
    found = floors(2, b2=9)
    assert found.covers((7, 9, -1), message())
    assert not found.covers((7, 10, -1), message())
    assert found.covers((7, 9, 3), message()), "all of the entry is meant"
    assert not floors(2).covers((0, 0, -1), message())


@pytest.mark.parametrize("bucket", range(BUCKETS))
def test_of_a_whole_segment_each_message_is_judged_by_its_bucket(bucket: int) -> None:
    found = floors(b1=5, b3=9)
    keys = sticky_keys(BUCKETS)
    assert keys is not None
    reached = {1: 5, 3: 9}.get(bucket, -1)
    raw = base64.b64encode(key_in(bucket).encode()).decode()
    kinds: list[Any] = [
        message(key_in(bucket)),
        message("other", key_in(bucket)),
        message("other", keys.of_bucket(bucket)),
        message(None, keys.of_bucket(bucket)),
        message("other", "another", **{ORDERING_KEY_PROPERTY: raw}),
        message(raw, **{KEY_ENCODING_PROPERTY: BASE64}),
    ]
    for entry in range(11):
        assert [found.covers((7, entry, -1), each) for each in kinds] == [entry <= reached] * len(kinds)


def test_a_message_that_does_not_say_its_bucket_comes_again() -> None:
    assert not floors(b0=9, b1=9, b2=9, b3=9).covers((7, 3, -1), message())
