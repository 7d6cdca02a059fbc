"""Consumers of an ordered subscription, over replicas that lead it in turn (R7, R17, R21)."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scalable_topics.layout import Part
from scalable_topics_operator.assignment.group import Version
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object, subscription_object_name
from scalable_topics_operator.controllers.session_room import Registration, Room, Session
from scalable_topics_operator.controllers.subscription_status import read_group
from scalable_topics_operator.controllers.timestamps import timestamp_now
from tests.simulation.consumer_connection import Connection
from tests.simulation.fleet.api_server import Body
from tests.simulation.fleet.names import NAME, NAMESPACE
from tests.simulation.model_broker import ModelCursor
from tests.simulation.shared_reading import KeySharedBroker, given_twice, parts_of

if TYPE_CHECKING:
    from tests.simulation.fleet.replica import SimulatedReplica
    from tests.simulation.fleet.world import FleetWorld

ORDERED = "ordered"
_ENTRIES_AT_ONCE = 5
# A look may be that old when what follows from it is committed.
_REPLY_SECONDS = 12.0


class FleetConsumer:
    """A consumer as docs/sessions.md wants it.

    Args:
        group: those it belongs to.
        name: unique among them.
    """

    def __init__(self, group: ConsumerGroup, name: str) -> None:
        self._group = group
        self.name = name
        self._lives = 0
        self.holds: set[Part] = set()
        self.connection: Connection | None = None
        self.away_since_seconds = self.cut_until_seconds = 0.0
        self.start_anew()

    def start_anew(self) -> None:
        """The process ends, and another one begins; brokers notice."""
        for part in list(self.holds):
            self._group.detach(self, part)
        self._lives += 1
        self._frames: deque[Mapping[str, Any]] = deque()
        self.lose()
        self._session: Session | None = None
        self._leader: SimulatedReplica | None = None
        self._version: Version | None = None
        self._record = ""
        self._wanted: set[Part] = set()
        self._said: set[Part] = set()
        self._was_registered = False
        self._served_seconds = 0.0
        self.is_final = False

    def heard(self, frame: Mapping[str, Any]) -> None:
        """A frame has come, to be taken in later."""
        self._frames.append(frame)

    def lose(self) -> None:
        """Its connection is closed."""
        self._is_confirmed = False
        if self.connection is not None:
            self.connection = None
            is_served = self._leader is not None and not self._leader.is_dead and self._leader.leads(self._group.key)
            # One that slept has told nobody that it was there.
            self.away_since_seconds = self._group.world.loop.time() if is_served else self._served_seconds

    # What it does.

    def register(self) -> None:
        """Open a session with whoever leads, if it has none."""
        if self._leader is not None and (self._leader.is_dead or not self._leader.leads(self._group.key)):
            # Its connection is closed with the process, or by one that does not lead any more.
            self.lose()
        elif self.connection is not None:
            self._served_seconds = self._group.world.loop.time()
        is_cut = self._group.world.loop.time() < self.cut_until_seconds
        if self.connection is not None or self.is_final or is_cut:
            return
        self._frames.clear()
        leader = self._leader = self._group.leader()
        recorded = self._group.recorded(leader) if leader is not None else None
        if leader is None or leader.coordinator is None or recorded is None:
            return
        registration = Registration(
            self.name,
            f"{self.name}-{self._lives}",
            resume=self._was_registered,
            holds=frozenset(self.holds),
            shares=True,
        )
        self.connection, self._said = Connection(self), set()
        self._served_seconds = self._group.world.loop.time()
        room = leader.coordinator.room(self._group.key)
        self._session = room.enter(registration, self.connection, recorded, timestamp_now())
        leader.wake(self._group.key)

    def disconnect(self) -> None:
        """Lose the session."""
        if (room := self._room()) is not None and self._session is not None:
            room.lost(self._session, self._group.world.loop.time())
        self.lose()

    def cut(self, seconds: float) -> None:
        """Reach no leader for so long."""
        self.cut_until_seconds = self._group.world.loop.time() + seconds
        self.disconnect()

    def listen(self) -> None:
        """Take one frame in."""
        if not self._frames:
            return
        frame = self._frames.popleft()
        if frame["type"] == "registered":
            self._was_registered = True
            if frame["record"] != self._record:
                self._record, self._version = frame["record"], None
        if frame["type"] != "assignment":
            return
        version = Version(**frame["version"])
        if self._version is not None and version < self._version:
            return
        self._is_confirmed = True
        self._version, self._wanted = version, parts_of(frame)

    def attach(self) -> None:
        """Attach to what it may read by this session's word and nobody else does, as far as its broker knows."""
        if not self._is_confirmed:
            return
        for part in sorted(self._wanted - self.holds):
            self._group.attach(self, part)

    def let_go(self) -> None:
        """Detach from what it may not read any more, and say so."""
        gone = self.holds - self._wanted
        for part in gone:
            self._group.detach(self, part)
        room = self._room()
        if gone and room is not None and self._session is not None and room.is_present(self._session):
            room.released(self._session, gone)

    def read(self, *, to_the_end: bool = False) -> None:
        """Read on, and say so when a sealed segment is at its end."""
        for part in sorted(self.holds & self._wanted):
            if (
                self._group.read(part, to_the_end=to_the_end)
                and part not in self._said
                and (room := self._room()) is not None
            ):
                self._said.add(part)
                room.hints.add(part.segment_id)
                room.look_soon()

    def _room(self) -> Room | None:
        """Where its session is, which will be looked at."""
        if self.connection is None or self._leader is None or self._leader.coordinator is None:
            return None
        self._leader.wake(self._group.key)
        return self._leader.coordinator.room(self._group.key)


class ConsumerGroup:
    """The consumers, and what they are attached to.

    Args:
        world: around them.
        chances: draw what they do.
        count: how many there are.
    """

    def __init__(self, world: FleetWorld, chances: random.Random, count: int) -> None:
        self.world = world
        self.key = ObjectKey(SUBSCRIPTIONS.plural, NAMESPACE, subscription_object_name(NAME, ORDERED))
        self._chances = chances
        self._broker = KeySharedBroker()
        self._attached_at: dict[Part, float] = {}
        self._topics: dict[int, str] = {}
        self.consumers = [FleetConsumer(self, f"consumer-{number}") for number in range(count)]

    def declare(self) -> None:
        """Create the ScalableTopicSubscription for the present ScalableTopic, if there is none."""
        topic = self.world.topic_body()
        if topic is None or topic["metadata"].get("deletionTimestamp") or self._object() is not None:
            return
        body = subscription_object(topic, ORDERED, "Stream", latest=False)
        self.world.user("POST", SUBSCRIPTIONS.path(NAMESPACE), body)

    def step(self) -> None:
        """Somebody does something."""
        self._forget_gone()
        consumer = self._chances.choice(self.consumers)
        acts = ("register", "listen", "attach", "let_go", "read", "disconnect", "start_anew")
        getattr(consumer, self._chances.choices(acts, (8, 14, 10, 10, 12, 1, 0.3))[0])()

    def go_on(self) -> None:
        """Everybody does what is to be done."""
        self._forget_gone()
        self.declare()
        for consumer in self.consumers:
            if consumer.is_final:
                consumer.start_anew()
            consumer.register()
            for _ in range(20):
                consumer.listen()
            consumer.let_go()
            consumer.attach()
            consumer.read(to_the_end=True)

    def leader(self) -> SimulatedReplica | None:
        """The replica to which sessions are passed on."""
        return next((one for one in self.world.alive if one.leads(self.key)), None)

    def recorded(self, leader: SimulatedReplica) -> Any:
        """The group as a replica knows it."""
        body = leader.known(self.key)
        return read_group(body.get("status") or {}) if body is not None else None

    def attach(self, consumer: FleetConsumer, part: Part) -> None:
        """A consumer attaches, unless its broker refuses; what may never be, is found here."""
        segment = part.segment_id
        cursor = self._cursor(segment)
        layout = self.world.layout
        if cursor is None or layout is None or segment not in layout.segments or not self._broker.takes(part):
            return
        self.world.note(f"{consumer.name} attaches to {segment}" + ("" if part.is_whole else f"/{part.bucket}"))
        for parent in layout.parents_of(segment):
            topic = self.world.broker.topics.get(self.world.name_of(parent))
            if topic is None or ORDERED not in topic.cursors or topic.reopened_unseen:
                continue
            if not topic.terminated or topic.backlog(ORDERED):
                self.world.violated(f"R17: {consumer.name} reads segment {segment} before {parent} is drained")
        self._broker.attach(part, consumer.name)
        self._attached_at[part] = self.world.loop.time()
        consumer.holds.add(part)
        cursor.attach(consumer.name)

    def detach(self, consumer: FleetConsumer, part: Part) -> None:
        """A consumer leaves a segment, or a bucket of it."""
        consumer.holds.discard(part)
        self._broker.detach(part)
        cursor = self._cursor(part.segment_id)
        if cursor is not None and consumer.name not in self._broker.consumers_of(part.segment_id):
            cursor.detach(consumer.name)

    def read(self, part: Part, *, to_the_end: bool) -> bool:
        """Read on, all buckets of a segment at the same pace; answers whether a sealed segment is at its end."""
        layout = self.world.layout
        if layout is None or part.segment_id not in layout.segments:
            return False
        segment = layout.segment(part.segment_id)
        name = self.world.name_of(segment)
        if self._broker.read(part, segment.buckets):
            self._broker.read_on(part.segment_id)
            self.world.broker.acknowledge(name, ORDERED, None if to_the_end else _ENTRIES_AT_ONCE)
        topic = self.world.broker.topics.get(name)
        return topic is not None and topic.terminated and ORDERED in topic.cursors and not topic.backlog(ORDERED)

    def judge(self, before: Body | None, after: Body | None) -> None:
        """R5: terms rise. R7: nobody is removed who may be reading, or who was there less than a grace period ago."""
        if before is None or after is None or after["metadata"].get("deletionTimestamp"):
            return
        if twice := given_twice(after.get("status") or {}):
            self.world.violated(f"R21: {twice}")
        terms = [int((body.get("status") or {}).get("term") or 0) for body in (before, after)]
        if terms[1] < terms[0]:
            self.world.violated(f"R5: what was assigned in term {terms[0]} is assigned anew in term {terms[1]}")
        now, grace_seconds = self.world.loop.time(), self.world.settings.sessions.grace_seconds
        for name in _members(before) - _members(after):
            consumer = next(one for one in self.consumers if one.name == name)
            since = max(self.world.led_since_seconds, consumer.away_since_seconds)
            if consumer.connection is not None or now - since < grace_seconds - _REPLY_SECONDS:
                self.world.violated(f"R7: {name} was removed {now - since:.1f} s after it was there last")
            # What is read to its end keeps nobody a member, nor what has left the layout since.
            drained = (after.get("status") or {}).get("drained", ())
            layout = self.world.layout
            unread = {one for one in layout.segments if one not in drained} if layout is not None else set()
            for part in consumer.holds:
                if part.segment_id in unread and now - self._attached_at[part] > _REPLY_SECONDS:
                    self.world.violated(f"R7: {name} was removed while its broker serves it {part}")

    def pulse(self) -> tuple[object, ...]:
        """Changes whenever somebody attaches or leaves, or something else is assigned."""
        body = self._object()
        version = body["metadata"]["resourceVersion"] if body is not None else ""
        return version, tuple(sorted(self._broker.attached.items()))

    def check_end(self) -> None:
        """Raises AssertionError unless everything is read by somebody, and by everybody as much as by others."""
        layout, topic = self.world.layout, self.world.topic_body()
        if layout is None or self._object() is None or not self.consumers:
            return
        if topic is None or topic["metadata"].get("deletionTimestamp"):
            # Its consumers are what keeps it from being deleted.
            return
        self._broker.check_all_read(layout.active)
        shares = sorted(len({part.segment_id for part in consumer.holds}) for consumer in self.consumers)
        assert shares[-1] - shares[0] <= 1, f"shares are {shares}"

    def _object(self) -> Any:
        return self.world.server.get(self.key)

    def _cursor(self, segment: int) -> ModelCursor | None:
        layout = self.world.layout
        if layout is not None and segment in layout.segments:
            self._topics[segment] = self.world.name_of(layout.segment(segment))
        # A broker goes on serving a topic that has left the layout, until it is deleted.
        topic = self.world.broker.topics.get(self._topics.get(segment, ""))
        return topic.cursors.get(ORDERED) if topic is not None else None

    def _forget_gone(self) -> None:
        """Brokers disconnect who is attached to a topic or a cursor that is deleted."""
        for consumer in self.consumers:
            for part in list(consumer.holds):
                cursor = self._cursor(part.segment_id)
                if cursor is None or consumer.name not in cursor.names:
                    self.detach(consumer, part)


def _members(body: Body) -> set[str]:
    return {one["name"] for one in (body.get("status") or {}).get("consumers", ())}
