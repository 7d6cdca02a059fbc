from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import (
    HashRange,
    LayoutArgumentError,
    TopicName,
    classic_segment_name,
    layout_topic_name,
    native_segment_name,
    parse_classic_segment_name,
    parse_native_segment_name,
    segment_descriptor,
    validate_scalable_name,
)
from tests.unit.layout.strategies import hash_ranges, unhurried

TOPIC = TopicName("t", "n", "orders")
parts = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=12)
topics = st.builds(TopicName, parts, parts, parts)
segment_ids = st.integers(0, 10**12)


@unhurried
@given(topics, hash_ranges(), segment_ids)
def test_segment_names_parse_back(topic: TopicName, hash_range: HashRange, segment_id: int) -> None:
    made = (topic, hash_range, segment_id)
    assert parse_classic_segment_name(classic_segment_name(*made)) == made
    assert parse_native_segment_name(native_segment_name(*made)) == made


@unhurried
@given(topics, hash_ranges(), segment_ids)
def test_each_parser_reads_only_its_own_names(topic: TopicName, hash_range: HashRange, segment_id: int) -> None:
    assert parse_native_segment_name(classic_segment_name(topic, hash_range, segment_id)) is None
    assert parse_classic_segment_name(native_segment_name(topic, hash_range, segment_id)) is None
    assert parse_classic_segment_name(layout_topic_name(topic)) is None


@unhurried
@given(st.text(max_size=60))
def test_what_parses_is_exactly_what_would_be_made(text: str) -> None:
    for parse, make in (
        (parse_classic_segment_name, classic_segment_name),
        (parse_native_segment_name, native_segment_name),
    ):
        for name in (text, f"persistent://t/n/{text}", f"segment://t/n/{text}"):
            parsed = parse(name)
            assert parsed is None or make(*parsed) == name


@unhurried
@given(topics)
def test_topic_names_parse_back_from_either_domain(topic: TopicName) -> None:
    assert TopicName.parse(str(topic)) == topic
    assert TopicName.parse(topic.persistent) == topic


@unhurried
@given(
    st.text("abc-_", min_size=1, max_size=8),
    st.lists(st.sampled_from(["-segment-0000-7fff-1", "-layout", "-partition-0", "-x"]), max_size=3),
)
def test_a_name_is_refused_exactly_when_it_ends_like_a_derived_one(base: str, suffixes: list[str]) -> None:
    topic = TopicName("t", "n", base + "".join(suffixes))
    if not suffixes or suffixes[-1] == "-x":
        validate_scalable_name(topic)
    else:
        with pytest.raises(LayoutArgumentError, match=r"reads as|kept for"):
            validate_scalable_name(topic)


def test_names_read_as_the_specifications_write_them() -> None:
    quarter = HashRange(0x4000, 0x7FFF)
    assert classic_segment_name(TOPIC, quarter, 12) == "persistent://t/n/orders-segment-4000-7fff-12"
    assert native_segment_name(TOPIC, quarter, 12) == "segment://t/n/orders/4000-7fff-12"
    assert segment_descriptor(quarter, 12) == "4000-7fff-12"
    assert layout_topic_name(TOPIC) == "persistent://t/n/orders-layout"
    assert str(TOPIC) == "topic://t/n/orders"
    assert TOPIC.persistent == "persistent://t/n/orders"
    assert TOPIC.pulsar_namespace == "t/n"


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("topic://t/n/orders", TOPIC),
        ("persistent://t/n/orders", TOPIC),
        ("t/n/orders", TOPIC),
        ("orders", TopicName("public", "default", "orders")),
    ],
)
def test_every_spelling_of_a_topic_is_one_identity(text: str, topic: TopicName) -> None:
    """Hazard A6-25875b."""
    assert TopicName.parse(text) == topic


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("non-persistent://t/n/x", "non-persistent topics cannot be scalable"),
        ("segment://t/n/x/0000-ffff-0", "is a segment of a scalable topic"),
        ("kafka://t/n/x", "unknown domain 'kafka'"),
        ("topic://x", "is not a topic name"),
        ("persistent://t/n", "is not a topic name"),
        ("persistent://t/cluster/n/x", "is not a topic name"),
        ("t/n", "is not a topic name"),
        ("t//x", "is not a topic name"),
        ("t/n/a/b", "is not a topic name"),
        ("", "is not a topic name"),
        ("topic://", "is not a topic name"),
    ],
)
def test_other_spellings_are_refused(text: str, reason: str) -> None:
    with pytest.raises(LayoutArgumentError, match=reason):
        TopicName.parse(text)


@pytest.mark.parametrize(
    "name",
    [
        "persistent://t/n/orders-segment-0000-7FFF-1",
        "persistent://t/n/orders-segment-0000-7fff-01",
        "persistent://t/n/orders-segment-0000-7fff-",
        "persistent://t/n/orders-segment-0000-7fff--1",
        "persistent://t/n/orders-segment-7fff-0000-1",
        "persistent://t/n/orders-segment-000-7fff-1",
        "persistent://t/n/-segment-0000-7fff-1",
        "persistent://t/n/orders-segment-0000-7fff-1-partition-0",
        "persistent://t/n/orders-segment-0000-7fff-1\n",
        "persistent://t/n/orders-segment-0000-7fff-\u0661",
        "persistent://n/orders-segment-0000-7fff-1",
        "topic://t/n/orders-segment-0000-7fff-1",
        "non-persistent://t/n/orders-segment-0000-7fff-1",
        "orders-segment-0000-7fff-1",
    ],
)
def test_near_misses_are_no_classic_segments(name: str) -> None:
    assert parse_classic_segment_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "segment://t/n/orders/0000-7FFF-1",
        "segment://t/n/orders/7fff-0000-1",
        "segment://t/n/orders/0000-7fff-01",
        "segment://t/n/orders/0000-7fff",
        "segment://t/n/0000-7fff-1",
        "segment://t/n/a/b/0000-7fff-1",
        "segment://t//orders/0000-7fff-1",
        "topic://t/n/orders/0000-7fff-1",
    ],
)
def test_near_misses_are_no_native_segments(name: str) -> None:
    assert parse_native_segment_name(name) is None


@pytest.mark.parametrize("local", ["orders", "a", "Orders_1.x=y:z", "x-partition", "x-partition-a", "x-segment-1"])
def test_ordinary_names_can_be_scalable_topics(local: str) -> None:
    validate_scalable_name(TopicName("my-tenant", "my.ns_1", local))
    validate_scalable_name(TopicName("t", "n", local + "é" * 50))


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (TopicName("t", "n", ""), "cannot be empty"),
        (TopicName("t", "n", ".."), "cannot be part of a topic name"),
        (TopicName("t", "n", "."), "cannot be part of a topic name"),
        (TopicName("..", "n", "x"), "cannot be part of a topic name"),
        (TopicName("t", "..", "x"), "cannot be part of a topic name"),
        (TopicName("t", "n", "a/b"), "holds a slash"),
        (TopicName("t", "n", "a b"), "white space or control"),
        (TopicName("t", "n", "a\u00a0b"), "white space or control"),
        (TopicName("t", "n", "a\x00"), "white space or control"),
        (TopicName("t", "n", "a\n"), "white space or control"),
        (TopicName("t", "n", "a\ud800"), "white space or control"),
        (TopicName("t", "n", "x-partition-0"), "partition of another topic"),
        (TopicName("t", "n", "x-partition-007"), "partition of another topic"),
        (TopicName("t", "n", "x-segment-0000-7fff-3"), "segment of another scalable topic"),
        (TopicName("t", "n", "x-segment-7fff-0000-3"), "segment of another scalable topic"),
        (TopicName("t", "n", "x-layout"), "kept for layout topics"),
        (TopicName("t", "n", "a" * 201), "201 bytes long; at most 200"),
        (TopicName("t", "n", "é" * 101), "202 bytes long; at most 200"),
        (TopicName("", "n", "x"), "tenant ''"),
        (TopicName("t/u", "n", "x"), "tenant 't/u'"),
        (TopicName("té", "n", "x"), "tenant 'té'"),
        (TopicName("t", "", "x"), "namespace ''"),
        (TopicName("t", "n n", "x"), "namespace 'n n'"),
    ],
)
def test_names_that_cannot_be_scalable_topics_are_refused_r20(topic: TopicName, reason: str) -> None:
    with pytest.raises(LayoutArgumentError, match=reason):
        validate_scalable_name(topic)
