from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, LayoutArgumentError, LayoutStateError
from tests.unit.layout.strategies import hash_ranges, hashes, unhurried


@unhurried
@given(hash_ranges(min_size=2))
def test_halves_tile_the_range_and_meet_at_the_midpoint(whole: HashRange) -> None:
    low, high = whole.split()
    assert (low.start, high.end) == (whole.start, whole.end)
    assert (low.end, high.start) == (whole.midpoint, whole.midpoint + 1)
    assert low.size - high.size in {0, 1}


@unhurried
@given(hash_ranges(min_size=2), st.data())
def test_split_point_is_the_first_hash_of_the_second_part(whole: HashRange, data: st.DataObject) -> None:
    at = data.draw(st.integers(whole.start + 1, whole.end))
    assert whole.split(at) == (HashRange(whole.start, at - 1), HashRange(at, whole.end))


@unhurried
@given(hash_ranges(min_size=3), st.data())
def test_equal_parts_have_the_floor_width_and_the_last_takes_the_rest(whole: HashRange, data: st.DataObject) -> None:
    into = data.draw(st.integers(3, min(whole.size, 200)))
    parts = whole.split(into=into)
    assert len(parts) == into
    assert {part.size for part in parts[:-1]} == {whole.size // into}
    assert parts[-1].size == whole.size - (into - 1) * (whole.size // into)
    assert all(left.end + 1 == right.start for left, right in pairwise(parts))
    assert (parts[0].start, parts[-1].end) == (whole.start, whole.end)


@unhurried
@given(hash_ranges(min_size=2), st.data())
def test_union_undoes_a_split_in_either_order(whole: HashRange, data: st.DataObject) -> None:
    low, high = whole.split(data.draw(st.integers(whole.start + 1, whole.end)))
    assert low.union(high) == high.union(low) == whole
    assert low.touches(high)
    assert high.touches(low)


@unhurried
@given(hash_ranges(), hash_ranges())
def test_overlap_and_containment_agree_with_the_hashes(one: HashRange, other: HashRange) -> None:
    edges = {one.start, one.end, other.start, other.end}
    assert one.overlaps(other) == any(one.contains(edge) and other.contains(edge) for edge in edges)
    assert one.contains_range(other) == (one.contains(other.start) and one.contains(other.end))
    assert not (one.overlaps(other) and one.touches(other))


@unhurried
@given(hash_ranges())
def test_descriptor_parses_back(whole: HashRange) -> None:
    assert HashRange.parse_descriptor(whole.descriptor) == whole


@unhurried
@given(hash_ranges(), hashes)
def test_split_point_outside_is_refused_with_the_allowed_ones(whole: HashRange, at: int) -> None:
    if whole.start < at <= whole.end:
        return
    with pytest.raises((LayoutArgumentError, LayoutStateError), match=r"one hash wide|is outside"):
        whole.split(at)


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [(0, 0x10000, "leaves the ring"), (-1, 5, "leaves the ring"), (5, 4, "ends before it starts")],
)
def test_bounds_off_the_ring_or_reversed_are_refused(start: int, end: int, reason: str) -> None:
    with pytest.raises(LayoutArgumentError, match=reason):
        HashRange(start, end)


@pytest.mark.parametrize("text", ["", "0000", "0-7fff", "0000-7FFF", "0000-7fff-1", "7fff-0000", " 0000-7fff"])
def test_malformed_descriptors_are_refused(text: str) -> None:
    with pytest.raises(LayoutArgumentError):
        HashRange.parse_descriptor(text)


def test_ring_does_not_wrap() -> None:
    assert not HashRange(0, 10).touches(HashRange(0x8000, 0xFFFF))


def test_narrow_ranges_are_refused_with_their_width() -> None:
    with pytest.raises(LayoutStateError, match=r"\[002a, 002a\] is one hash wide and cannot be split"):
        HashRange(0x2A, 0x2A).split()
    with pytest.raises(LayoutStateError, match="is 3 hashes wide and cannot be split into 4 parts"):
        HashRange(0, 2).split(into=4)


def test_a_split_point_and_a_part_count_exclude_each_other() -> None:
    with pytest.raises(LayoutArgumentError, match="cannot be combined"):
        HashRange.full().split(5, into=3)
    with pytest.raises(LayoutArgumentError, match="2 parts or more, not 1"):
        HashRange.full().split(into=1)


def test_union_of_separate_or_overlapping_ranges_is_refused() -> None:
    for other in (HashRange(20, 30), HashRange(5, 30)):
        with pytest.raises(LayoutArgumentError, match="do not touch"):
            HashRange(0, 10).union(other)
