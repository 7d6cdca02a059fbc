"""R22: what a checkpoint says of entry buckets, of which each has a position of its own (pip-486)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import WHOLE, Part, SegmentLayout
from scalable_topics_operator.operations.bucket_positions import (
    floors_of,
    from_positions_json,
    least_position,
    order,
    to_positions_json,
)
from scalable_topics_operator.operations.protocols import MessagePosition

LAYOUT = SegmentLayout.initial(1, bucket_budget=4)
SEGMENT = LAYOUT.segment(0)
PLACES = st.builds(MessagePosition, st.integers(0, 3), st.integers(-1, 9), st.integers(-1, 3))


def test_r22_the_cursor_goes_behind_the_least_position_and_the_others_are_floors() -> None:
    positions = {Part(0, bucket): MessagePosition(5, 10 - bucket) for bucket in range(4)}
    assert least_position(SEGMENT, positions) == (MessagePosition(5, 7), True)
    assert floors_of(LAYOUT, positions) == {Part(0, bucket): MessagePosition(5, 10 - bucket) for bucket in range(3)}


def test_r22_a_bucket_without_a_position_is_where_the_group_has_committed_it() -> None:
    positions = {Part(0, 1): MessagePosition(5, 9)}
    assert least_position(SEGMENT, positions) == (MessagePosition(5, 9), False)
    assert floors_of(LAYOUT, positions) == positions, "the cursor may stand before it"


def test_r22_a_segment_that_was_read_whole_has_one_position_and_no_floors() -> None:
    positions = {Part(0): MessagePosition(5, 9, 2)}
    assert least_position(SEGMENT, positions) == (MessagePosition(5, 9, 2), True)
    assert floors_of(LAYOUT, positions) == {}


def test_r22_a_segment_that_was_read_whole_and_then_shared_is_where_either_says_later() -> None:
    positions = {Part(0): MessagePosition(5, 9), Part(0, 2): MessagePosition(5, 12), Part(0, 3): MessagePosition(5, 3)}
    assert least_position(SEGMENT, positions) == (MessagePosition(5, 9), True)
    assert floors_of(LAYOUT, positions) == {Part(0, 2): MessagePosition(5, 12)}


def test_all_of_an_entry_is_later_than_its_messages() -> None:
    assert max(MessagePosition(5, 9), MessagePosition(5, 9, 7), key=order) == MessagePosition(5, 9)


@given(st.dictionaries(st.builds(Part, st.just(0), st.integers(WHOLE, 3)), PLACES, min_size=1))
def test_r22_nothing_that_was_received_of_a_bucket_is_before_its_floor_and_the_cursor(
    positions: dict[Part, MessagePosition],
) -> None:
    """What a reader skips is what the checkpoint has: no more of any bucket, and no less."""
    least, is_complete = least_position(SEGMENT, positions)
    floors = floors_of(LAYOUT, positions)
    for bucket in range(4):
        said = [positions[part] for part in (Part(0), Part(0, bucket)) if part in positions]
        received = max(said, key=order, default=None)
        floor = floors.get(Part(0, bucket))
        assert floor in (None, received)
        if received is not None:
            assert order(received) >= order(least)
            assert floor == received or (received == least and is_complete)


@given(st.dictionaries(st.builds(Part, st.integers(0, 9), st.integers(WHOLE, 3)), PLACES))
def test_what_is_written_is_read(positions: dict[Part, MessagePosition]) -> None:
    assert from_positions_json(to_positions_json(positions)) == positions
