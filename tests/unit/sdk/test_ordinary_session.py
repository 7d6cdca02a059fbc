"""What a stream consumer does on an ordinary topic, and when it goes over to the leader (R25)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scalable_topics.layout import HashRange, Part
from scalable_topics.sdk import ClientError
from scalable_topics.sdk.layout_message import FollowedSegment, LayoutMessage, Routing
from scalable_topics.sdk.ordinary_session import OrdinarySession
from scalable_topics.sdk.session_frames import AssignedSegment

MIGRATED = LayoutMessage("topic://t/n/x", "uid.0", 0, 1002, 1, {9: FollowedSegment(9, HashRange.full(), "child")})


def ordinary(partitions: int, made: int = 0) -> LayoutMessage:
    """A synthetic layout."""
    segments = {each: FollowedSegment(each, HashRange.full(), f"partition-{each}") for each in range(partitions)}
    return LayoutMessage("topic://t/n/x", f"own.{made}", 0, 0, 0, segments, routing=Routing.MODULO)


class World:
    """A follower, a holder and a leader's session, as the session under test sees them."""

    def __init__(self, layout: LayoutMessage, *, has_gateway: bool = True) -> None:
        self.latest = layout
        self.has_gateway = has_gateway
        self.listeners: list[Callable[[LayoutMessage], None]] = []
        self.attached: list[AssignedSegment] = []
        self.given_back: list[int] = []
        self.dropped: list[int] = []
        self.calls: list[str] = []
        self.errors: list[ClientError] = []
        self.is_registered = True
        anything: Any = self
        self.session = OrdinarySession(anything, from_latest=True, make_session=self._make, failed=self.errors.append)

    def _make(self) -> Any:
        if not self.has_gateway:
            raise ClientError("no gateway")
        return self

    async def begin(self) -> None:
        anything: Any = self
        await self.session.start(anything)

    def publish(self, layout: LayoutMessage) -> None:
        for listener in tuple(self.listeners):
            listener(layout)

    # The follower

    async def first(self) -> LayoutMessage:
        return self.latest

    def add_listener(self, listener: Callable[[LayoutMessage], None]) -> None:
        self.listeners.append(listener)

    def remove_listener(self, listener: Callable[[LayoutMessage], None]) -> None:
        self.listeners.remove(listener)

    # The holder

    def attach(self, segments: tuple[AssignedSegment, ...]) -> None:
        self.attached += segments

    async def first_attempts(self) -> None:
        self.calls.append("first attempts")

    def give_back(self, part: Part, within_seconds: float) -> None:
        self.given_back.append(part.segment_id)

    def drop(self, part: Part) -> None:
        self.dropped.append(part.segment_id)

    # The leader's session

    async def start(self, _: object) -> None:
        self.calls.append("start")

    def join(self, _: object) -> None:
        self.calls.append("join")

    def detached(self, part: Part) -> None:
        self.calls.append(f"detached {part.segment_id}")

    def drained(self, part: Part) -> None:
        self.calls.append(f"drained {part.segment_id}")

    def leave(self) -> None:
        self.calls.append("leave")

    async def close(self) -> None:
        self.calls.append("close")


async def test_every_partition_is_attached_to_beside_others_and_new_ones_from_their_beginning() -> None:
    world = World(ordinary(2))
    await world.begin()
    world.publish(ordinary(3, 1))
    world.publish(ordinary(3, 2))
    assert [(each.segment_id, each.is_ordinary, each.from_latest) for each in world.attached] == [
        (0, True, True),
        (1, True, True),
        (2, True, False),
    ]
    assert world.calls == ["first attempts"]
    assert not world.session.is_registered


async def test_it_registers_once_it_holds_nothing_any_more() -> None:
    world = World(ordinary(2))
    await world.begin()
    world.publish(MIGRATED)
    world.publish(MIGRATED)
    world.publish(ordinary(3, 1))
    assert sorted(world.given_back) == [0, 1]
    world.session.detached(Part(1))
    world.session.drained(Part(1))
    assert "join" not in world.calls
    world.session.detached(Part(0))
    assert world.session.is_registered
    world.session.detached(Part(9))
    world.session.drained(Part(9))
    world.session.leave()
    await world.session.close()
    assert world.calls == ["first attempts", "join", "detached 9", "drained 9", "leave", "close"]
    assert len(world.attached) == 2


async def test_who_leaves_while_giving_back_does_not_register() -> None:
    world = World(ordinary(1))
    await world.begin()
    world.publish(MIGRATED)
    world.session.leave()
    assert world.dropped == [0]
    world.session.detached(Part(0))
    await world.session.close()
    assert world.calls == ["first attempts"]
    assert world.listeners == []


async def test_without_a_gateway_it_fails_when_it_holds_nothing_any_more() -> None:
    world = World(ordinary(1), has_gateway=False)
    await world.begin()
    world.publish(MIGRATED)
    assert world.errors == []
    world.session.detached(Part(0))
    assert [str(error) for error in world.errors] == ["no gateway"]


async def test_a_scalable_topic_is_left_to_the_leader_from_the_beginning() -> None:
    world = World(MIGRATED)
    await world.begin()
    assert world.calls == ["start"]
    assert world.attached == []
    with pytest.raises(ClientError, match="no gateway"):
        await World(MIGRATED, has_gateway=False).begin()
