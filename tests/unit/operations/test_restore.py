"""R22: where the cursors of a checkpoint group go when a checkpoint is restored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import SegmentChange, SegmentLayout
from scalable_topics_operator.operations.cursor_moves import Move, moves_of_restore
from tests.unit.layout.strategies import layouts


def _chain() -> SegmentLayout:
    """0 splits into 1 and 2, these merge into 3, which splits into 4 and 5."""

    def changed(layout: SegmentLayout, change: SegmentChange) -> SegmentLayout:
        return layout.reserve(change).apply(change, now_ms=0, sealed_positions={})

    layout = SegmentLayout.initial(1, created_at_ms=0)
    layout = changed(layout, layout.plan_split(0))
    layout = changed(layout, layout.plan_merge((1, 2)))
    return changed(layout, layout.plan_split(3))


def test_r22_what_comes_before_was_read_and_what_follows_was_not() -> None:
    assert moves_of_restore(_chain(), {1, 2}) == {
        0: Move.TO_THE_END,
        1: Move.BEHIND_THE_POSITION,
        2: Move.BEHIND_THE_POSITION,
        3: Move.TO_THE_BEGINNING,
        4: Move.TO_THE_BEGINNING,
        5: Move.TO_THE_BEGINNING,
    }


def test_r22_nothing_is_done_to_what_others_of_the_group_had_read() -> None:
    assert moves_of_restore(_chain(), {4})[5] is Move.STAYS
    assert moves_of_restore(_chain(), {1})[2] is Move.STAYS


@given(layouts(), st.data())
def test_r22_a_cursor_is_behind_its_position_only_if_all_before_it_are_at_their_ends(
    layout: SegmentLayout, data: st.DataObject
) -> None:
    """For checkpoints as consumers take them: no segment of one follows another (R17)."""
    named: set[int] = set()
    for segment_id in data.draw(st.permutations(sorted(layout.segments))):
        lineage = {one.segment_id for one in layout.lineage(segment_id)}
        if not lineage & named and data.draw(st.booleans()):
            named.add(segment_id)
    moves = moves_of_restore(layout, named)
    assert moves.keys() == layout.segments.keys()
    for segment_id, move in moves.items():
        parents = {moves[parent.segment_id] for parent in layout.parents_of(segment_id)}
        if move in (Move.BEHIND_THE_POSITION, Move.TO_THE_END):
            assert parents <= {Move.TO_THE_END}
        if move is Move.STAYS:
            relatives = {moves[one.segment_id] for one in layout.lineage(segment_id)}
            assert Move.BEHIND_THE_POSITION not in relatives
