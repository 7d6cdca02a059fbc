from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import (
    MAX_BUCKETS,
    HashRange,
    LayoutArgumentError,
    Segment,
    SegmentLayout,
    bucket_count_for,
    bucket_of,
    bucket_owners,
    canonical_hash,
    equal_splits,
    ranges_of,
    validate_ranges,
)
from tests.unit.layout.strategies import hashes, unhurried

bucket_counts = st.integers(1, MAX_BUCKETS)
split_points = st.sets(st.integers(2, 0xFFFF), max_size=20).map(lambda points: tuple(sorted(points)))


@unhurried
@given(st.integers(1, 5000), st.integers(1, 5000))
def test_every_segment_gets_its_share_of_the_budget_within_bounds(budget: int, segments: int) -> None:
    share = bucket_count_for(budget, segments)
    assert 1 <= share <= MAX_BUCKETS
    assert share in {1, MAX_BUCKETS, budget // segments}


@pytest.mark.parametrize(("budget", "segments"), [(0, 1), (1, 0), (-4, 2)])
def test_a_budget_or_segment_count_below_one_is_refused(budget: int, segments: int) -> None:
    with pytest.raises(LayoutArgumentError, match="both must be at least 1"):
        bucket_count_for(budget, segments)


@unhurried
@given(bucket_counts)
def test_equal_buckets_are_what_the_dispatcher_accepts_hazard_b12(buckets: int) -> None:
    ranges = ranges_of(equal_splits(buckets))
    assert len(ranges) == buckets
    assert validate_ranges(ranges) == ranges
    assert max(one.size for one in ranges) - min(one.size for one in ranges) <= 1


@unhurried
@given(bucket_counts, st.integers(2, 8))
def test_a_split_and_a_merge_back_change_the_buckets_once_at_most_hazard_b11(buckets: int, parts: int) -> None:
    layout = SegmentLayout(0, 1, {0: Segment(0, HashRange.full(), buckets=buckets)})
    counts = []
    for round_trip in range(3):
        layout = layout.split(layout.active[0].segment_id, now_ms=round_trip, into=parts)
        layout = layout.merge([segment.segment_id for segment in layout.active], now_ms=round_trip)
        counts.append(layout.active[0].buckets)
    assert counts == [max(buckets // parts, 1) * parts] * 3


@pytest.mark.parametrize("buckets", [-1, 1025, 40000])
def test_bucket_counts_out_of_range_are_refused(buckets: int) -> None:
    with pytest.raises(LayoutArgumentError, match=f"{buckets} entry buckets: a segment has 1 to 1024"):
        equal_splits(buckets)


@unhurried
@given(split_points, hashes)
def test_a_hash_lies_in_the_range_of_its_bucket_which_its_canonical_hash_names(
    splits: tuple[int, ...], value: int
) -> None:
    bucket = bucket_of(splits, value)
    assert ranges_of(splits)[bucket].contains(value)
    canonical = canonical_hash(splits, value)
    assert canonical != 0
    assert bucket_of(splits, canonical) == bucket


@pytest.mark.parametrize("splits", [(5, 5), (7, 3), (0,), (0x10000,)])
def test_points_that_do_not_ascend_are_refused(splits: tuple[int, ...]) -> None:
    with pytest.raises(LayoutArgumentError):
        ranges_of(splits)


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        ([], "cannot be empty"),
        ([(0, 10), (12, 0xFFFF)], "leaves a gap"),
        ([(0, 10), (10, 0xFFFF)], "overlaps the one before"),
        ([(1, 0xFFFF)], "leaves a gap"),
        ([(0, 10)], "does not reach ffff"),
        ([(0, 0), (1, 0xFFFF)], "keep hash 0 for messages without key"),
        ([(0, 0x10000)], "leaves the ring"),
    ],
)
def test_lists_the_dispatcher_refuses_are_refused(ranges: list[tuple[int, int]], reason: str) -> None:
    with pytest.raises(LayoutArgumentError, match=reason):
        validate_ranges(ranges)


@unhurried
@given(bucket_counts, st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=40))
def test_owners_hold_contiguous_runs_that_differ_by_at_most_one(buckets: int, consumers: set[str]) -> None:
    owners = bucket_owners(buckets, consumers)
    assert len(owners) == buckets
    names = sorted(consumers)
    for index, name in enumerate(names):
        first, beyond = index * buckets // len(names), (index + 1) * buckets // len(names)
        assert owners[first:beyond] == (name,) * (beyond - first)
        assert owners.count(name) == beyond - first


def test_owners_do_not_depend_on_the_order_given_and_nobody_owns_without_consumers() -> None:
    assert bucket_owners(5, ["b", "a"]) == bucket_owners(5, ["a", "b"]) == ("a", "a", "b", "b", "b")
    assert bucket_owners(5, []) == ()


def test_one_bucket_is_the_whole_ring() -> None:
    assert ranges_of(equal_splits(1)) == (HashRange.full(),)
