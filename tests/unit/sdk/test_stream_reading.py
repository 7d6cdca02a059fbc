"""How whole segments and entry buckets are attached to, and what of them is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pulsar
import pytest

from scalable_topics.layout import WHOLE, HashRange, Part, SegmentState, TopicName
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.options import StreamConsumerOptions
from scalable_topics.sdk.received_message import StreamMessage
from scalable_topics.sdk.session_frames import AssignedSegment, Floor
from scalable_topics.sdk.stream_reading import StreamReading
from tests.unit.sdk.pulsar_stand_in import Attached

BUCKETS = 4


def part_of(segment_id: int, bucket: int = WHOLE, **fields: Any) -> AssignedSegment:
    """A segment of an assignment, or a bucket of one."""
    return AssignedSegment(
        segment_id, HashRange.full(), f"segment-{segment_id}", bucket=bucket, bucket_count=BUCKETS, **fields
    )


class Position:
    """A message id of pulsar-client."""

    def __init__(self, entry: int) -> None:
        self.entry = entry

    def ledger_id(self) -> int:
        return 7

    def entry_id(self) -> int:
        return self.entry

    def batch_index(self) -> int:
        return -1


class Message:
    """A message of pulsar-client."""

    def __init__(self, entry: int) -> None:
        self.position = Position(entry)

    def message_id(self) -> Position:
        return self.position


class Brokers:
    """Stands for pulsar-client: who attaches how, and what is acknowledged."""

    def __init__(self) -> None:
        self.attached: dict[tuple[str, str], Attached] = {}
        self.listeners: dict[tuple[str, str], Any] = {}
        self.kinds: dict[tuple[str, str], Any] = {}

    def connect(self) -> Brokers:
        return self

    def close(self) -> None:
        """Nothing to close."""

    def subscribe(self, topic: str, subscription: str, **how: Any) -> Attached:
        policy = how["key_shared_policy"]
        key = (topic, "" if policy is None else str(policy.sticky_ranges))
        self.kinds[key] = how["consumer_type"]
        assert policy is None or (policy.key_shared_mode, policy.allow_out_of_order_delivery) == (
            pulsar.KeySharedMode.Sticky,
            False,
        )
        self.listeners[key] = how["message_listener"]
        self.attached[key] = Attached()
        return self.attached[key]

    def acknowledged(self, topic: str, ranges: str = "") -> list[Any]:
        """Entries that a consumer has acknowledged; those up to which it has, with `all`."""
        return [
            ("all", each[1].entry) if isinstance(each, tuple) else each.entry
            for each in self.attached[topic, ranges].acknowledged
        ]


class Leader:
    """Stands for the session."""

    is_registered = True

    def __init__(self) -> None:
        self.told: list[str] = []

    def detached(self, part: Part) -> None:
        self.told.append(f"detached {part.segment_id}/{part.bucket}")

    def drained(self, part: Part) -> None:
        self.told.append(f"drained {part.segment_id}/{part.bucket}")


class World:
    """A reading consumer and all around it."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.leader = Leader()
        self.threads = BlockingCalls()
        connection: Any = self.brokers
        self.reading = StreamReading(
            TopicName.parse("t/n/x"),
            "s",
            "me",
            session=self.leader,
            connection=connection,
            options=StreamConsumerOptions(handover_seconds=0),
            schema=None,
            threads=self.threads,
            check=lambda: None,
            failed=lambda error: None,
            changed=lambda: None,
        )

    async def hold(self, *segments: AssignedSegment) -> None:
        """Attach to these."""
        self.reading.held.attach(segments)
        await self.reading.held.first_attempts()

    async def receive(self, topic: str, entry: int, ranges: str = "") -> StreamMessage | None:
        """A broker delivers a message; what the application gets of that."""
        key = (topic, ranges)
        self.brokers.listeners[key](self.brokers.attached[key], Message(entry))
        try:
            return await self.reading.inbox.receive(0.05)
        except TimeoutError:
            return None


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    for part in made.reading.held.parts:
        made.reading.held.drop(part)
    await made.reading.held.close()
    made.threads.close()


FIRST, LAST = "[(0, 16383)]", "[(49152, 65535)]"


async def test_a_bucket_is_attached_to_by_its_range_and_a_whole_segment_alone(world: World) -> None:
    await world.hold(part_of(0), part_of(1, 0), part_of(1, 3))
    assert world.brokers.kinds == {
        ("segment-0", ""): pulsar.ConsumerType.Exclusive,
        ("segment-1", FIRST): pulsar.ConsumerType.KeyShared,
        ("segment-1", LAST): pulsar.ConsumerType.KeyShared,
    }
    assert world.reading.held.ids == (0, 1)
    assert world.reading.held.parts == (Part(0), Part(1, 0), Part(1, 3))


async def test_R24_one_acknowledgement_covers_segments_and_buckets(world: World) -> None:
    await world.hold(part_of(0), part_of(1, 0), part_of(1, 3))
    for entry in (1, 2):
        await world.receive("segment-0", entry)
        await world.receive("segment-1", entry + 10, FIRST)
    last = await world.receive("segment-1", 20, LAST)
    assert last is not None
    assert last.part == Part(1, 3)
    await world.receive("segment-1", 30, FIRST)
    world.reading.acknowledge(last)
    assert world.brokers.acknowledged("segment-0") == [("all", 2)]
    assert world.brokers.acknowledged("segment-1", FIRST) == [11, 12]
    assert world.brokers.acknowledged("segment-1", LAST) == [20]


async def test_of_a_bucket_what_comes_again_is_acknowledged_again(world: World) -> None:
    await world.hold(part_of(1, 0))
    first = await world.receive("segment-1", 11, FIRST)
    assert first is not None
    await world.receive("segment-1", 12, FIRST)
    world.reading.acknowledge(first)
    assert await world.receive("segment-1", 11, FIRST) is None
    assert await world.receive("segment-1", 12, FIRST) is None
    assert world.brokers.acknowledged("segment-1", FIRST) == [11, 11]


async def test_R22_positions_are_told_and_committed_by_bucket(world: World) -> None:
    await world.hold(part_of(0, start=(7, 3)), part_of(1, 0, start=(7, 5)), part_of(1, 3))
    assert world.reading.places() == {Part(0): (7, 3), Part(1, 0): (7, 5)}
    for entry in (11, 12):
        await world.receive("segment-0", entry)
        await world.receive("segment-1", entry, FIRST)
        await world.receive("segment-1", entry, LAST)
    assert world.reading.places() == dict.fromkeys((Part(0), Part(1, 0), Part(1, 3)), (7, 12, -1))
    world.reading.acknowledge_to({Part(0, 1): (7, 12, -1), Part(1): (7, 11, -1), Part(1, 3): (7, 12, -1)})
    assert world.brokers.acknowledged("segment-0") == [], "of the other buckets nothing is said"
    assert world.brokers.acknowledged("segment-1", FIRST) == [11]
    assert world.brokers.acknowledged("segment-1", LAST) == [11, 12]
    world.reading.acknowledge_to({Part(0, bucket): (7, 11 + bucket, -1) for bucket in range(BUCKETS)})
    assert world.brokers.acknowledged("segment-0") == [("all", 11)], "the least of its buckets"


async def test_R22_what_a_group_has_of_a_bucket_is_told_with_the_whole_segment(world: World) -> None:
    floors = (Floor(1, 7, 20, -1), Floor(2, 7, 4, -1))
    await world.hold(part_of(0, start=(7, 3), floors=floors), part_of(1, 0, floors=(Floor(0, 7, 9, -1),)))
    assert world.reading.places() == {
        Part(0): (7, 3),
        Part(0, 1): (7, 20, -1),
        Part(0, 2): (7, 4, -1),
        Part(1, 0): (7, 9, -1),
    }
    assert await world.receive("segment-1", 9, FIRST) is None
    assert world.brokers.acknowledged("segment-1", FIRST) == [9]
    assert await world.receive("segment-1", 10, FIRST) is not None
    assert world.reading.places()[Part(1, 0)] == (7, 10, -1)


async def test_R17_each_bucket_of_a_sealed_segment_is_drained_by_itself(world: World) -> None:
    await world.hold(*(part_of(0, bucket, state=SegmentState.SEALED, end=(7, 12)) for bucket in (0, 3)))
    message = await world.receive("segment-0", 12, LAST)
    assert message is not None
    await world.receive("segment-0", 11, FIRST)
    world.reading.acknowledge(message)
    async with asyncio.timeout(5):
        while not world.leader.told:
            await asyncio.sleep(0.01)
    assert world.leader.told == ["drained 0/3"], "there is more to acknowledge of the first"
