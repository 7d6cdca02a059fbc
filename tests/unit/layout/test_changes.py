"""Split, merge, rebucket and rollover: what is planned, what is refused and in which words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from scalable_topics.layout import (
    CreatedBy,
    HashRange,
    LayoutArgumentError,
    LayoutStateError,
    PlannedSegment,
    SegmentChange,
    SegmentLayout,
    TopicName,
    migrated_layout,
    planned_initial,
    synthetic_layout,
)


def ranges(change: SegmentChange) -> list[str]:
    return [child.hash_range.descriptor for child in change.children]


def ids(layout: SegmentLayout) -> list[int]:
    return [segment.segment_id for segment in layout.active]


class TestInitial:
    def test_planned_and_made_segments_are_the_same(self) -> None:
        layout = SegmentLayout.initial(3, bucket_budget=7, created_at_ms=5)
        planned = planned_initial(3, bucket_budget=7)
        assert [
            PlannedSegment(one.segment_id, one.hash_range, one.buckets, one.merge_depth) for one in layout.active
        ] == list(planned)
        assert {one.buckets for one in planned} == {2}
        assert {(one.created_at_ms, one.created_by) for one in layout.active} == {(5, CreatedBy.CREATE)}

    def test_one_segment_covers_the_ring(self) -> None:
        assert SegmentLayout.initial(1).segment(0).hash_range == HashRange.full()

    @pytest.mark.parametrize("segments", [0, -1, 65537])
    def test_counts_off_the_ring_are_refused(self, segments: int) -> None:
        with pytest.raises(LayoutArgumentError, match=f"1 to 65536 segments, not {segments}"):
            SegmentLayout.initial(segments)

    def test_a_budget_below_one_is_refused(self) -> None:
        with pytest.raises(LayoutArgumentError, match="both must be at least 1"):
            SegmentLayout.initial(1, bucket_budget=0)

    def test_every_hash_can_have_its_own_segment(self) -> None:
        planned = planned_initial(65536)
        assert {one.hash_range.size for one in planned} == {1}


class TestSplit:
    def test_halves_at_the_midpoint_with_half_the_buckets(self) -> None:
        change = SegmentLayout.initial(1).plan_split(0)
        assert (change.kind, change.parent_ids, change.child_ids) == (CreatedBy.SPLIT, (0,), (1, 2))
        assert ranges(change) == ["0000-7fff", "8000-ffff"]
        assert [child.buckets for child in change.children] == [2, 2]

    def test_at_an_explicit_point(self) -> None:
        assert ranges(SegmentLayout.initial(1).plan_split(0, at=0x1000)) == ["0000-0fff", "1000-ffff"]

    def test_into_several_parts(self) -> None:
        change = SegmentLayout.initial(1, bucket_budget=10).plan_split(0, into=3)
        assert ranges(change) == ["0000-5554", "5555-aaa9", "aaaa-ffff"]
        assert [child.buckets for child in change.children] == [3, 3, 3]

    def test_more_parts_than_buckets_leave_one_bucket_each(self) -> None:
        assert {child.buckets for child in SegmentLayout.initial(1).plan_split(0, into=8).children} == {1}

    def test_of_a_sealed_segment_is_refused(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1)
        with pytest.raises(LayoutArgumentError, match="segment 0 is sealed; only active segments can be split"):
            layout.plan_split(0)

    def test_of_an_unknown_segment_is_refused(self) -> None:
        with pytest.raises(LayoutArgumentError, match="there is no segment 9"):
            SegmentLayout.initial(1).plan_split(9)

    def test_of_a_segment_one_hash_wide_is_refused_hazard_b14(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1, at=1)
        with pytest.raises(LayoutStateError, match=r"^segment 1 \[0000, 0000\] is one hash wide and cannot be split"):
            layout.plan_split(1)

    def test_point_outside_the_segment_is_refused(self) -> None:
        with pytest.raises(LayoutArgumentError, match=r"split point 0x9000 is outside \[0000, 7fff\]"):
            SegmentLayout.initial(2).plan_split(0, at=0x9000)


class TestMerge:
    def test_several_in_any_order_adding_their_buckets(self) -> None:
        layout = SegmentLayout.initial(4, bucket_budget=8)
        change = layout.plan_merge([2, 0, 1])
        assert (change.kind, change.parent_ids, change.child_ids) == (CreatedBy.MERGE, (0, 1, 2), (4,))
        assert ranges(change) == ["0000-bfff"]
        assert (change.children[0].buckets, change.children[0].merge_depth) == (6, 1)
        merged = layout.apply(change, now_ms=1)
        assert ids(merged) == [4, 3]
        assert [parent.segment_id for parent in merged.parents_of(4)] == [0, 1, 2]

    def test_buckets_are_capped(self) -> None:
        """Hazard A1-26434a."""
        layout = SegmentLayout.initial(2, bucket_budget=2048)
        assert layout.plan_merge([0, 1]).children[0].buckets == 1024

    def test_of_segments_that_do_not_touch_is_refused(self) -> None:
        with pytest.raises(LayoutArgumentError, match=r"segments 0 \[0000, 3fff\] and 2 \[8000, bfff\] do not touch"):
            SegmentLayout.initial(4).plan_merge([2, 0])

    def test_of_one_or_the_same_twice_is_refused(self) -> None:
        layout = SegmentLayout.initial(2)
        with pytest.raises(LayoutArgumentError, match="two segments or more"):
            layout.plan_merge([1])
        with pytest.raises(LayoutArgumentError, match="names a segment twice"):
            layout.plan_merge([1, 1])

    def test_of_a_sealed_segment_is_refused(self) -> None:
        layout = SegmentLayout.initial(2).split(0, now_ms=1)
        with pytest.raises(LayoutArgumentError, match="segment 0 is sealed; only active segments can be merged"):
            layout.plan_merge([0, 1])


class TestRebucketAndRollover:
    def test_rebucket_keeps_the_range(self) -> None:
        change = SegmentLayout.initial(2).plan_rebucket(1, 8)
        assert (change.kind, change.parent_ids, ranges(change)) == (CreatedBy.REBUCKET, (1,), ["8000-ffff"])
        assert change.children[0].buckets == 8

    @pytest.mark.parametrize("buckets", [0, 1025, -3])
    def test_counts_out_of_range_are_refused(self, buckets: int) -> None:
        with pytest.raises(LayoutArgumentError, match=f"cannot have {buckets} entry buckets; 1 to 1024"):
            SegmentLayout.initial(1).plan_rebucket(0, buckets)

    def test_unchanged_sealed_and_unknown_are_refused(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1)
        with pytest.raises(LayoutArgumentError, match="segment 1 already has 2 entry buckets"):
            layout.plan_rebucket(1, 2)
        with pytest.raises(LayoutArgumentError, match="segment 0 is sealed"):
            layout.plan_rebucket(0, 8)
        with pytest.raises(LayoutArgumentError, match="there is no segment 7"):
            layout.plan_rebucket(7, 8)

    def test_rollover_replaces_an_active_segment_by_its_equal_r14(self) -> None:
        layout = SegmentLayout.initial(2, bucket_budget=6)
        change = layout.plan_rollover(0)
        child = layout.apply(change, now_ms=1).segment(2)
        assert (child.hash_range, child.buckets, child.created_by) == (
            HashRange(0, 0x7FFF),
            3,
            CreatedBy.REBUCKET,
        )

    def test_rollover_of_a_sealed_segment_is_refused(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1)
        with pytest.raises(LayoutArgumentError, match="segment 0 is sealed"):
            layout.plan_rollover(0)


class TestMergeDepth:
    def test_is_inherited_by_split_and_rebucket_and_survives_pruning_hazard_b7(self) -> None:
        layout = SegmentLayout.initial(2).merge([0, 1], now_ms=1).split(2, now_ms=2).rebucket(3, 9, now_ms=3)
        assert {one.segment_id: one.merge_depth for one in layout.active} == {4: 1, 5: 1}
        pruned = layout.prune(one.segment_id for one in layout.sealed)
        assert pruned.merge([4, 5], now_ms=4).segment(6).merge_depth == 2

    def test_is_the_deepest_parent_plus_one(self) -> None:
        layout = SegmentLayout.initial(3).merge([0, 1], now_ms=1).merge([3, 2], now_ms=2)
        assert layout.segment(4).merge_depth == 2


class TestOrdinaryTopics:
    """pip-475: a topic that is not migrated has no segments to change."""

    def test_a_synthetic_layout_refuses_changes(self) -> None:
        layout = synthetic_layout(TopicName("t", "n", "old"), 2)
        plans: list[Callable[[], SegmentChange]] = [
            lambda: layout.plan_split(0),
            lambda: layout.plan_merge([0, 1]),
            lambda: layout.plan_rebucket(0, 4),
            lambda: layout.plan_rollover(0),
        ]
        for plan in plans:
            with pytest.raises(LayoutStateError, match=r"persistent://t/n/old-partition-0; migrate it"):
                plan()

    def test_migrated_children_split_like_any_other(self) -> None:
        layout = migrated_layout(TopicName("t", "n", "old"), 2, now_ms=1).split(2, now_ms=2)
        assert ids(layout) == [4, 5, 3]


class TestReserve:
    """R9: opening the journal takes the ids for ever."""

    def test_advances_the_next_id_only(self) -> None:
        layout = SegmentLayout.initial(2)
        reserved = layout.reserve(layout.plan_split(0))
        assert reserved == replace(layout, next_segment_id=4)

    def test_ids_of_a_rolled_back_change_are_never_planned_again(self) -> None:
        layout = SegmentLayout.initial(2)
        reserved = layout.reserve(layout.plan_split(0))
        assert reserved.plan_split(0).child_ids == (4, 5)

    def test_two_changes_cannot_reserve_the_same_ids_hazard_b2(self) -> None:
        layout = SegmentLayout.initial(2)
        first, second = layout.plan_split(0), layout.plan_rebucket(1, 7)
        with pytest.raises(LayoutStateError, match="the next free id is 4; plan it again"):
            layout.reserve(first).reserve(second)


class TestApply:
    def test_keeps_the_journaled_ids_after_another_change_hazard_b2(self) -> None:
        layout = SegmentLayout.initial(2)
        journaled = layout.plan_split(0)
        layout = layout.reserve(journaled).rebucket(1, 7, now_ms=1)
        after = layout.apply(journaled, now_ms=2)
        assert ids(after) == [2, 3, 4]
        assert after.next_segment_id == 5

    def test_records_positions_and_one_clock_reading(self) -> None:
        layout = SegmentLayout.initial(2)
        after = layout.apply(layout.plan_merge([0, 1]), now_ms=77, sealed_positions={0: "3:9", 1: "4:-1"})
        assert [one.sealed_position for one in after.sealed] == ["3:9", "4:-1"]
        assert {one.sealed_at_ms for one in after.sealed} | {after.segment(2).created_at_ms} == {77}
        assert {one.sealed_at_epoch for one in after.sealed} | {after.segment(2).created_at_epoch} == {1}

    def test_positions_of_others_or_malformed_are_refused(self) -> None:
        layout = SegmentLayout.initial(2)
        change = layout.plan_split(0)
        with pytest.raises(LayoutArgumentError, match=r"sealed positions of \[1\], which the Split does not seal"):
            layout.apply(change, now_ms=1, sealed_positions={1: "3:9"})
        with pytest.raises(LayoutArgumentError, match="is not a position like 12:345"):
            layout.apply(change, now_ms=1, sealed_positions={0: "3:"})

    def test_twice_is_refused(self) -> None:
        layout = SegmentLayout.initial(2)
        change = layout.plan_split(0)
        with pytest.raises(LayoutStateError, match=r"\[2, 3\] are taken"):
            layout.apply(change, now_ms=1).apply(change, now_ms=2)

    def test_a_stale_change_is_refused(self) -> None:
        layout = SegmentLayout.initial(2)
        change = layout.plan_merge([0, 1])
        moved_on = layout.reserve(change).split(0, now_ms=1)
        with pytest.raises(LayoutStateError, match="stale: segment 0 is no regular active segment"):
            moved_on.apply(change, now_ms=2)
        with pytest.raises(LayoutStateError, match="stale: segment 0 is gone"):
            moved_on.prune([0]).apply(change, now_ms=2)

    def test_ids_beyond_the_next_free_one_are_refused(self) -> None:
        layout = SegmentLayout.initial(1)
        change = SegmentChange(CreatedBy.REBUCKET, (0,), (PlannedSegment(5, HashRange.full(), 2),))
        with pytest.raises(LayoutStateError, match=r"\[5\] are neither reserved nor the next free ones"):
            layout.apply(change, now_ms=1)

    @pytest.mark.parametrize(
        ("kind", "parents", "children"),
        [
            (CreatedBy.SPLIT, (0,), [(2, "0000-3fff"), (3, "5000-7fff")]),
            (CreatedBy.SPLIT, (0,), [(2, "0000-3fff"), (3, "4000-8fff")]),
            (CreatedBy.SPLIT, (0,), [(2, "0000-3fff"), (3, "4000-7ffe")]),
            (CreatedBy.MERGE, (0, 1), [(2, "0000-fffe")]),
            (CreatedBy.REBUCKET, (0,), [(2, "0000-ffff")]),
        ],
    )
    def test_ranges_that_do_not_fit_are_refused(
        self, kind: CreatedBy, parents: tuple[int, ...], children: list[tuple[int, str]]
    ) -> None:
        planned = tuple(PlannedSegment(one, HashRange.parse_descriptor(text), 1) for one, text in children)
        with pytest.raises(LayoutStateError, match="does not tile"):
            SegmentLayout.initial(2).apply(SegmentChange(kind, parents, planned), now_ms=1)

    @pytest.mark.parametrize(
        ("kind", "parents", "made"),
        [(CreatedBy.SPLIT, (0,), 1), (CreatedBy.MERGE, (0,), 1), (CreatedBy.REBUCKET, (0, 1), 1)],
    )
    def test_a_kind_that_contradicts_the_counts_is_refused(
        self, kind: CreatedBy, parents: tuple[int, ...], made: int
    ) -> None:
        planned = tuple(PlannedSegment(2 + index, HashRange.full(), 1) for index in range(made))
        with pytest.raises(LayoutStateError, match=f"a {kind} does not make {made} segments of {len(parents)}"):
            SegmentLayout.initial(2).apply(SegmentChange(kind, parents, planned), now_ms=1)


class TestSegmentChange:
    def test_only_split_merge_and_rebucket_change_a_layout(self) -> None:
        planned = (PlannedSegment(1, HashRange.full(), 1),)
        for kind in (CreatedBy.CREATE, CreatedBy.MIGRATE):
            with pytest.raises(LayoutArgumentError, match=f"{kind} is not a change"):
                SegmentChange(kind, (0,), planned)
        with pytest.raises(LayoutArgumentError, match="needs parents and children"):
            SegmentChange(CreatedBy.SPLIT, (), planned)

    def test_planned_buckets_are_checked(self) -> None:
        with pytest.raises(LayoutArgumentError, match="planned segment 1 cannot have 0 entry buckets"):
            PlannedSegment(1, HashRange.full(), 0)


class TestPrune:
    def test_a_set_is_one_epoch_step_and_cuts_every_edge(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1).split(1, now_ms=2)
        pruned = layout.prune([0, 1])
        assert pruned.epoch == layout.epoch + 1
        assert set(pruned.segments) == {2, 3, 4}
        assert all(one.parent_ids == () for one in pruned.active)

    def test_a_middle_segment_leaves_its_ancestor_and_descendants(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1).split(1, now_ms=2).prune([1])
        assert layout.segment(0).child_ids == (2,)
        assert layout.segment(3).parent_ids == ()

    def test_nothing_active_and_unknown_are_refused(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1)
        with pytest.raises(LayoutArgumentError, match="segment 2 is active; only sealed segments can be pruned"):
            layout.prune([0, 2])
        with pytest.raises(LayoutArgumentError, match="there is no segment 8"):
            layout.prune([8])
        with pytest.raises(LayoutArgumentError, match="no segment to prune"):
            layout.prune([])


class TestSealedPosition:
    def test_only_sealed_segments_end_somewhere_r14(self) -> None:
        layout = SegmentLayout.initial(1).split(0, now_ms=1)
        with pytest.raises(LayoutArgumentError, match="segment 1 is active"):
            layout.with_sealed_position(1, "1:2")
        with pytest.raises(LayoutArgumentError, match="is not a position"):
            layout.with_sealed_position(0, "1-2")
        assert layout.with_sealed_position(0, "1:2").segment(0).sealed_position == "1:2"
