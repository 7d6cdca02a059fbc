"""When a topic was changed last is told apart by what was done, and outlives what it was done to (pip-483)."""

from __future__ import annotations

import pytest

from scalable_topics.layout import CreatedBy, SegmentLayout, TopicName, migrated_layout
from scalable_topics_operator.autoscale.clocks import Clocks


def test_each_kind_of_change_has_a_clock_of_its_own() -> None:
    """Hazard A2-26434a: a bucket change has one parent and one child, and is neither a split nor a merge."""
    clocks = Clocks().moved(CreatedBy.SPLIT, 1).moved(CreatedBy.MERGE, 2).moved(CreatedBy.REBUCKET, 3)
    assert clocks == Clocks(split_at_ms=1, merge_at_ms=2, rebucket_at_ms=3)
    assert clocks.moved(CreatedBy.CREATE, 9) == clocks


@pytest.mark.parametrize("is_pruned", [False, True])
def test_a_rebuilt_layout_tells_its_clocks_whether_parents_are_left_or_not(is_pruned: bool) -> None:
    """Hazards A2-25980c, A2-26434a and B8."""
    layout = SegmentLayout.initial(2)
    layout = layout.split(0, now_ms=1_000)
    layout = layout.merge([2, 3], now_ms=2_000)
    layout = layout.split(1, now_ms=3_000)
    layout = layout.rebucket(4, 8, now_ms=4_000)
    if is_pruned:
        layout = layout.prune([segment.segment_id for segment in layout.sealed])
    clocks = Clocks.of(layout.segments.values())
    assert (clocks.split_at_ms, clocks.rebucket_at_ms) == (3_000, 4_000)
    # Pruning took the only segment that tells of the merge: the record does, which outlives all segments.
    assert clocks.merge_at_ms == (None if is_pruned else 2_000)
    assert Clocks.from_json(clocks.to_json()) == clocks


def test_a_migrated_layout_starts_no_cooldown() -> None:
    """Hazard B8: its children have as many parents as there were partitions, which is no merge."""
    layout = migrated_layout(TopicName("t", "n", "old"), 4, now_ms=5_000)
    assert Clocks.of(layout.segments.values()) == Clocks()
