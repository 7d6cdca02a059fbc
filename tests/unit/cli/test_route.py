"""Where a key goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, SegmentLayout, TopicName, bucket_hash, route, segment_hash
from scalable_topics_operator.cli.route_command import routed

TOPIC = TopicName.parse("acme/shop/orders")
LAYOUT = SegmentLayout.initial(3, bucket_budget=12).split(1, now_ms=1)


@given(st.binary(max_size=40))
def test_the_segment_and_the_bucket_are_those_whose_ranges_hold_the_halves_of_the_hash(key: bytes) -> None:
    found = routed(LAYOUT, TOPIC, "Classic", key)
    assert found.segment == route(LAYOUT, found.key_hash).segment_id
    assert HashRange.parse_descriptor(found.range).contains(segment_hash(found.key_hash))
    assert HashRange.parse_descriptor(found.bucket_range).contains(bucket_hash(found.key_hash))
    assert 0 <= found.bucket < found.buckets == LAYOUT.segment(found.segment).buckets


def test_the_segments_topic_is_named_as_its_backend_names_it() -> None:
    classic, native = routed(LAYOUT, TOPIC, "Classic", b"k"), routed(LAYOUT, TOPIC, "Native", b"k")
    assert classic.topic == f"persistent://acme/shop/orders-segment-{classic.range}-{classic.segment}"
    assert native.topic == f"segment://acme/shop/orders/{native.range}-{native.segment}"
