"""What one consumer reads of a segment, and what nobody may read beside it."""

from __future__ import annotations

import pytest

from scalable_topics.layout import WHOLE, Part, buckets_of, whole_of


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (Part(1), Part(1), True),
        (Part(1), Part(1, 0), True),
        (Part(1, 0), Part(1, 0), True),
        (Part(1, 0), Part(1, 1), False),
        (Part(1), Part(2), False),
        (Part(1, 0), Part(2, 0), False),
        (Part(1), Part(2, 0), False),
    ],
)
def test_parts_conflict_that_have_a_bucket_in_common(one: Part, other: Part, conflict: bool) -> None:
    assert one.conflicts_with(other) is other.conflicts_with(one) is conflict


def test_whole_segments_and_buckets_are_told_apart() -> None:
    parts = [Part(2, 1), Part(7), Part(2, 0), Part(1, WHOLE), Part(0, 3)]
    assert whole_of(parts) == (1, 7)
    assert buckets_of(parts) == {0: (3,), 2: (0, 1)}
    assert list(buckets_of(parts)) == [0, 2]
