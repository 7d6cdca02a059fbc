"""What users are told when a SegmentOperation cannot be carried out (R10, R29)."""

from __future__ import annotations

import pytest

from scalable_topics.layout import LayoutError, SegmentLayout, TopicName, synthetic_layout
from scalable_topics_operator.operations.requests import (
    MergeRequest,
    RebucketRequest,
    ReshapeRequest,
    SplitRequest,
    describe,
    plan,
)
from tests.unit.operations.builders import split_layout

FOUR = SegmentLayout.initial(4, bucket_budget=16)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (SplitRequest(9), "there is no segment 9 in the layout"),
        (SplitRequest(0, at=0), "split point 0x0000 is outside [0000, 3fff]; it must lie in [0001, 3fff]"),
        (SplitRequest(0, at=0x4000), "split point 0x4000 is outside [0000, 3fff]; it must lie in [0001, 3fff]"),
        (SplitRequest(0, into=1), "a range is split into 2 parts or more, not 1"),
        (
            SplitRequest(0, at=5, into=3),
            "a split point makes two parts; it cannot be combined with 3 parts",
        ),
        (SplitRequest(0, into=0x4001), "segment 0 [0000, 3fff] is 16384 hashes wide and cannot be split into 16385"),
        (MergeRequest((1,)), "a merge takes two segments or more, not [1]"),
        (MergeRequest((1, 1)), "a merge names a segment twice: [1, 1]"),
        (MergeRequest((0, 2)), "segments 0 [0000, 3fff] and 2 [8000, bfff] do not touch"),
        (MergeRequest((0, 9)), "there is no segment 9 in the layout"),
        (RebucketRequest(0, 4), "segment 0 already has 4 entry buckets"),
        (RebucketRequest(0, 0), "segment 0 cannot have 0 entry buckets; 1 to 1024 are allowed"),
        (RebucketRequest(0, 1025), "segment 0 cannot have 1025 entry buckets; 1 to 1024 are allowed"),
        (RebucketRequest(9, 2), "there is no segment 9 in the layout"),
    ],
    ids=str,
)
def test_r10_a_request_that_cannot_be_is_refused_in_words(request_: ReshapeRequest, says: str) -> None:
    with pytest.raises(LayoutError) as refusal:
        plan(FOUR, request_, max_records=512)
    assert str(refusal.value).startswith(says)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (SplitRequest(0), "segment 0 is sealed; only active segments can be split"),
        (MergeRequest((0, 1)), "segment 0 is sealed; only active segments can be merged"),
        (RebucketRequest(0, 2), "segment 0 is sealed; only active segments can be rebucketed"),
    ],
    ids=str,
)
def test_r10_sealed_segments_are_not_changed(request_: ReshapeRequest, says: str) -> None:
    with pytest.raises(LayoutError) as refusal:
        plan(split_layout(), request_, max_records=512)
    assert str(refusal.value) == says


def test_ordinary_topics_are_migrated_first() -> None:
    layout = synthetic_layout(TopicName("t", "n", "old"), 2)
    with pytest.raises(LayoutError) as refusal:
        plan(layout, SplitRequest(0), max_records=512)
    assert "persistent://t/n/old-partition-0; migrate it before it is split" in str(refusal.value)


@pytest.mark.parametrize(("max_records", "fits"), [(5, False), (6, True)])
def test_r29_a_full_layout_takes_no_more(max_records: int, fits: bool) -> None:
    if fits:
        assert plan(FOUR, SplitRequest(0), max_records=max_records).child_ids == (4, 5)
        return
    with pytest.raises(LayoutError) as refusal:
        plan(FOUR, SplitRequest(0), max_records=max_records)
    assert str(refusal.value) == (
        "the layout holds 4 segments of 5 and has no room for 2 more; sealed segments leave it once they are drained "
        "and past retention"
    )


def test_planned_on_the_newest_layout_with_the_next_ids() -> None:
    """Hazard B2: the ids of a plan are those that are journaled and committed."""
    assert plan(FOUR, SplitRequest(2, into=3), max_records=512).child_ids == (4, 5, 6)
    assert plan(FOUR, MergeRequest((3, 2)), max_records=512).parent_ids == (2, 3)
    assert plan(FOUR, SplitRequest(1, at=0x4001), max_records=512).children[0].hash_range.size == 1


def test_a_dry_run_says_what_would_happen() -> None:
    change = plan(FOUR, SplitRequest(0), max_records=512)
    assert describe(change, FOUR) == [
        "seals segment 0 [0000, 3fff]",
        "creates segment 4 [0000, 1fff] with 2 entry buckets",
        "creates segment 5 [2000, 3fff] with 2 entry buckets",
    ]
