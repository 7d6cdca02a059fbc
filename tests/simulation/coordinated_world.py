"""The world of an ordered subscription: its object, a layout that changes, brokers, leaders and consumers.

The coordinators and what they decide are the real ones; time, the API server, brokers and consumers are models. Every
write may be refused, fail, or arrive without its reply; every frame and every step of a consumer takes its time.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import Part, Segment, SegmentLayout, TopicName, classic_segment_name, to_record
from scalable_topics_operator.assignment.group import Version
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeError, KubeUnavailable
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.coordinator import Coordinator, SessionTimes
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import (
    SUBSCRIPTIONS_BY_TOPIC,
    subscription_object,
    topic_text,
)
from scalable_topics_operator.controllers.session_room import Registration, Session
from scalable_topics_operator.controllers.subscription_status import read_group
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.operations.errors import BackendError, BackendUnavailable
from scalable_topics_operator.operations.protocols import CursorLook, Position, SegmentLook
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.simulation.consumer_connection import Connection
from tests.simulation.fleet.api_server import merged
from tests.simulation.shared_reading import KeySharedBroker, given_twice, parts_of

TOPIC = TopicName("tenant", "space", "orders")
SUBSCRIPTION = "billing"
TIMES = SessionTimes(grace_seconds=60.0, handover_seconds=30.0)
_END = Position(0, 9)
_FAULTS = 0.08


@dataclass
class ModelServer:
    """An API server with two objects, whose replies may fail.

    Args:
        chances: decide what fails.
        bodies: the objects.
        is_calm: nothing fails any more.
    """

    chances: random.Random
    bodies: dict[ObjectKey, Body] = field(default_factory=dict)
    version: int = 0
    is_calm: bool = False

    def put(self, resource: Resource, body: Body) -> Body:
        self.version += 1
        body = copy.deepcopy(body)
        body["metadata"]["resourceVersion"] = str(self.version)
        self.bodies[key_of(resource, body)] = body
        return copy.deepcopy(body)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Body:
        self._may_fail()
        return copy.deepcopy(self.bodies[ObjectKey(resource.plural, namespace or "", name)])

    async def create(self, resource: Resource, namespace: str | None, body: Body) -> Body:
        return body

    async def merge_patch(
        self, resource: Resource, namespace: str | None, name: str, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> Body:
        self._may_fail()
        known = self.bodies[ObjectKey(resource.plural, namespace or "", name)]
        if patch["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            raise KubeConflict(f"patch {name}", 409, "conflict")
        written = merged(known, {"status": patch["status"]})
        assert not (twice := given_twice(written["status"])), f"R21: {twice}"
        answer = self.put(resource, written)
        self._may_fail()
        return answer

    def _may_fail(self) -> None:
        if not self.is_calm and self.chances.random() < _FAULTS:
            raise KubeUnavailable("a call", 503, "not today")


@dataclass
class ModelCursors:
    """Brokers: who is attached to a segment or a bucket of it, and whether it is read to its end."""

    chances: random.Random
    broker: KeySharedBroker = field(default_factory=KeySharedBroker)
    read: set[int] = field(default_factory=set)
    layout: SegmentLayout = field(default_factory=lambda: SegmentLayout.initial(1))
    is_calm: bool = False

    async def look(self, segment_topic: str) -> SegmentLook:
        if not self.is_calm and self.chances.random() < _FAULTS:
            raise BackendUnavailable("the broker does not answer")
        segment = next(one for one in self.layout.segments.values() if name_of(one) == segment_topic)
        one = segment.segment_id
        consumers = self.broker.consumers_of(one)
        cursor = CursorLook(
            counts=True,
            mark_delete=_END if one in self.read else Position(0, 0),
            backlog=0 if one in self.read else 1,
            consumers=len(consumers),
            consumer_names=consumers,
        )
        return SegmentLook(
            terminated=not segment.is_active,
            last_confirmed=_END,
            pending_adds=0,
            entries=10,
            producers=frozenset(),
            cursors={SUBSCRIPTION: cursor},
        )


class ModelConsumer:
    """A consumer as docs/sessions.md wants it, slow in everything it does."""

    def __init__(self, world: CoordinatedWorld, name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.start_anew()

    def start_anew(self) -> None:
        """The process ends, and another one begins; brokers notice."""
        for part in self.holds:
            self.world.cursors.broker.detach(part)
        self.lives += 1
        # A release that knows nothing of buckets is replaced by one that does, or the other way round.
        self.shares = self.world.chances.random() < 0.85
        self.frames: deque[Mapping[str, Any]] = deque()
        self.session: Session | None = None
        self.connection: Connection | None = None
        self.leader: Coordinator | None = None
        self.version: Version | None = None
        self.wanted: set[Part] = set()
        self.told: set[int] = set()
        self.was_registered = False
        self.is_final = False

    def heard(self, frame: Mapping[str, Any]) -> None:
        """A frame has come, to be taken in later."""
        self.frames.append(frame)

    def lose(self) -> None:
        """Its connection is closed."""
        self.session = self.connection = None

    @property
    def incarnation(self) -> str:
        return f"{self.name}-{self.lives}"

    @property
    def holds(self) -> set[Part]:
        """What it may be delivering messages of."""
        return self.world.cursors.broker.held_by(self.name)

    # What it does.

    def register(self) -> None:
        if self.session is not None or self.is_final:
            return
        self.leader = self.world.coordinator
        self.frames.clear()
        self.told.clear()
        room = self.leader.room(self.world.key)
        recorded = read_group(self.world.cached().get("status") or {})
        registration = Registration(
            self.name,
            self.incarnation,
            resume=self.was_registered,
            kind=self.world.kind,
            holds=frozenset(self.holds),
            shares=self.shares,
        )
        self.connection = Connection(self)
        self.session = room.enter(registration, self.connection, recorded, timestamp_now())

    def disconnect(self) -> None:
        if self.session is not None and self.leader is not None:
            self.leader.room(self.world.key).lost(self.session, self.world.now)
        self.lose()

    def listen(self) -> None:
        """Take one frame in."""
        if not self.frames:
            return
        frame = self.frames.popleft()
        if frame["type"] == "registered":
            self.was_registered = True
        if frame["type"] != "assignment":
            return
        self.world.check_starts(self, frame)
        version = Version(**frame["version"])
        if self.version is not None and version <= self.version:
            return
        self.version, self.wanted = version, parts_of(frame)
        assert self.shares or all(part.is_whole for part in self.wanted), f"{self.name} cannot read {self.wanted}"

    def attach(self) -> None:
        """Attach to what it may read and nobody else does, as far as its broker knows."""
        for part in sorted(self.wanted - self.holds):
            known = part.segment_id in self.world.cursors.layout.segments
            if known and self.world.cursors.broker.takes(part):
                self.world.attached(self, part)

    def let_go(self) -> None:
        """Detach from what it may not read any more, and say so."""
        gone = self.holds - self.wanted
        for part in gone:
            self.world.cursors.broker.detach(part)
        if gone and self.session is not None and self.leader is not None:
            room = self.leader.room(self.world.key)
            if room.is_present(self.session):
                room.released(self.session, gone)

    def read(self) -> None:
        """Read a sealed segment to its end, and say so."""
        layout = self.world.cursors.layout
        sealed = sorted(part for part in self.holds & self.wanted if not layout.segment(part.segment_id).is_active)
        if not sealed:
            return
        for part in sealed:
            if self.world.cursors.broker.read(part, layout.segment(part.segment_id).buckets):
                self.world.cursors.read.add(part.segment_id)
        if self.session is not None and self.leader is not None:
            room = self.leader.room(self.world.key)
            room.hints.update(part.segment_id for part in sealed)
            room.look_soon()


class CoordinatedWorld:
    """Everything, and a story of it."""

    def __init__(self, seed: int) -> None:
        self.chances = random.Random(seed)
        self.trace: list[str] = []
        self.now = 0.0
        self.server = ModelServer(self.chances)
        self.cursors = ModelCursors(self.chances)
        segments = self.chances.randint(1, 4)
        self.cursors.layout = SegmentLayout.initial(segments, bucket_budget=segments * self.chances.choice([1, 2, 4]))
        self.term = 1
        self.former: list[tuple[Coordinator, ObjectCache]] = []
        topic: Body = {
            "apiVersion": TOPICS.api_version,
            "kind": TOPICS.kind,
            "metadata": {"name": "orders", "namespace": "shop", "uid": "t", "generation": 1},
            "spec": {"topic": str(TOPIC), "connectionRef": {"name": "pulsar"}},
        }
        self.phase = "Active"
        self.fans_out = True
        self.kind = self.chances.choice(["Stream", "Checkpoint"])
        subscription = subscription_object(topic, SUBSCRIPTION, self.kind, latest=False)
        subscription["metadata"] |= {"uid": "s", "generation": 1, "creationTimestamp": "2026-11-29T10:00:00Z"}
        self.key = key_of(SUBSCRIPTIONS, subscription)
        self.server.put(SUBSCRIPTIONS, subscription)
        self._topic = topic
        self.coordinator, self.cache = self._lead()
        self.consumers = [ModelConsumer(self, f"consumer-{number}") for number in range(6)]

    def cached(self) -> Body:
        """The subscription as the leader knows it."""
        if (body := self.cache.get(self.key)) is None:
            body = copy.deepcopy(self.server.bodies[self.key])
            self.cache.observe(SUBSCRIPTIONS, body)
        return body

    def _lead(self) -> tuple[Coordinator, ObjectCache]:
        cache = ObjectCache()
        cache.add_index(SUBSCRIPTIONS_BY_TOPIC, SUBSCRIPTIONS, topic_text)
        term = self.term
        coordinator = Coordinator(
            self.server,  # type: ignore[arg-type]
            cache,
            lambda _: self.cursors,  # type: ignore[arg-type,return-value]
            ConsumerCounts(lambda _: None),
            EventRecorder(self.server),  # type: ignore[arg-type]
            Metrics(),
            TIMES,
            lambda _: term,
            lambda *_: None,
            lambda _: None,
            lambda *_: self.fans_out,
            lambda: self.now,
        )
        return coordinator, cache

    def fail_over(self) -> None:
        """Another replica leads; the former one does not know it yet, and may still write."""
        self.trace.append("fail over")
        self.former.append((self.coordinator, self.cache))
        self.term += 1
        self.coordinator, self.cache = self._lead()
        for consumer in self.consumers:
            if self.chances.random() < 0.7:
                consumer.lose()

    def change_layout(self) -> None:
        layout = self.cursors.layout
        active = [one.segment_id for one in layout.active]
        prunable = [
            one.segment_id
            for one in layout.sealed
            if one.segment_id in self.cursors.read and all(parent in self.cursors.read for parent in one.parent_ids)
        ]
        kind = self.chances.choice(["split", "merge", "rebucket", "prune"])
        if kind == "split" and len(active) < 8:
            layout = layout.split(self.chances.choice(active), now_ms=1)
        elif kind == "merge" and len(active) > 1:
            at = self.chances.randrange(len(active) - 1)
            layout = layout.merge(active[at : at + 2], now_ms=1)
        elif kind == "rebucket":
            segment = layout.segment(self.chances.choice(active))
            buckets = self.chances.choice([one for one in (1, 2, 4, 8) if one != segment.buckets])
            layout = layout.rebucket(segment.segment_id, buckets, now_ms=1)
        elif kind == "prune" and prunable:
            layout = layout.prune([prunable[0]])
        for segment in layout.sealed:
            if segment.sealed_position is None:
                layout = layout.with_sealed_position(segment.segment_id, "0:9")
        self.cursors.broker.forget_but(layout.segments.keys())
        self.cursors.layout = layout
        self.trace.append(f"layout {[str(one.segment_id) for one in layout.active]}")

    def attached(self, consumer: ModelConsumer, part: Part) -> None:
        """A consumer attaches; what may never be, is found here."""
        segment = part.segment_id
        self.trace.append(f"{consumer.name} attaches to {segment}" + ("" if part.is_whole else f"/{part.bucket}"))
        layout = self.cursors.layout
        unread = [one.segment_id for one in layout.parents_of(segment) if one.segment_id not in self.cursors.read]
        assert not unread, f"{consumer.name} reads segment {segment} before {unread}"
        for other in self.consumers:
            # One that has been told to let go delivers nothing any more; one that has not may be delivering.
            shared = [held for held in other.holds if held.conflicts_with(part)]
            assert not shared, f"{other.name} reads {shared}, too"
        self.cursors.broker.attach(part, consumer.name)

    def check_starts(self, consumer: ModelConsumer, frame: Mapping[str, Any]) -> None:
        """R22: a checkpoint consumer knows of all its segments where they begin."""
        for segment in frame["segments"]:
            assert self.kind != "Checkpoint" or "start" in segment or segment["id"] in consumer.told, (
                f"{consumer.name} is not told where segment {segment['id']} begins"
            )
            consumer.told.add(segment["id"])

    async def step(self) -> None:
        """Something happens."""
        consumer = self.chances.choice(self.consumers)
        what = self.chances.choices(
            [
                "register",
                "listen",
                "attach",
                "let go",
                "read",
                "lead",
                "wait",
                "lose",
                "die",
                "layout",
                "fail over",
                "old",
                "fan out",
            ],
            [8, 14, 10, 10, 6, 24, 8, 3, 1, 4, 1, 2, 1],
        )[0]
        match what:
            case "register":
                consumer.register()
            case "listen":
                consumer.listen()
            case "attach":
                consumer.attach()
            case "let go":
                consumer.let_go()
            case "read":
                consumer.read()
            case "lead":
                await self.lead(self.coordinator, self.cache)
            case "wait":
                self.now += self.chances.choice([0.1, 1.0, 5.0, 31.0, 61.0])
            case "lose":
                consumer.disconnect()
            case "die":
                self.trace.append(f"{consumer.name} dies")
                consumer.disconnect()
                consumer.start_anew()
            case "layout":
                self.change_layout()
            case "fail over":
                self.fail_over()
            case "fan out":
                self.fans_out = not self.fans_out
            case "old" if self.former:
                await self.lead(*self.chances.choice(self.former), fresh=False)

    async def lead(self, coordinator: Coordinator, cache: ObjectCache, *, fresh: bool = True) -> float | None:
        """One turn of a leader; one that was deposed knows what it knew. Answers when it wants the next one."""
        if fresh or cache.get(self.key) is None:
            cache.observe(SUBSCRIPTIONS, copy.deepcopy(self.server.bodies[self.key]))
        topic = copy.deepcopy(self._topic)
        topic["metadata"]["resourceVersion"] = str(self.server.version + 1_000_000 + len(self.trace))
        topic["status"] = {
            "layout": to_record(self.cursors.layout),
            "subscriptions": [{"name": SUBSCRIPTION, "phase": self.phase}],
        }
        cache.observe(TOPICS, topic)
        try:
            return await coordinator.reconcile(self.key)
        except (StaleStatus, KubeError, BackendError):
            return None

    async def calm_down(self) -> None:
        """Nothing goes wrong any more: everything must come to rest, with every segment read."""
        self.server.is_calm = self.cursors.is_calm = True
        for coordinator, _ in self.former:
            coordinator.forget(self.key)
        for consumer in self.consumers:
            if consumer.is_final:
                consumer.start_anew()
        quiet = 0
        for _ in range(400):
            before = self.cursors.broker.attached, self.server.version
            self.now += 1.5
            for consumer in self.consumers:
                consumer.register()
                while consumer.frames:
                    consumer.listen()
                consumer.let_go()
                consumer.attach()
                consumer.read()
            await self.lead(self.coordinator, self.cache)
            quiet = quiet + 1 if before == (self.cursors.broker.attached, self.server.version) else 0
            # Longer than a grace period, and than the longest pause between two looks.
            if quiet * 1.5 > 2 * TIMES.grace_seconds:
                return

    def check_end(self) -> None:
        self.cursors.broker.check_all_read(self.cursors.layout.active)
        shares = sorted(len({part.segment_id for part in one.holds}) for one in self.consumers)
        assert shares[-1] - shares[0] <= 1, f"shares are {shares}"
        if any(one.shares and not one.holds for one in self.consumers):
            readers = {
                segment: self.cursors.broker.consumers_of(segment.segment_id) for segment in self.cursors.layout.active
            }
            old = {one.name for one in self.consumers if not one.shares}
            room = [one.segment_id for one, found in readers.items() if len(found) < one.buckets and not found & old]
            assert not room, f"somebody idles, and {room} have room"


def name_of(segment: Segment) -> str:
    return classic_segment_name(TOPIC, segment.hash_range, segment.segment_id)


def tell(seed: int, steps: int = 400) -> CoordinatedWorld:
    """One story. Raises AssertionError with the seed and what happened last."""
    world = CoordinatedWorld(seed)

    async def go_on() -> None:
        for _ in range(steps):
            await world.step()
        await world.calm_down()
        world.check_end()

    try:
        asyncio.run(go_on())
    except AssertionError as error:
        last = "\n".join(world.trace[-40:])
        raise AssertionError(f"seed {seed}: {error}\n{last}\nagain: make simulate STORY=consumers:{seed}") from error
    return world
