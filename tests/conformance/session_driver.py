"""Runs peer cases of consumer sessions: the coordinator's room and record, over a time that the case owns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scalable_topics.layout import SegmentLayout, TopicName
from scalable_topics_operator.assignment.group import Group
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.session_frames import assignment_frame
from scalable_topics_operator.controllers.session_room import Registration, Room, Session
from scalable_topics_operator.controllers.subscription_status import Phase, read_group, write_group

_TOPIC = TopicName("tenant", "ns", "topic")


class Connection:
    """What came to a consumer through one connection."""

    def __init__(self) -> None:
        self.frames: list[Mapping[str, Any]] = []
        self.is_refused = False

    def send(self, frame: Mapping[str, Any]) -> None:
        self.frames.append(frame)

    def refuse(self, status: int, reason: str, *, final: bool) -> None:
        self.is_refused = True

    def leave(self) -> None:
        self.is_refused = True


class Leader:
    """The coordinator of one subscription, without its brokers.

    Args:
        segments: of the topic.
        grace_seconds: how long one that is away stays a member.
        status: what another leader has recorded.
    """

    def __init__(self, segments: int = 4, grace_seconds: float = 60.0, status: Mapping[str, Any] | None = None) -> None:
        self.layout = SegmentLayout.initial(segments)
        self.room = Room(grace_seconds, 30.0)
        self.group = read_group(status or {})
        self.now = 100.0
        self.turn()

    def register(self, name: str, incarnation: str, *, resume: bool = False) -> tuple[Session | None, Connection]:
        """A consumer registers through a connection of its own."""
        connection = Connection()
        session = self.room.enter(Registration(name, incarnation, resume), connection, self.group, "")
        self.turn()
        return session, connection

    def turn(self) -> None:
        """One turn of the coordinator: take in what was said, remove who has not come back, assign, push."""
        for change in self.room.said:
            self.group = change(self.group)
        self.room.said.clear()
        self.room.watch(self.group, self.now)
        for name in self.room.expired(self.now):
            self.group = self.group.without(name)
        self.group = self.group.settle(self.layout, 1)
        for name, member in self.group.members.items():
            # Nobody reads anything here: what is taken is let go of at once.
            self.group = self.group.release(name, member.incarnation, member.releasing)
        self.group = self.group.settle(self.layout, 1)
        for name, session in self.room.sessions.items():
            session.outlet.send(
                assignment_frame(_TOPIC, self.layout, self.group.version, self.group.members[name].assigned)
            )

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self.now += seconds
        self.turn()

    def counts(self) -> dict[str, int]:
        """How many segments each member has."""
        return {name: len({part.segment_id for part in member.assigned}) for name, member in self.group.members.items()}

    def recorded(self) -> dict[str, Any]:
        """The status, as another leader reads it."""
        status = write_group({}, self.group, Phase.ACTIVE, Standing.healthy(), term=1, generation=1, now="")
        restored: dict[str, Any] = json.loads(json.dumps(status))
        return restored


def persisted(*names: str) -> dict[str, Any]:
    """What a leader has recorded of consumers that had registered."""
    group = Group()
    for name in names:
        group = group.join(name, "before", (), "")
    leader = Leader()
    leader.group = group
    leader.turn()
    return leader.recorded()
