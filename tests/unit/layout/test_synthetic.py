"""Layouts over ordinary topics (pip-475, R25)."""

from __future__ import annotations

import pytest

from scalable_topics.layout import (
    CreatedBy,
    HashRange,
    LayoutArgumentError,
    TopicName,
    legacy_topics,
    migrated_layout,
    synthetic_layout,
)
from tests.unit.layout.strategies import assert_sound

OLD = TopicName("t", "n", "old")


@pytest.mark.parametrize(
    ("partitions", "topics"),
    [
        (0, ["persistent://t/n/old"]),
        (1, ["persistent://t/n/old-partition-0"]),
        (2, ["persistent://t/n/old-partition-0", "persistent://t/n/old-partition-1"]),
    ],
)
def test_a_synthetic_layout_wraps_each_partition_over_the_whole_ring(partitions: int, topics: list[str]) -> None:
    layout = synthetic_layout(OLD, partitions)
    assert list(legacy_topics(OLD, partitions)) == topics
    assert [segment.topic for segment in layout.active] == topics
    assert {segment.hash_range for segment in layout.active} == {HashRange.full()}
    assert (layout.epoch, layout.next_segment_id, layout.is_synthetic) == (0, len(topics), True)


def test_a_topic_without_partitions_migrates_to_one_parent_and_one_child() -> None:
    layout = migrated_layout(OLD, 0, now_ms=9)
    assert [(one.segment_id, one.topic) for one in layout.sealed] == [(0, "persistent://t/n/old")]
    assert [(one.segment_id, one.hash_range, one.parent_ids) for one in layout.active] == [(1, HashRange.full(), (0,))]
    assert not layout.is_synthetic


def test_a_migrated_layout_seals_all_parents_at_epoch_0_and_gives_them_all_to_every_child() -> None:
    layout = migrated_layout(OLD, 3, bucket_budget=7, now_ms=9, sealed_positions={1: "5:6"})
    assert_sound(layout)
    assert (layout.epoch, layout.next_segment_id) == (0, 6)
    assert {(one.sealed_at_epoch, one.sealed_at_ms, one.child_ids) for one in layout.sealed} == {(0, 9, (3, 4, 5))}
    assert [one.sealed_position for one in layout.sealed] == [None, "5:6", None]
    assert {(one.parent_ids, one.buckets, one.created_at_ms, one.merge_depth) for one in layout.active} == {
        ((0, 1, 2), 2, 9, 0)
    }
    assert {one.created_by for one in layout.segments.values()} == {CreatedBy.MIGRATE}


def test_migration_of_more_than_128_partitions_is_refused_r29() -> None:
    assert len(migrated_layout(OLD, 128).segments) == 256
    with pytest.raises(LayoutArgumentError, match="has 129 partitions; topics of at most 128 can be migrated"):
        migrated_layout(OLD, 129)


def test_a_negative_partition_count_is_refused() -> None:
    for make in (synthetic_layout, migrated_layout):
        with pytest.raises(LayoutArgumentError, match="cannot have -1 partitions"):
            make(OLD, -1)


def test_a_bad_bucket_budget_is_refused() -> None:
    with pytest.raises(LayoutArgumentError, match="both must be at least 1"):
        migrated_layout(OLD, 2, bucket_budget=0)


def test_pruned_parents_leave_ordinary_segments() -> None:
    layout = migrated_layout(OLD, 2, now_ms=1).prune([0, 1])
    assert_sound(layout)
    assert {one.parent_ids for one in layout.active} == {()}
