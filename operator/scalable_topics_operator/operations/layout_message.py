"""What clients follow: the messages of the layout topic (R12, R13, R20; the contract is docs/contract.md). Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import Segment, SegmentLayout, TopicName, parse_incarnation
from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.operations.journal import Operation, Step
from scalable_topics_operator.operations.topic_state import TopicState

MESSAGE_VERSION = 1
# How clients find the segment of a key where the active ones do not tile the ring.
_MODULO = "Modulo"
# An operation that cannot seal announces again at every try, for days if need be.
_STEPS_PER_RESERVATION = 1_000_000
_IDLE_PHASE = _STEPS_PER_RESERVATION - 1

SegmentTopic = Callable[[TopicName, Segment], str]


def message_step(layout: SegmentLayout, operation: Operation | None) -> int:
    """Orders what is published within one epoch.

    Each journal reserves ids (R9), so `nextSegmentId` grows with every operation of an epoch; within one operation the
    announcements come in order, and calling it off comes last.
    """
    phase = _IDLE_PHASE
    if operation is not None and operation.step in (Step.CREATING, Step.ANNOUNCING, Step.SEALING):
        phase = min(operation.announcements, _IDLE_PHASE - 1)
    return layout.next_segment_id * _STEPS_PER_RESERVATION + phase


@dataclass(frozen=True, slots=True, order=True)
class MessageOrder:
    """Which of two messages of one incarnation uid clients keep: the greater one."""

    counter: int
    epoch: int
    step: int
    term: int


def message_order(message: str, uid: str) -> MessageOrder | None:
    """The order of a message of `uid`; None for one of another uid, or for what is no layout message at all."""
    try:
        found = parse_json(message)
        owner, counter = parse_incarnation(found["incarnation"])
        order = MessageOrder(counter, int(found["epoch"]), int(found["step"]), int(found["term"]))
    except MALFORMED:
        return None
    return order if owner == uid else None


def announcement_number(message: str, operation_id: str) -> int:
    """Which announcement of an operation's seal a message is (R13); 0 for none."""
    try:
        found = parse_json(message)
        is_of_it = found["announcement"]["operation"] == operation_id
        return int(found["step"]) % _STEPS_PER_RESERVATION if is_of_it else 0
    except MALFORMED:
        return 0


def says_the_same(one: str, other: str) -> bool:
    """Whether two messages tell clients the same, whoever has published them."""
    # Most are equal to the letter, and one may describe hundreds of segments.
    return one == other or content_of(one) == content_of(other)


def content_of(message: str) -> Any:
    """What a message tells clients, whoever has published it: all but the term. The text itself if it is none."""
    try:
        found = parse_json(message)
        del found["term"]
    except MALFORMED:
        return message
    return found


def layout_message(topic: TopicName, state: TopicState, *, term: int, hold_ms: int, segment_topic: SegmentTopic) -> str:
    """The message that tells clients of a state: its layout, and the seal it announces, if any.

    Args:
        topic: the scalable topic, or the one that is being migrated.
        state: as committed; what is published follows from it alone and to the letter, so it may be published again
            at any time and by anybody.
        term: leadership term of the publisher (R5).
        hold_ms: how long producers hold after an announcement, in milliseconds.
        segment_topic: names a segment's topic.

    Raises ValueError when there is no layout yet.
    """
    layout, operation = state.shown_layout(topic), state.operation
    if layout is None:
        raise ValueError(f"{topic} has no layout to publish")
    message: dict[str, Any] = {
        "version": MESSAGE_VERSION,
        "topic": str(topic),
        "incarnation": state.incarnation,
        "term": term,
        "epoch": layout.epoch,
        "step": message_step(layout, operation),
        "segments": [_segment(topic, layout.segments[key], segment_topic) for key in sorted(layout.segments)],
    }
    if layout.is_synthetic:
        message["routing"] = _MODULO
    if operation is not None and operation.step in (Step.ANNOUNCING, Step.SEALING) and operation.parents:
        message["announcement"] = _announcement(topic, operation, hold_ms, segment_topic)
    if settled := state.settled_in_layout:
        message["settled"] = {str(segment_id): producers for segment_id, producers in settled.items()}
    return json.dumps(message, separators=(",", ":"))


def _segment(topic: TopicName, segment: Segment, segment_topic: SegmentTopic) -> dict[str, Any]:
    return {
        "id": segment.segment_id,
        "range": segment.hash_range.descriptor,
        "state": segment.state.value,
        "buckets": segment.buckets,
        "parents": list(segment.parent_ids),
        "topic": segment_topic(topic, segment),
    }


def _announcement(topic: TopicName, operation: Operation, hold_ms: int, segment_topic: SegmentTopic) -> dict[str, Any]:
    return {
        "operation": operation.id,
        "parents": list(operation.parents),
        "children": [
            {
                "id": child.segment_id,
                "range": child.hash_range.descriptor,
                "buckets": child.buckets,
                "topic": segment_topic(topic, Segment(child.segment_id, child.hash_range)),
            }
            for child in operation.children
        ],
        "holdMs": hold_ms,
    }
