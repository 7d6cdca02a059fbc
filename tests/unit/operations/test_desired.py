"""From `segments.desired` to single changes (R30)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, Segment, SegmentLayout
from scalable_topics_operator.operations.desired import next_change
from tests.unit.layout.strategies import assert_sound, changes, unhurried


@st.composite
def regular_layouts(draw: st.DrawFn) -> SegmentLayout:
    """A topic that was created and changed by hand in any way."""
    layout = SegmentLayout.initial(draw(st.integers(1, 12)))
    for step in range(draw(st.integers(0, 5))):
        change = draw(changes(layout))
        layout = layout.reserve(change).apply(change, now_ms=step)
    return layout


@unhurried
@given(regular_layouts(), st.integers(1, 24))
def test_r30_desired_is_reached_in_a_straight_line_and_kept(layout: SegmentLayout, desired: int) -> None:
    """Hazard C52."""
    steps = abs(len(layout.active) - desired)
    for _ in range(steps):
        before = len(layout.active)
        change = next_change(layout, desired)
        assert change is not None
        layout = layout.reserve(change).apply(change, now_ms=1)
        assert_sound(layout)
        assert abs(len(layout.active) - desired) == abs(before - desired) - 1, "hazard C52: never the wrong way"
    assert len(layout.active) == desired
    assert next_change(layout, desired) is None


@unhurried
@given(st.integers(0, 5), st.integers(0, 5))
def test_r30_powers_of_two_make_an_even_ring(start: int, end: int) -> None:
    layout = SegmentLayout.initial(2**start)
    while change := next_change(layout, 2**end):
        layout = layout.reserve(change).apply(change, now_ms=1)
    assert {segment.hash_range.size for segment in layout.active} == {0x10000 // 2**end}


def test_r30_the_widest_is_split_and_the_narrowest_pair_merged() -> None:
    """Hazard B13."""
    layout = SegmentLayout.initial(2)
    first = next_change(layout, 3)
    assert first is not None
    assert first.parent_ids == (0,), "hazard B13: of equal ones the lowest id"
    layout = layout.reserve(first).apply(first, now_ms=1)
    second = next_change(layout, 4)
    assert second is not None
    assert second.parent_ids == (1,), "the widest"
    back = next_change(layout, 2)
    assert back is not None
    assert back.parent_ids == (2, 3), "the narrowest pair"


def test_hazard_b14_a_ring_of_single_hashes_is_at_its_end() -> None:
    segments = {number: Segment(number, HashRange(number, number)) for number in range(0x10000)}
    layout = SegmentLayout(epoch=0, next_segment_id=0x10000, segments=segments)
    assert next_change(layout, 0x10001) is None


def test_hazard_c51_one_segment_is_the_least() -> None:
    layout = SegmentLayout.initial(1)
    assert next_change(layout, 1) is None
    assert next_change(layout, 2) is not None
