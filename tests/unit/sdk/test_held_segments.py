"""Segments from assignment to giving back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scalable_topics.layout import HashRange, Part, SegmentState
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.held_segments import HeldSegment, HeldSegments
from scalable_topics.sdk.segment_consumer import Received, SegmentConsumer
from scalable_topics.sdk.session_frames import AssignedSegment
from tests.unit.sdk.pulsar_stand_in import Pulsar

TIMEOUT_SECONDS = 10


def segment(segment_id: int, state: SegmentState = SegmentState.ACTIVE) -> AssignedSegment:
    """A segment of an assignment."""
    return AssignedSegment(segment_id, HashRange.parse_descriptor("0000-ffff"), f"segment {segment_id}", state)


class Reader:
    """Notes what happens to its segments."""

    def __init__(self) -> None:
        self.threads = BlockingCalls()
        self.pulsars: dict[int, Pulsar] = {}
        self.prefetch: dict[int, int] = {}
        self.unsettled: set[int] = set()
        self.events: list[str] = []
        self.gone = asyncio.Event()

    def open(self, segment: AssignedSegment, prefetch: int) -> SegmentConsumer:
        pulsar = self.pulsars[segment.segment_id] = Pulsar(lambda *_: None)
        self.prefetch[segment.segment_id] = prefetch
        connection: Any = pulsar
        arrivals: Arrivals[Received] = Arrivals(asyncio.get_running_loop(), lambda: None)
        consumer = SegmentConsumer(
            segment.part,
            pulsar.subscribe,
            prefetch=prefetch,
            is_cumulative=True,
            connection=connection,
            schema=None,
            threads=self.threads,
            arrivals=arrivals,
        )
        consumer.keep_attaching()
        return consumer

    def updated(self, held: HeldSegment) -> None:
        self.events.append(f"updated {held.segment.segment_id} {held.segment.state}")

    def is_settled(self, consumer: SegmentConsumer) -> bool:
        return consumer.segment_id not in self.unsettled

    def detaching(self, consumer: SegmentConsumer) -> None:
        self.events.append(f"detaching {consumer.segment_id}")

    def detached(self, part: Part) -> None:
        self.events.append(f"detached {part.segment_id}")
        self.gone.set()

    def changed(self) -> None:
        self.events.append("changed")


async def holding(*ids: int, handover_seconds: float = 0.0, budget: int = 100) -> tuple[HeldSegments, Reader]:
    """Some segments, attached to."""
    reader = Reader()
    held = HeldSegments(reader, receiver_queue_size=budget, handover_seconds=handover_seconds)
    held.attach(tuple(segment(each) for each in ids))
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while held.unserved():
            await asyncio.sleep(0)
    return held, reader


async def test_what_is_settled_is_given_back_at_once() -> None:
    held, reader = await holding(1, 2, handover_seconds=TIMEOUT_SECONDS)
    held.give_back(Part(1), TIMEOUT_SECONDS)
    assert held.ids == (2,)
    assert held.find(Part(1)) is None
    await asyncio.wait_for(held.close(), TIMEOUT_SECONDS / 2)
    assert reader.events == ["changed", "changed", "detaching 1", "detached 1"]
    assert reader.pulsars[1].attached.closed == 1


async def test_giving_back_waits_for_acknowledgements_and_for_their_way() -> None:
    held, reader = await holding(1, handover_seconds=TIMEOUT_SECONDS)
    reader.unsettled = {1}
    found = held.find(Part(1))
    assert found is not None
    held.give_back(Part(1), TIMEOUT_SECONDS)
    reader.pulsars[1].attached.connected = False
    found.consumer.acknowledge("last")
    held.acknowledged(found.consumer)
    await asyncio.sleep(0.05)
    assert not reader.gone.is_set(), "there is more to acknowledge"
    reader.unsettled = set()
    held.acknowledged(found.consumer)
    await asyncio.sleep(0.05)
    assert not reader.gone.is_set(), "it has no connection"
    reader.pulsars[1].attached.connected = True
    await asyncio.wait_for(reader.gone.wait(), TIMEOUT_SECONDS)
    assert reader.pulsars[1].attached.acknowledged == [("all up to", "last")]


async def test_R21_giving_back_acknowledges_again_what_may_be_lost() -> None:
    held, reader = await holding(1, handover_seconds=TIMEOUT_SECONDS)
    found = held.find(Part(1))
    assert found is not None
    await held.first_attempts()
    pulsar = reader.pulsars[1]
    pulsar.attached.connected = False
    found.consumer.watch()
    pulsar.attached.connected = True
    found.consumer.acknowledge("last")
    held.give_back(Part(1), TIMEOUT_SECONDS)
    await asyncio.wait_for(reader.gone.wait(), TIMEOUT_SECONDS)
    assert [attached.acknowledged for attached in (*pulsar.before, pulsar.attached)] == [[("all up to", "last")]] * 2


async def test_what_was_settled_once_and_is_not_any_more_is_waited_for() -> None:
    held, reader = await holding(1, handover_seconds=TIMEOUT_SECONDS)
    found = held.find(Part(1))
    assert found is not None
    held.acknowledged(found.consumer)
    reader.unsettled = {1}
    held.give_back(Part(1), TIMEOUT_SECONDS)
    await asyncio.sleep(0.05)
    assert not reader.gone.is_set(), "the application is busy with what came last"
    reader.unsettled = set()
    held.acknowledged(found.consumer)
    await asyncio.wait_for(reader.gone.wait(), TIMEOUT_SECONDS)


@pytest.mark.parametrize(("handover_seconds", "within_seconds"), [(0.05, 600.0), (20.0, 0.05)])
async def test_R21_giving_back_takes_no_longer_than_it_may(handover_seconds: float, within_seconds: float) -> None:
    held, reader = await holding(1, handover_seconds=handover_seconds)
    reader.unsettled = {1}
    held.give_back(Part(1), within_seconds)
    await asyncio.wait_for(reader.gone.wait(), TIMEOUT_SECONDS)


async def test_dropping_waits_for_nobody_even_while_giving_back() -> None:
    held, reader = await holding(1, 2, handover_seconds=20.0)
    reader.unsettled = {1, 2}
    held.give_back(Part(1), 20.0)
    held.drop(Part(1))
    held.drop(Part(2))
    held.drop(Part(2))
    await asyncio.wait_for(held.close(), TIMEOUT_SECONDS)
    assert sorted(reader.events[3:]) == ["detached 1", "detached 2", "detaching 1", "detaching 2"]


async def test_R24_the_budget_goes_round() -> None:
    held, reader = await holding(1, 2)
    assert reader.prefetch == {1: 25, 2: 25}
    held.attach((segment(3),))
    assert reader.prefetch[3] == 25
    for each in (1, 2, 3):
        held.drop(Part(each))
    await held.close()
    held.attach((segment(1),))
    assert reader.prefetch[1] == 50


async def test_a_segment_that_is_sealed_meanwhile_is_known_as_such() -> None:
    held, reader = await holding(1)
    held.update(segment(1, SegmentState.SEALED))
    assert reader.events[-1] == "updated 1 Sealed"
    assert [each.segment.is_sealed for each in held] == [True]
