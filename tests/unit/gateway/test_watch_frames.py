"""What watchers are sent: what leaders publish, to the letter, with a position that tells states apart (R20)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from scalable_topics.layout import incarnation_of
from scalable_topics.sdk.errors import NativeTopicError
from scalable_topics.sdk.layout_message import parse_layout_message
from scalable_topics_operator.backends.classic.names import segment_topic
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.gateway.watch_frames import (
    DELETED,
    LayoutFrame,
    layout_frame,
    owners_frame,
    unchanged_frame,
)
from scalable_topics_operator.operations.journal import Step
from scalable_topics_operator.operations.layout_message import layout_message
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.gateway.topics import ORDERS, created, split, splitting

LEADER = Peer("replica-a", "10.0.0.1:8081", is_me=False, term=7)
_HOLD_MS = 10_000


def frame(state: TopicState, leader: Peer | None = LEADER, least_term: int = 0) -> LayoutFrame:
    made = layout_frame(ORDERS, state, leader, hold_ms=_HOLD_MS, least_term=least_term)
    assert made is not None
    return made


def told(made: LayoutFrame) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.frame)
    return found


@pytest.mark.parametrize("step", [None, Step.ANNOUNCING, Step.SEALING, Step.ROLLING_BACK])
def test_R20_the_layout_is_the_leaders_message_to_the_letter(step: Step | None) -> None:
    state = created(2) if step is None else splitting(created(2), 0, step, term=7)
    message = layout_message(ORDERS, state, term=7, hold_ms=_HOLD_MS, segment_topic=segment_topic)
    made = frame(state)
    assert f'"layout":{message},' in made.frame.decode()
    assert told(made)["leader"] == {"identity": "replica-a", "address": "10.0.0.1:8081"}
    assert told(made)["type"] == "layout"
    assert told(made)["position"] == made.position
    # What clients of the layout topic read, they can read here.
    assert parse_layout_message(json.dumps(told(made)["layout"])).topic == str(ORDERS)
    assert ("announcement" in told(made)["layout"]) == (step in (Step.ANNOUNCING, Step.SEALING))


def test_every_change_that_clients_may_know_of_has_a_position_of_its_own() -> None:
    start = created(2)
    states = [
        start,
        splitting(start, 0, Step.ANNOUNCING),
        splitting(start, 0, Step.ANNOUNCING, announcements=2),
        split(start, 0),
        replace(split(start, 0), settled={0: {"producer": 5}}),
        splitting(split(start, 0), 1, Step.ANNOUNCING),
        replace(start, incarnation=incarnation_of("uid-1", 5)),
    ]
    positions = [frame(state).position for state in states]
    assert len(set(positions)) == len(states)
    assert [frame(state).position for state in states] == positions


def test_what_is_journaled_only_is_no_change() -> None:
    """Else an operation that prepares itself would look to clients like one that was called off."""
    start = created(2)
    prepared = splitting(start, 0, Step.CREATING)
    assert frame(prepared).position == frame(start).position
    assert told(frame(prepared))["layout"]["step"] > told(frame(start))["layout"]["step"]
    # The seal may be begun, and finds the announcement unchanged.
    announced, sealing = (splitting(start, 0, step) for step in (Step.ANNOUNCING, Step.SEALING))
    assert frame(announced).position == frame(sealing).position


def test_a_call_off_is_a_change_and_wins_over_the_announcement() -> None:
    start = created(2)
    announced, off = frame(splitting(start, 0, Step.ANNOUNCING)), frame(splitting(start, 0, Step.ROLLING_BACK))
    assert announced.position != off.position
    assert told(off)["layout"]["step"] > told(announced)["layout"]["step"]


def test_the_leader_belongs_to_the_position_and_its_term_does_not() -> None:
    state = created()
    other = Peer("replica-b", "10.0.0.2:8081", is_me=False, term=8)
    moved = Peer("replica-a", "10.0.0.3:8081", is_me=False, term=7)
    positions = {frame(state, leader).position for leader in (LEADER, other, moved, None)}
    assert len(positions) == 4
    # Every replica makes the same, the leader too.
    assert frame(state, replace(LEADER, is_me=True)).frame == frame(state).frame
    assert frame(state, replace(LEADER, term=9)).position == frame(state).position
    assert told(frame(state, None))["leader"] is None


def test_the_term_is_the_leaders_and_does_not_fall_without_one() -> None:
    state = created()
    assert told(frame(state))["layout"]["term"] == 7
    assert told(frame(state, None, least_term=7))["layout"]["term"] == 7
    assert told(frame(splitting(state, 0, Step.ANNOUNCING, term=4), None))["layout"]["term"] == 4
    assert told(frame(state, None))["layout"]["term"] == 0


def test_without_a_layout_there_is_nothing_to_tell() -> None:
    assert layout_frame(ORDERS, TopicState(), LEADER, hold_ms=_HOLD_MS) is None


def test_the_other_frames() -> None:
    assert json.loads(unchanged_frame("abc")) == {"type": "unchanged", "position": "abc"}
    assert json.loads(DELETED) == {"type": "deleted"}
    assert json.loads(owners_frame(3, {11: "pulsar://b:6650", 2: "pulsar://a:6650"})) == {
        "type": "owners",
        "epoch": 3,
        "owners": {"2": "pulsar://a:6650", "11": "pulsar://b:6650"},
    }
    assert dict(frame(split(created(), 0)).active) == {
        1: "persistent://acme/shop/orders-segment-0000-7fff-1",
        2: "persistent://acme/shop/orders-segment-8000-ffff-2",
    }


def test_r2_segments_are_named_as_whoever_owns_the_layout_names_them() -> None:
    made = layout_frame(ORDERS, created(2), LEADER, hold_ms=_HOLD_MS, backend="Native")
    assert made is not None
    names = ["segment://acme/shop/orders/0000-7fff-0", "segment://acme/shop/orders/8000-ffff-1"]
    assert [one["topic"] for one in told(made)["layout"]["segments"]] == list(made.active.values()) == names
    with pytest.raises(NativeTopicError, match="Java V5 client"):
        parse_layout_message(json.dumps(told(made)["layout"]))
