"""Segments, brokers and a leader in memory: everything around a `SendPlan`, under a test's control."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import (
    Segment,
    SegmentChange,
    SegmentLayout,
    TopicName,
    classic_segment_name,
    synthetic_layout,
)
from scalable_topics.sdk.effects import (
    CloseProducer,
    FlushProducer,
    Forgotten,
    HandOver,
    OpenProducer,
    Outcome,
    ReadTail,
    RetryLater,
    Stored,
    Undecidable,
)
from scalable_topics.sdk.layout_message import Announcement, FollowedSegment, LayoutMessage, Routing
from scalable_topics.sdk.segment_lane import SegmentLane, Send
from scalable_topics.sdk.send_plan import SendPlan
from tests.support.planned_migration import PlannedMigration, plan_migration

TOPIC = TopicName.parse("tests/sdk/orders")
HOLD_SECONDS = 10.0


@dataclass(slots=True)
class Attempt:
    """A send in the hands of a producer."""

    send: Send
    number: int
    sequence_id: int


@dataclass(slots=True, eq=False)
class SimulatedProducer:
    """A producer of pulsar-client: what it has not stored yet, and what is stored and not acknowledged."""

    name: str
    topic: str
    pending: deque[Attempt] = field(default_factory=deque)
    unacknowledged: deque[Attempt] = field(default_factory=deque)
    is_attached: bool = True

    @property
    def holds(self) -> list[Attempt]:
        """Everything it has no acknowledgement of, in order."""
        return [*self.unacknowledged, *self.pending]


@dataclass(slots=True)
class SimulatedSegment:
    """What a segment stores, in order, and whether it is terminated."""

    log: list[tuple[str, int, Send]] = field(default_factory=list)
    is_terminated: bool = False


class SimulatedSegments:
    """All of it, for one producer object.

    Args:
        segments: how many the topic starts with.
        bucket_budget: entry buckets of all of them.
        per_bucket: whether the producer batches.
        partitions: the topic is an ordinary one with so many, 0 where it is not partitioned; None for a scalable one.
    """

    def __init__(
        self, *, segments: int = 1, bucket_budget: int = 1, per_bucket: bool = True, partitions: int | None = None
    ) -> None:
        if partitions is None:
            self.layout = SegmentLayout.initial(segments, bucket_budget=bucket_budget)
        else:
            self.layout = synthetic_layout(TOPIC, partitions)
        self.change: SegmentChange | PlannedMigration | None = None
        self.called_off = 0
        self._partitions = partitions
        self._bucket_budget = bucket_budget
        self.is_announced = False
        self.now = 0.0
        self.step = 0
        self.stored: dict[str, SimulatedSegment] = {}
        self.producers: list[SimulatedProducer] = []
        self.opening: list[OpenProducer] = []
        self.tails: list[ReadTail] = []
        self.resting: list[SegmentLane] = []
        self.settled: dict[int, dict[str, int]] = {}
        self.undecidable: list[Send] = []
        self.flushed: list[FlushProducer] = []
        self.told: list[Send] = []
        self.sends: list[Send] = []
        self.names: list[str] = []
        self.on_hand_over: Callable[[str, int], None] | None = None
        self.plan = SendPlan(per_bucket=per_bucket, name_producer=self._name)
        self.publish()

    # The application

    def send(self, hash_value: int | None, *, travels_alone: bool = False) -> Send:
        """Send a message."""
        send = Send(len(self.sends), hash_value, travels_alone=travels_alone)
        self.sends.append(send)
        lane = self.plan.submit(send)
        if lane is not None:
            self._hand(lane, send)
        self.act()
        return send

    # The leader

    def plan_migration(self) -> None:
        """Begin to migrate the ordinary topic."""
        assert self._partitions is not None
        self.plan_change(
            plan_migration(TOPIC, self._partitions, bucket_budget=self._bucket_budget, attempts_before=self.called_off)
        )

    def publish(self, announced: bool = False) -> None:
        """Publish the layout, and the change under way if it is announced. That of an ordinary topic is what the client
        finds itself, unless its migration is announced.
        """
        self.step += 1
        is_found = self.layout.is_synthetic and not announced
        incarnation = f"found.{self.called_off}" if is_found else "uid.0"
        routing = Routing.MODULO if self.layout.is_synthetic else Routing.RANGES
        announcement = None
        if announced and self.change is not None:
            children = tuple(
                self._followed(Segment(c.segment_id, c.hash_range, buckets=c.buckets)) for c in self.change.children
            )
            announcement = Announcement("operation", self.change.parent_ids, children, HOLD_SECONDS)
        segments = {segment_id: self._followed(segment) for segment_id, segment in self.layout.segments.items()}
        settled = {segment_id: dict(names) for segment_id, names in self.settled.items() if segment_id in segments}
        message = LayoutMessage(
            str(TOPIC), incarnation, self.layout.epoch, self.step, 1, segments, announcement, settled, routing
        )
        assert message.supersedes(self.plan.layout)
        self.plan.follow(message, self.now)
        self.act()

    def plan_change(self, change: SegmentChange | PlannedMigration) -> None:
        """Begin a change."""
        self.change = change
        if isinstance(change, SegmentChange):
            self.layout = self.layout.reserve(change)

    def announce(self) -> None:
        """Announce the change."""
        self.is_announced = True
        self.publish(announced=True)

    def call_off(self) -> None:
        """Give the change up."""
        self.change, self.is_announced = None, False
        self.called_off += 1
        self.publish()

    def terminate(self, segment_id: int) -> None:
        """Terminate a segment; those attached to it learn of it by and by."""
        self._segment(segment_id).is_terminated = True

    def is_terminated(self, segment_id: int) -> bool:
        """Whether a segment is terminated."""
        return self._segment(segment_id).is_terminated

    def commit(self, *, settle: bool) -> None:
        """Commit the change and publish the layout, with or without the truth about producers still attached."""
        assert self.change is not None
        for segment_id in self.change.parent_ids:
            self.terminate(segment_id)
            topic = self._topic(self.layout.segment(segment_id))
            if settle:
                self.settled[segment_id] = {
                    producer.name: self.last_stored(topic, producer.name)
                    for producer in self.producers
                    if producer.topic == topic and producer.is_attached
                }
        if isinstance(self.change, PlannedMigration):
            self.layout = self.change.after
        else:
            self.layout = self.layout.apply(self.change, now_ms=0)
        self.change, self.is_announced = None, False
        self.publish()

    # The brokers and pulsar-client

    def open_next(self, *, fails: bool = False) -> None:
        """The oldest request for a producer is answered."""
        request = self.opening.pop(0)
        lane = request.lane
        segment = self.stored.setdefault(lane.segment.topic, SimulatedSegment())
        if segment.is_terminated or fails:
            self.plan.producer_failed(lane, request.generation, terminated=segment.is_terminated)
        else:
            producer = SimulatedProducer(lane.producer_name, lane.segment.topic)
            self.producers.append(producer)
            self.plan.producer_opened(lane, request.generation, producer)
        self.act()

    def store(self, producer: SimulatedProducer) -> None:
        """The segment stores the producer's oldest pending message, unless it is terminated."""
        segment = self.stored[producer.topic]
        if producer.pending and producer.is_attached and not segment.is_terminated:
            attempt = producer.pending.popleft()
            segment.log.append((producer.name, attempt.sequence_id, attempt.send))
            producer.unacknowledged.append(attempt)

    def acknowledge(self, producer: SimulatedProducer) -> None:
        """The producer hears of its oldest stored message."""
        if producer.unacknowledged:
            attempt = producer.unacknowledged.popleft()
            self.told += self._told(self.plan.acknowledged([(attempt.send, attempt.number, "position")]))
            self.act()

    def refuse(self, producer: SimulatedProducer, *, leave_last: bool = False) -> None:
        """The producer learns that the topic is terminated: it fails all it holds, stored or not.

        pulsar-client may forget the callback of a send that comes at that moment: `leave_last`.
        """
        if not self.stored[producer.topic].is_terminated:
            return
        producer.is_attached = False
        failed = producer.holds[: -1 if leave_last else None]
        producer.pending.clear()
        producer.unacknowledged.clear()
        self._fail(failed, Outcome.REFUSED)

    def break_producer(self, producer: SimulatedProducer) -> None:
        """The producer fails for good, with all it holds, stored or not."""
        producer.is_attached = False
        failed = producer.holds
        producer.pending.clear()
        producer.unacknowledged.clear()
        self._fail(failed, Outcome.UNKNOWN)

    def reject(self, producer: SimulatedProducer) -> None:
        """The producer's newest pending message is too big."""
        if producer.pending:
            attempt = producer.pending.pop()
            if self.plan.send_failed(attempt.send, attempt.number, Outcome.REJECTED):
                self.told += self._told([attempt.send])
                attempt.send.error = ValueError("too big")
            self.act()

    def read_tail(self, *, fails: bool = False) -> None:
        """The oldest question about a tail is answered."""
        question = self.tails.pop(0)
        lane = question.lane
        last = None if fails else self.last_stored(lane.segment.topic, lane.producer_name)
        self.plan.tail_read(lane, question.inquiry, last)
        self.act()

    def rest_is_over(self) -> None:
        """The oldest delay before another attempt is over."""
        self.plan.retry(self.resting.pop(0))
        self.act()

    def pass_time(self, seconds: float) -> None:
        """The clock moves."""
        self.now += seconds
        self.plan.on_time(self.now)
        self.act()

    def settle_down(self) -> None:
        """Everything that is under way ends well; a leader finishes what it has begun."""
        if self.change is not None:
            self.commit(settle=True)
        for _ in range(100_000):
            busy = [producer for producer in self.producers if producer.holds]
            if self.opening:
                self.open_next()
            elif self.tails:
                self.read_tail()
            elif self.resting:
                self.rest_is_over()
            elif busy:
                for producer in busy:
                    if self.stored[producer.topic].is_terminated:
                        self.refuse(producer)
                    elif not producer.is_attached:
                        self.break_producer(producer)
                    else:
                        self.store(producer)
                        self.acknowledge(producer)
            else:
                return
        raise AssertionError(f"no end of it: {self.plan.lanes}")

    def last_stored(self, topic: str, name: str) -> int:
        """The last sequence id stored under a name."""
        return max((number for who, number, _ in self.stored[topic].log if who == name), default=-1)

    def logs(self) -> list[list[tuple[str, int, Send]]]:
        """What the segments store, parents before children."""
        by_id = {self._topic(segment): segment_id for segment_id, segment in self.layout.segments.items()}
        return [self.stored[topic].log for topic in sorted(self.stored, key=lambda topic: by_id.get(topic, 1 << 30))]

    def act(self) -> None:
        """Carry out what the plan wants."""
        while effects := self.plan.take_effects():
            for effect in effects:
                match effect:
                    case OpenProducer():
                        self.opening.append(effect)
                    case ReadTail():
                        self.tails.append(effect)
                    case RetryLater(lane):
                        self.resting.append(lane)
                    case HandOver(lane):
                        if lane.may_take:
                            for send in lane.take(1000):
                                self._hand(lane, send)
                    case CloseProducer(_, producer):
                        self._detach(producer)
                    case Stored(send):
                        self.told += self._told([send])
                    case Undecidable(send):
                        self.undecidable.append(send)
                        self.told += self._told([send])
                    case FlushProducer():
                        self.flushed.append(effect)
                    case Forgotten():
                        pass

    def _hand(self, lane: SegmentLane, send: Send) -> None:
        producer: SimulatedProducer = lane.producer
        assert producer.name == lane.producer_name
        if self.on_hand_over is not None:
            self.on_hand_over(producer.topic, send.order)
        producer.pending.append(Attempt(send, send.attempt, send.sequence_id))

    def _detach(self, producer: SimulatedProducer) -> None:
        """What a closed producer still holds fails; what was on its way to the broker is lost."""
        if producer.is_attached:
            self.break_producer(producer)

    def _fail(self, attempts: list[Attempt], outcome: Outcome) -> None:
        for attempt in attempts:
            self.plan.send_failed(attempt.send, attempt.number, outcome)
        self.act()

    @staticmethod
    def _told(sends: list[Send]) -> list[Send]:
        fresh = [send for send in sends if not send.is_told]
        for send in fresh:
            send.is_told = True
        return fresh

    def _segment(self, segment_id: int) -> SimulatedSegment:
        return self.stored.setdefault(self._topic(self.layout.segment(segment_id)), SimulatedSegment())

    def _name(self, key: Any) -> str:
        self.names.append(f"p-{key.segment_id}-{key.bucket}-{len(self.names)}")
        return self.names[-1]

    def _topic(self, segment: Segment) -> str:
        return segment.topic or classic_segment_name(TOPIC, segment.hash_range, segment.segment_id)

    def _followed(self, segment: Segment) -> FollowedSegment:
        return FollowedSegment(
            segment.segment_id,
            segment.hash_range,
            self._topic(segment),
            segment.buckets,
            segment.state,
            segment.parent_ids,
        )
