"""Messages on their way: what they are built of, and waiting for their outcome."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from scalable_topics.layout import HashRange, key_hash, sticky_keys
from scalable_topics.sdk import ClosedError, MessageId
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.layout_message import FollowedSegment
from scalable_topics.sdk.outgoing_message import KEY_ENCODING_PROPERTY, ORDERING_KEY_PROPERTY, OutgoingMessage
from scalable_topics.sdk.received_message import ReceivedMessage
from scalable_topics.sdk.segment_lane import LaneKey, SegmentLane


def make(data: bytes | None = b"x", **fields: Any) -> OutgoingMessage:
    """A message."""
    arrivals: Arrivals[Any] = Arrivals(asyncio.get_running_loop(), lambda: None)
    return OutgoingMessage(arrivals, 0, 0.0, data, **fields)


class Taker:
    """Takes what a producer is given."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, Any]] = []

    def send(self, message: Any, callback: Any) -> None:
        self.given.append((message, callback))


def built(message: OutgoingMessage) -> Any:
    """The message in pulsar-client's form."""
    message.sequence_id = 0
    taker = Taker()
    message.hand_over(taker)  # type: ignore[arg-type]
    return taker.given[0][0]


def stored(message: OutgoingMessage, segment_id: int = 3) -> None:
    """Say that a message is stored."""
    message.lane = SegmentLane(LaneKey(segment_id, 0), FollowedSegment(segment_id, HashRange.full(), "topic"))
    message.is_told = True
    message.wake()


@pytest.mark.parametrize(
    ("fields", "hashed"),
    [
        ({}, None),
        ({"key": "k"}, "k"),
        ({"key": ""}, ""),
        ({"key": b"\x00"}, b"\x00"),
        ({"key": "k", "ordering_key": "o"}, "o"),
        ({"key": b"k", "ordering_key": b"o"}, b"o"),
        ({"ordering_key": ""}, ""),
    ],
)
async def test_R23_what_is_hashed(fields: dict[str, Any], hashed: str | bytes | None) -> None:
    assert make(**fields).hash_value == (None if hashed is None else key_hash(hashed))


async def test_R23_a_bytes_key_is_carried_as_text_and_hashed_by_brokers_as_bytes() -> None:
    message = built(make(key=b"key", properties={"a": "b"}))
    assert message.partition_key() == "a2V5"
    assert message.ordering_key() == "key"
    assert message.properties() == {"a": "b", KEY_ENCODING_PROPERTY: "base64"}


async def test_an_ordering_key_that_is_no_text_can_be_read_back() -> None:
    message = built(make(key="k", ordering_key=b"\xff"))
    assert message.properties() == {ORDERING_KEY_PROPERTY: "/w=="}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"key": "k"}, {}),
        ({}, {}),
        ({"key": b"\xff"}, {KEY_ENCODING_PROPERTY: "base64", ORDERING_KEY_PROPERTY: "/w=="}),
        ({"key": "k", "ordering_key": "o"}, {ORDERING_KEY_PROPERTY: "bw=="}),
        ({"key": b"k", "ordering_key": b"o"}, {KEY_ENCODING_PROPERTY: "base64", ORDERING_KEY_PROPERTY: "bw=="}),
    ],
)
async def test_messages_of_a_bucket_have_one_ordering_key(fields: dict[str, Any], wanted: dict[str, str]) -> None:
    """Brokers of Pulsar 4 keep the order of equal keys only, and see one key of an entry (pip-486). What the
    application gave as an ordering key is kept.
    """
    message = make(**fields)
    segment = FollowedSegment(0, HashRange.full(), "topic", buckets=4)
    message.lane = SegmentLane(LaneKey(0, 0), segment)
    keys = sticky_keys(4)
    assert keys is not None
    found = built(message)
    assert found.ordering_key() == keys.of(message.hash_value)
    assert found.properties() == wanted
    received = ReceivedMessage(found, 0)
    assert received.ordering_key == (None if "ordering_key" not in fields else "o")
    assert received.key == fields.get("key")


async def test_an_ordering_key_of_the_application_is_not_taken_for_that_of_a_bucket() -> None:
    found = built(make(key="k", ordering_key="\x1f7"))
    assert found.ordering_key() == "\x1f7"
    assert ReceivedMessage(found, 0).ordering_key == "\x1f7"
    assert ReceivedMessage(found, 0).properties == {}


async def test_properties_are_a_copy() -> None:
    properties = {"a": "b"}
    message = make(properties=properties)
    properties["a"] = "c"
    assert built(message).properties() == {"a": "b"}


async def test_a_delay_counts_from_the_call() -> None:
    """Not from when the message is handed over, which a hold may put off."""
    message = make(deliver_after=timedelta(seconds=5))
    assert message.travels_alone
    assert message._extras is not None
    assert message._extras.deliver_at_ms is not None
    assert abs(message._extras.deliver_at_ms - (time.time() + 5) * 1000) < 1000
    assert not make().travels_alone


async def test_sizes_count_payload_and_properties() -> None:
    assert make(b"12345").size_bytes == 5
    assert make(None).size_bytes == 0
    assert make(b"1", properties={"a": "ä"}).size_bytes == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"data": "text"},
        {"key": 1},
        {"ordering_key": 1.0},
        {"properties": {"a": 1}},
        {"properties": {1: "a"}},
        {"event_timestamp_ms": "now"},
        {"deliver_at_ms": -1},
    ],
)
async def test_wrong_types_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        make(**fields)


async def test_awaiting_answers_the_id() -> None:
    message = make()
    waiters = [asyncio.ensure_future(message) for _ in range(2)]
    await asyncio.sleep(0)
    assert not message.done()
    with pytest.raises(asyncio.InvalidStateError):
        message.result()
    stored(message)
    assert await asyncio.gather(*waiters) == [MessageId(3)] * 2
    assert await message == MessageId(3)
    assert message.exception() is None


async def test_awaiting_raises_the_error() -> None:
    message = make()
    waiter = asyncio.ensure_future(message)
    await asyncio.sleep(0)
    message.error = ClosedError("gone")
    message.is_told = True
    message.wake()
    with pytest.raises(ClosedError):
        await waiter
    with pytest.raises(ClosedError):
        await message
    assert message.exception() is message.error


async def test_one_waiter_that_is_cancelled_leaves_the_others() -> None:
    message = make()
    waiters = [asyncio.ensure_future(message) for _ in range(2)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    await asyncio.sleep(0)
    stored(message)
    assert await waiters[1] == MessageId(3)


async def test_callbacks_come_once_whenever_they_are_added() -> None:
    message = make()
    seen: list[OutgoingMessage] = []
    message.add_done_callback(seen.append)
    stored(message)
    message.add_done_callback(seen.append)
    await asyncio.sleep(0)
    assert seen == [message, message]


async def test_outcomes_tell_their_attempt() -> None:
    message = make()
    message.sequence_id = 0
    taker = Taker()
    message.hand_over(taker)  # type: ignore[arg-type]
    message.attempt = 1
    message.hand_over(taker)  # type: ignore[arg-type]
    for _, callback in taker.given:
        callback("result", "position")
    assert list(message._completions.items) == [(message, 0, "result", "position"), (message, 1, "result", "position")]


async def test_only_the_last_one_on_its_way_wakes_the_loop() -> None:
    """Others are found by the loop's own look (`LaneDriver`), so that it does not compete for the interpreter."""
    lane = SegmentLane(LaneKey(0, 0), FollowedSegment(0, HashRange(0, 0xFFFF), "persistent://t/ns/x-0"))
    first, last = make(), make()
    for sequence_id, message in enumerate((first, last)):
        message.lane, message.sequence_id = lane, sequence_id
    lane.next_sequence_id = 2
    first(pulsar.Result.Ok, None)
    assert not first._completions.is_woken
    last(pulsar.Result.Ok, None)
    assert last._completions.is_woken
