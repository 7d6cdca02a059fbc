from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import (
    HashRange,
    LayoutArgumentError,
    LayoutStateError,
    Segment,
    SegmentLayout,
    SegmentState,
    TopicName,
    bucket_hash,
    key_hash,
    route,
    route_among,
    routing_key,
    segment_hash,
    synthetic_layout,
)
from tests.unit.layout.strategies import key_hashes, layouts, unhurried


def reference_murmur3_x86_32(data: bytes) -> int:
    """Murmur3 x86 32-bit, seed 0, from its published description."""

    def rotated(value: int, by: int) -> int:
        return ((value << by) | (value >> (32 - by))) & 0xFFFFFFFF

    def mixed(block: int) -> int:
        return rotated(block * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    value = 0
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        value ^= mixed(int.from_bytes(data[start : start + 4], "little"))
        value = (rotated(value, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    value ^= mixed(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16


@unhurried
@given(st.binary(max_size=40))
def test_key_hash_is_murmur3_unsigned(key: bytes) -> None:
    assert key_hash(key) == reference_murmur3_x86_32(key)


@unhurried
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_string_key_hashes_as_its_utf8_bytes(key: str) -> None:
    assert key_hash(key) == key_hash(key.encode())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", 0),
        ("a", 1009084850),
        ("key-0", 3812096191),
        ("order-42", 1259446670),
        ("customer-99", 3640651284),
    ],
)
def test_known_hashes(key: str, value: int) -> None:
    assert key_hash(key) == value


@unhurried
@given(key_hashes)
def test_segment_and_bucket_halves_make_the_whole(value: int) -> None:
    assert segment_hash(value) << 16 | bucket_hash(value) == value


@pytest.mark.parametrize(
    ("ordering_key", "partition_key", "base64_encoded", "expected"),
    [
        (None, None, False, None),
        (None, "k", False, b"k"),
        ("o", "k", False, b"o"),
        (b"\xff", "k", False, b"\xff"),
        ("o", None, False, b"o"),
        ("", "k", False, b""),
        (None, "", False, b""),
        (None, "é", False, "é".encode()),
        (None, "/wA=", True, b"\xff\x00"),
        (None, b"/wA=", True, b"\xff\x00"),
        ("/wA=", "k", True, b"/wA="),
        (None, None, True, None),
    ],
)
def test_routing_key_is_the_ordering_key_else_the_decoded_key_r23(
    ordering_key: bytes | str | None,
    partition_key: bytes | str | None,
    base64_encoded: bool,
    expected: bytes | None,
) -> None:
    assert routing_key(ordering_key, partition_key, base64_encoded=base64_encoded) == expected


@unhurried
@given(st.binary(max_size=30))
def test_base64_keys_route_as_their_bytes_r23(key: bytes) -> None:
    assert routing_key(None, base64.b64encode(key).decode(), base64_encoded=True) == key


@pytest.mark.parametrize("key", ["no base64!", "/wA", "é"])
def test_keys_wrongly_marked_as_base64_are_refused(key: str) -> None:
    with pytest.raises(LayoutArgumentError, match="marked as base64"):
        routing_key(None, key, base64_encoded=True)


@unhurried
@given(layouts(), key_hashes)
def test_route_finds_the_only_active_segment_that_covers_the_high_half(layout: SegmentLayout, value: int) -> None:
    covering = [one for one in layout.active if one.hash_range.contains(value >> 16)]
    assert [route(layout, value)] == covering
    assert route_among(layout.segments.values(), value) == covering[0]


@unhurried
@given(st.integers(1, 200), key_hashes)
def test_synthetic_layouts_route_by_modulo_as_partitioned_clients_do_r25(partitions: int, value: int) -> None:
    layout = synthetic_layout(TopicName("t", "n", "old"), partitions)
    expected = (value & 0x7FFFFFFF) % partitions
    assert route(layout, value).segment_id == expected
    assert route_among(reversed(layout.active), value).segment_id == expected


def test_sealed_legacy_segments_do_not_make_the_routing_modulo() -> None:
    segments = [
        Segment(0, HashRange.full(), SegmentState.SEALED, topic="persistent://t/n/old"),
        Segment(1, HashRange(0, 0x7FFF)),
        Segment(2, HashRange(0x8000, 0xFFFF)),
    ]
    assert route_among(segments, 0xFFFF0000).segment_id == 2


def test_no_segment_and_uncovered_hashes_are_refused() -> None:
    with pytest.raises(LayoutStateError, match="no active segment covers the hash ffff"):
        route_among([Segment(0, HashRange(0, 0x7FFF))], 0xFFFF0000)
    with pytest.raises(LayoutStateError, match="no active segment covers the hash 0000"):
        route_among([], 0)
