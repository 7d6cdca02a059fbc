"""Entry buckets come back to their share of the budget, and never fewer than consumers need (pip-486, hazard B11)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.bucket_counts import Correction, correction, for_consumers

layouts = st.lists(st.integers(1, 1024), min_size=1, max_size=12).map(lambda counts: dict(enumerate(counts)))


@pytest.mark.parametrize(
    ("buckets", "budget", "consumers", "expected"),
    [
        ({0: 4}, 4, 0, None),
        ({0: 64}, 4, 0, Correction((0,), 4, lowers=True)),
        ({0: 64}, 4, 5, Correction((0,), 8, lowers=True)),
        ({0: 64}, 4, 40, None),
        # Drift over a split and a merge, which round: 3 to 1 and 1 to 2, and 1 to 1 and 1 to 2.
        ({0: 2}, 3, 0, Correction((0,), 3, lowers=False)),
        ({0: 2}, 1, 0, Correction((0,), 1, lowers=True)),
        # 4 over 3 segments is 1 at creation, and 2 is no more than a share that is rounded up.
        ({0: 1, 1: 2, 2: 2}, 4, 0, None),
        ({0: 1, 1: 4, 2: 8}, 4, 0, Correction((1, 2), 2, lowers=True)),
        # Those with too few come first, and with the others where both are to have the same.
        ({0: 16, 1: 1}, 8, 0, Correction((1, 0), 4, lowers=True)),
        ({0: 16, 1: 1}, 8, 16, Correction((1,), 4, lowers=False)),
        # One that has less than its part takes it from nobody: the other keeps what the consumers need.
        ({0: 16, 1: 1}, 1, 10, None),
        # More than may be is more than may be, unless consumers need it.
        ({0: 8, 1: 8}, 64, 8, Correction((0, 1), 4, lowers=True)),
        ({0: 8, 1: 8}, 64, 16, None),
    ],
)
def test_the_budget_shares_and_what_consumers_need(
    buckets: dict[int, int], budget: int, consumers: int, expected: Correction | None
) -> None:
    most = 4 if buckets == {0: 8, 1: 8} else 1024
    assert correction(buckets, budget=budget, consumers=consumers, most=most) == expected


@given(buckets=layouts, budget=st.integers(1, 1024), consumers=st.integers(0, 5000), most=st.integers(1, 1024))
def test_it_comes_to_rest_and_takes_from_no_consumer(
    buckets: dict[int, int], budget: int, consumers: int, most: int
) -> None:
    count = len(buckets)
    seen = [dict(buckets)]
    while (found := correction(buckets, budget=budget, consumers=consumers, most=most)) is not None:
        employed = min(consumers, sum(buckets.values()))
        for segment_id in found.segment_ids:
            assert buckets[segment_id] != found.buckets
            buckets = {**buckets, segment_id: found.buckets}
            assert sum(buckets.values()) >= employed, "not even between two of them"
        assert buckets not in seen, "it would go on for ever"
        seen.append(buckets)
    assert len(seen) <= 3
    share = min(most, max(1, budget // count))
    assert all(has >= share for has in buckets.values())
    top = max(buckets.values())
    if top > max(math.ceil(budget / count), for_consumers(consumers, count)):
        lower = 1 << (top - 1).bit_length() - 1
        assert sum(min(has, lower) for has in buckets.values()) < consumers, "it might have had fewer"


@given(consumers=st.integers(0, 5000), segments=st.integers(1, 64))
def test_what_is_enough_for_consumers_is_a_power_of_two(consumers: int, segments: int) -> None:
    found = for_consumers(consumers, segments)
    assert found & (found - 1) == 0
    assert found * segments >= consumers
    assert found == 1 or (found // 2) * segments < consumers
