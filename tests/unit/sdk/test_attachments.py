"""Which segments a queue consumer reads, and with how much prefetch."""

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import SegmentLayout, TopicName, classic_segment_name
from scalable_topics.sdk.attachments import Attach, Attachments, Detach
from scalable_topics.sdk.layout_message import FollowedSegment, LayoutMessage

TOPIC = TopicName.parse("t/n/x")


def message(layout: SegmentLayout, incarnation: str = "uid.0") -> LayoutMessage:
    """The message of a layout."""
    segments = {
        segment_id: FollowedSegment(
            segment_id,
            segment.hash_range,
            classic_segment_name(TOPIC, segment.hash_range, segment_id),
            state=segment.state,
        )
        for segment_id, segment in layout.segments.items()
    }
    return LayoutMessage(str(TOPIC), incarnation, layout.epoch, 0, 1, segments)


def test_active_and_sealed_segments_are_attached_to_once() -> None:
    attachments = Attachments(1000, from_earliest=False)
    layout = SegmentLayout.initial(2).split(0, now_ms=0)
    changes = attachments.follow(message(layout))
    assert {change.segment.segment_id for change in changes if isinstance(change, Attach)} == {0, 1, 2, 3}
    assert attachments.follow(message(layout)) == []


def test_segments_that_leave_are_detached_from_first() -> None:
    attachments = Attachments(1000, from_earliest=False)
    layout = SegmentLayout.initial(1)
    attachments.follow(message(layout))
    after = layout.split(0, now_ms=0).prune([0])
    first, *rest = attachments.follow(message(after))
    assert first == Detach(0)
    assert [change.segment.segment_id for change in rest if isinstance(change, Attach)] == [1, 2]


def test_B4_segments_that_come_later_are_read_from_their_first_message() -> None:
    attachments = Attachments(1000, from_earliest=False)
    layout = SegmentLayout.initial(1)
    assert [change.from_earliest for change in attachments.follow(message(layout)) if isinstance(change, Attach)] == [
        False
    ]
    later = attachments.follow(message(layout.split(0, now_ms=0)))
    assert [change.from_earliest for change in later if isinstance(change, Attach)] == [True, True]


def test_a_segment_of_the_same_id_under_another_name_is_another_one() -> None:
    """A topic that was deleted and made anew may have other ranges under the same ids."""
    attachments = Attachments(1000, from_earliest=True)
    attachments.follow(message(SegmentLayout.initial(1)))
    changes = attachments.follow(message(SegmentLayout.initial(2), "other.0"))
    assert changes[0] == Detach(0)
    assert {change.segment.segment_id for change in changes if isinstance(change, Attach)} == {0, 1}


@given(st.integers(1, 5000), st.integers(1, 8), st.lists(st.integers(0, 100), max_size=12), st.booleans())
def test_A5_26151_prefetch_stays_within_the_budget(budget: int, segments: int, picks: list[int], prune: bool) -> None:
    attachments = Attachments(budget, from_earliest=True)
    layout = SegmentLayout.initial(segments)
    held: dict[int, int] = {}
    for pick in [None, *picks]:
        if pick is not None:
            chosen = layout.active[pick % len(layout.active)].segment_id
            layout = layout.split(chosen, now_ms=0)
            if prune:
                layout = layout.prune([chosen])
        for change in attachments.follow(message(layout)):
            if isinstance(change, Detach):
                del held[change.segment_id]
            else:
                held[change.segment.segment_id] = change.prefetch
        assert all(share >= 1 for share in held.values())
        assert sum(held.values()) <= max(budget, len(held)) + sum(share == 1 for share in held.values())
