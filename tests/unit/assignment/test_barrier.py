"""Nothing is read before what comes before it (R17, hazard A3-26274)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.assignment.barrier import readable_segments


def _ids(layout: SegmentLayout, *drained: int) -> list[int]:
    return [segment.segment_id for segment in readable_segments(layout, frozenset(drained))]


def test_segments_of_a_new_topic_are_all_readable_in_the_order_of_the_ring() -> None:
    assert _ids(SegmentLayout.initial(4)) == [0, 1, 2, 3]


def test_children_wait_until_their_parent_is_drained() -> None:
    """Hazard A3-25642b."""
    layout = SegmentLayout.initial(2).split(0, now_ms=1)
    assert _ids(layout) == [0, 1]
    assert _ids(layout, 0) == [2, 3, 1]


def test_a_merged_segment_waits_for_all_its_parents() -> None:
    layout = SegmentLayout.initial(2).merge([0, 1], now_ms=1)
    assert _ids(layout, 0) == [1]
    assert _ids(layout, 0, 1) == [2]


def test_a_sealed_segment_waits_too() -> None:
    """Hazard A3-26274."""
    layout = SegmentLayout.initial(1).split(0, now_ms=1).split(1, now_ms=2)
    assert _ids(layout) == [0]
    assert _ids(layout, 0) == [1, 2]


def test_a_pruned_parent_was_drained() -> None:
    """Hazard A3-25719."""
    layout = SegmentLayout.initial(2).merge([0, 1], now_ms=1).prune([0, 1])
    assert _ids(layout) == [2]


@given(st.data())
def test_reading_what_is_readable_comes_to_every_segment_after_its_ancestors(data: st.DataObject) -> None:
    """Hazards A3-25642a, A3-25642b and A3-26274."""
    layout = SegmentLayout.initial(data.draw(st.integers(1, 4)))
    for step in range(data.draw(st.integers(0, 6))):
        active = [segment.segment_id for segment in layout.active]
        if len(active) > 1 and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(active) - 2))
            layout = layout.merge(active[at : at + 2], now_ms=step)
        else:
            layout = layout.split(data.draw(st.sampled_from(active)), now_ms=step)
    read: list[int] = []
    while ready := _ids(layout, *read):
        for segment_id in ready:
            before = {one.segment_id for one in layout.lineage(segment_id) if one.segment_id < segment_id}
            assert before <= set(read)
        read.append(data.draw(st.sampled_from(ready)))
    assert sorted(read) == sorted(layout.segments)
