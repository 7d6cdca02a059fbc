"""What is published, and in which order clients take it (R12, R13, R20)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import (
    PlannedSegment,
    Segment,
    SegmentChange,
    SegmentLayout,
    TopicName,
    classic_segment_name,
    incarnation_of,
    parse_incarnation,
)
from scalable_topics_operator.operations.journal import Operation, OperationKind, Step
from scalable_topics_operator.operations.layout_message import (
    MessageOrder,
    announcement_number,
    layout_message,
    message_order,
    message_step,
)
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.operations.builders import MADE_AT_MS, REQUEST, TOPIC, split_layout

_HOLD_MS = 10_000


def _segment_topic(topic: TopicName, segment: Segment) -> str:
    return classic_segment_name(topic, segment.hash_range, segment.segment_id)


def _message(state: TopicState, term: int = 1) -> str:
    return layout_message(TOPIC, state, term=term, hold_ms=_HOLD_MS, segment_topic=_segment_topic)


def _operation(change: SegmentChange, next_segment_id: int, step: Step, announcements: int = 0) -> Operation:
    return Operation(
        id=f"op-{next_segment_id}",
        kind=OperationKind.SPLIT,
        step=step,
        term=1,
        parents=change.parent_ids,
        children=change.children,
        subscriptions=(),
        started_at="2026-11-28T00:00:00Z",
        request=REQUEST,
        next_segment_id=next_segment_id,
        announcements=announcements,
    )


def _splitting(step: Step, announcements: int) -> TopicState:
    layout = SegmentLayout.initial(1, created_at_ms=MADE_AT_MS)
    change = layout.plan_split(0)
    reserved = layout.reserve(change)
    return TopicState(
        layout=reserved,
        operation=_operation(change, reserved.next_segment_id, step, announcements),
        incarnation="uid.0",
    )


def test_r20_a_layout_is_told_with_all_its_segments() -> None:
    told = json.loads(_message(TopicState(layout=split_layout(), incarnation="uid.7"), term=3))
    assert (told["version"], told["topic"], told["incarnation"], told["term"], told["epoch"]) == (
        1,
        "topic://tenant/space/orders",
        "uid.7",
        3,
        1,
    )
    assert told["segments"][:2] == [
        {
            "id": 0,
            "range": "0000-ffff",
            "state": "Sealed",
            "buckets": 4,
            "parents": [],
            "topic": "persistent://tenant/space/orders-segment-0000-ffff-0",
        },
        {
            "id": 1,
            "range": "0000-7fff",
            "state": "Active",
            "buckets": 2,
            "parents": [0],
            "topic": "persistent://tenant/space/orders-segment-0000-7fff-1",
        },
    ]
    assert told.keys().isdisjoint({"announcement", "settled"})


def test_r20_a_topic_without_a_layout_has_nothing_to_tell() -> None:
    with pytest.raises(ValueError, match="has no layout"):
        _message(TopicState())


@pytest.mark.parametrize("step", [Step.ANNOUNCING, Step.SEALING])
def test_r13_an_announced_seal_names_the_children(step: Step) -> None:
    announcement = json.loads(_message(_splitting(step, 1)))["announcement"]
    assert announcement == {
        "operation": "op-3",
        "parents": [0],
        "children": [
            {
                "id": 1,
                "range": "0000-7fff",
                "buckets": 2,
                "topic": "persistent://tenant/space/orders-segment-0000-7fff-1",
            },
            {
                "id": 2,
                "range": "8000-ffff",
                "buckets": 2,
                "topic": "persistent://tenant/space/orders-segment-8000-ffff-2",
            },
        ],
        "holdMs": _HOLD_MS,
    }


@pytest.mark.parametrize("announcements", [1, 2, 700])
def test_r13_a_message_tells_which_announcement_of_an_operation_it_is(announcements: int) -> None:
    message = _message(_splitting(Step.SEALING, announcements))
    assert announcement_number(message, "op-3") == announcements
    assert announcement_number(message, "op-4") == 0


@pytest.mark.parametrize("message", ["", "[]", "{}", '{"announcement": 1, "step": 2}'])
def test_r13_other_messages_are_no_announcements(message: str) -> None:
    assert announcement_number(message, "op-3") == 0
    assert announcement_number(_message(_splitting(Step.CREATING, 1)), "op-3") == 0


@pytest.mark.parametrize("step", [Step.CREATING, Step.ROLLING_BACK])
def test_r13_what_is_not_announced_yet_or_any_more_is_not_told(step: Step) -> None:
    assert "announcement" not in json.loads(_message(_splitting(step, 1)))


def test_r13_passing_the_point_of_no_return_is_no_news() -> None:
    """What is told while it is announced stays the latest message when the journal goes on."""
    assert _message(_splitting(Step.ANNOUNCING, 2)) == _message(_splitting(Step.SEALING, 2))


def _step(state: TopicState) -> int:
    assert state.layout is not None
    return message_step(state.layout, state.operation)


def test_r8_calling_off_is_told_once() -> None:
    rolling_back = _splitting(Step.ROLLING_BACK, 5)
    assert _message(rolling_back) == _message(replace(rolling_back, operation=None))
    assert _step(rolling_back) > _step(_splitting(Step.ANNOUNCING, 5))


def test_r15_what_is_settled_is_told_as_long_as_its_segment_is_in_the_layout() -> None:
    state = TopicState(layout=split_layout(), incarnation="uid.0", settled={9: {"gone": 1}, 0: {"b": -1, "a": 4}})
    assert json.loads(_message(state))["settled"] == {"0": {"a": 4, "b": -1}}


def test_r20_the_same_state_is_told_in_the_same_letters_whoever_read_it() -> None:
    """Another process has read the record, which keeps no order of its own."""
    first = TopicState(layout=split_layout(), incarnation="uid.0", settled={1: {"b": 1, "a": 2}, 0: {"c": 3}})
    layout = replace(split_layout(), segments=dict(reversed(list(split_layout().segments.items()))))
    again = replace(first, layout=layout, settled={0: {"c": 3}, 1: {"a": 2, "b": 1}})
    assert _message(first) == _message(again)


@pytest.mark.parametrize(
    "message",
    ["", "[]", "null", '"text"', "{}", '{"incarnation":"uid"}', '{"incarnation":"uid.x","epoch":1,"step":1,"term":1}'],
)
def test_r20_what_somebody_else_wrote_to_the_topic_has_no_order(message: str) -> None:
    assert message_order(message, "uid") is None


def test_r12_messages_of_another_object_do_not_compare() -> None:
    message = _message(TopicState(layout=split_layout(), incarnation=incarnation_of("uid", 3)))
    assert message_order(message, "another") is None
    assert message_order(message, "uid") == MessageOrder(3, 1, message_step(split_layout(), None), 1)
    assert parse_incarnation(incarnation_of("a.b-c", 12)) == ("a.b-c", 12)


@given(st.lists(st.sampled_from(["announce", "roll back", "commit", "forget ids"]), max_size=30))
def test_r20_every_change_of_what_is_told_comes_after_what_was_told_before(turns: list[str]) -> None:
    """Whatever happens to a topic: each new message is greater, and each equal one is the same to the letter."""
    layout = SegmentLayout.initial(1, created_at_ms=MADE_AT_MS)
    state = TopicState(layout=layout, incarnation="uid.0")
    told = [_message(state)]
    for turn in turns:
        state = _after(state, turn)
        told.append(_message(state))
    orders = [message_order(message, "uid") for message in told]
    for (before, was), (after, now) in pairwise(zip(orders, told, strict=True)):
        assert before is not None
        assert after is not None
        assert before < after or (before == after and was == now)


def _after(state: TopicState, turn: str) -> TopicState:
    layout, operation = state.layout, state.operation
    assert layout is not None
    if turn == "forget ids":
        # What an operation that the record has forgotten left behind uses ids up.
        return (
            state if operation else replace(state, layout=replace(layout, next_segment_id=layout.next_segment_id + 5))
        )
    if operation is None:
        change = layout.plan_split(layout.active[0].segment_id)
        if len(change.children) < 2 or len(layout.segments) > 20:
            return state
        reserved = layout.reserve(change)
        return replace(state, layout=reserved, operation=_operation(change, reserved.next_segment_id, Step.CREATING))
    if turn == "announce":
        step = Step.SEALING if operation.step is Step.SEALING else Step.ANNOUNCING
        return replace(state, operation=replace(operation, step=step, announcements=operation.announcements + 1))
    if turn == "roll back" and operation.step is not Step.SEALING:
        return replace(state, operation=None)
    if operation.step is Step.ANNOUNCING:
        return replace(state, operation=replace(operation, step=Step.SEALING))
    if operation.step is Step.SEALING:
        return replace(state, layout=_committed(layout, operation.parents, operation.children), operation=None)
    return state


def _committed(layout: SegmentLayout, parents: tuple[int, ...], children: tuple[PlannedSegment, ...]) -> SegmentLayout:
    change = replace(layout.plan_split(parents[0]), parent_ids=parents, children=children)
    return layout.apply(change, now_ms=MADE_AT_MS, sealed_positions={})
