"""How a stream consumer reads the segments and entry buckets it holds, and acknowledges over all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pulsar

from scalable_topics.layout import Part, TopicName, equal_splits, ranges_of
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.bucket_floors import BucketFloors
from scalable_topics.sdk.deliveries import Deliveries, Place
from scalable_topics.sdk.drain_watch import DrainWatch, Finding
from scalable_topics.sdk.errors import ClientError, ConnectError
from scalable_topics.sdk.held_segments import HeldSegment, HeldSegments
from scalable_topics.sdk.inbox import Inbox
from scalable_topics.sdk.options import ConnectionOptions, StreamConsumerOptions
from scalable_topics.sdk.received_message import StreamMessage
from scalable_topics.sdk.segment_consumer import Listener, SegmentConsumer, is_busy
from scalable_topics.sdk.session_frames import AssignedSegment

logger = logging.getLogger(__name__)

# pulsar-client sends acknowledgements within 100 ms.
_ACKNOWLEDGED_SECONDS = 0.15
# Trying again does not mend these.
_PERMANENT = (
    pulsar.AuthenticationError,
    pulsar.AuthorizationError,
    pulsar.IncompatibleSchema,
    pulsar.InvalidConfiguration,
)


class Session(Protocol):
    """What assigns the segments, as those who read them see it."""

    @property
    def is_registered(self) -> bool:
        """Whether a leader can be told something at this moment."""
        ...

    def detached(self, part: Part) -> None:
        """The consumer is attached to a segment, or to an entry bucket, no longer."""
        ...

    def drained(self, part: Part) -> None:
        """Everything in a part of a sealed segment is acknowledged, as far as the consumer knows."""
        ...


class StreamReading:
    """Reads what a session assigns: segments that nobody else of the subscription reads, and entry buckets of those
    that others read, too. Belongs to one event loop.

    Args:
        topic: the scalable topic.
        subscription: name of the subscription.
        consumer_name: name of the consumer within it.
        session: is told what is detached from and what is drained.
        connection: how Pulsar is reached.
        options: of the consumer.
        schema: of the consumer.
        threads: for blocking calls.
        check: raises what calls of the application are to raise once the consumer is of no use any more.
        failed: called if nothing can be attached to, with the error for the application.
        changed: called when other segments are held than before.

    Attributes:
        held: what it holds.
        inbox: what has arrived for the application.
    """

    def __init__(
        self,
        topic: TopicName,
        subscription: str,
        consumer_name: str,
        *,
        session: Session,
        connection: ConnectionOptions,
        options: StreamConsumerOptions,
        schema: Any,
        threads: BlockingCalls,
        check: Callable[[], None],
        failed: Callable[[ClientError], None],
        changed: Callable[[], None],
    ) -> None:
        self._topic = topic
        self._subscription = subscription
        self._consumer_name = consumer_name
        self._session = session
        self._connection = connection
        self._options = options
        self._schema = schema
        self._threads = threads
        self._tell_failed = failed
        self.changed = changed
        self._loop = asyncio.get_running_loop()
        self._deliveries: Deliveries[SegmentConsumer] = Deliveries()
        self._drains = DrainWatch()
        self._floors: dict[SegmentConsumer, BucketFloors] = {}
        self._has_attached = False
        self._refusals: set[tuple[Part, str]] = set()
        self.inbox: Inbox[StreamMessage] = Inbox(self._deliver, check)
        self.held = HeldSegments(
            self, receiver_queue_size=options.receiver_queue_size, handover_seconds=options.handover_seconds
        )

    def acknowledge(self, message: StreamMessage) -> None:
        """Acknowledge a message and everything delivered before it. Raises ClientError if it is another consumer's."""
        if message.delivered_by is not self._deliveries:
            raise ClientError(f"{message!r} was not received by this consumer on {self._topic}")
        for consumer, positions in self._deliveries.acknowledge(message.number).items():
            self._acknowledge(consumer, positions)

    def acknowledge_to(self, places: Mapping[Part, Place]) -> None:
        """Acknowledge what is held up to places: those of the segment as a whole and of its buckets."""
        for held in self.held.every:
            positions = self._deliveries.acknowledge_to(held.consumer, _reached(held.segment, places))
            if positions:
                self._acknowledge(held.consumer, positions)

    def places(self) -> dict[Part, Place]:
        """Up to where each part has been delivered; where nothing of it was, up to where the group had committed it
        before. Parts of which not even that is known are left out. Those that are about to be given back are among
        them: what was received of them last could not be committed else.

        A segment that is read whole while the group has more of some buckets, from before, has their places, too.
        """
        delivered = self._deliveries.places()
        found: dict[Part, Place] = {}
        for held in self.held.every:
            if held.consumer not in delivered:
                continue
            segment, floors = held.segment, self._floors[held.consumer].by_bucket
            place = max(delivered[held.consumer], segment.start or (), floors.get(segment.bucket, ()))
            if place:
                found[segment.part] = place
            if not segment.is_shared:
                ahead = {bucket: floor for bucket, floor in floors.items() if floor > place}
                found |= {Part(segment.segment_id, bucket): floor for bucket, floor in ahead.items()}
        return found

    def watch(self) -> None:
        """See whether brokers serve what is held; to be called some times a second."""
        for held in self.held.every:
            held.consumer.watch()

    def look(self) -> None:
        """See whether sealed segments are drained; to be called about every second."""
        for held in self.held:
            self._look(held)

    def open(self, segment: AssignedSegment, prefetch: int) -> SegmentConsumer:
        """Begin to read a segment, or a bucket of it."""

        bucket = ranges_of(equal_splits(segment.bucket_count))[segment.bucket] if segment.is_shared else None

        def subscribe(client: pulsar.Client, schema: Any, receiver_queue_size: int, listener: Listener) -> Any:
            return self._options.subscribe(
                client,
                segment.topic,
                self._subscription,
                consumer_name=self._consumer_name,
                receiver_queue_size=receiver_queue_size,
                schema=schema,
                listener=listener,
                bucket=bucket,
                beside_others=segment.is_ordinary,
                from_latest=segment.from_latest,
            )

        consumer = SegmentConsumer(
            segment.part,
            subscribe,
            prefetch=prefetch,
            is_cumulative=not segment.is_shared,
            connection=self._connection,
            schema=self._schema,
            threads=self._threads,
            arrivals=self.inbox.arrivals,
        )
        self._deliveries.hold(consumer, one_by_one=segment.is_shared)
        self._floors[consumer] = BucketFloors(segment)
        consumer.keep_attaching(lambda error: self._refused(segment, error))
        return consumer

    def updated(self, held: HeldSegment) -> None:
        """It may have been sealed where the application is already."""
        self._look(held)

    def is_settled(self, consumer: SegmentConsumer) -> bool:
        """Whether everything delivered of a part is acknowledged."""
        return self._deliveries.is_settled(consumer)

    def detaching(self, consumer: SegmentConsumer) -> None:
        """Nothing of a part can be acknowledged any more."""
        self._deliveries.give_back(consumer)
        self._drains.forget(consumer.part)
        del self._floors[consumer]

    def detached(self, part: Part) -> None:
        """Tell the leader."""
        self._session.detached(part)

    def _acknowledge(self, consumer: SegmentConsumer, positions: list[Any]) -> None:
        for position in positions:
            consumer.acknowledge(position)
        self.held.acknowledged(consumer)
        held = self.held.find(consumer.part)
        if held is not None:
            self._look(held)

    def _deliver(self, consumer: SegmentConsumer, message: pulsar.Message) -> StreamMessage | None:
        self._has_attached = True
        position = message.message_id()
        place = (position.ledger_id(), position.entry_id(), position.batch_index())
        if consumer in self._floors and self._floors[consumer].covers(place, message):
            self._acknowledge(consumer, self._deliveries.skip(consumer, place, position))
            return None
        number = self._deliveries.deliver(consumer, place, position)
        if number is None:
            self._acknowledge(consumer, self._deliveries.again(consumer, place, position))
            return None
        return StreamMessage(message, consumer.part, number, self._deliveries)

    def _refused(self, segment: AssignedSegment, error: pulsar.PulsarException) -> None:
        name = type(error).__name__
        self._has_attached = self._has_attached or any(held.consumer.is_connected for held in self.held)
        if isinstance(error, _PERMANENT) and not self._has_attached:
            self._tell_failed(ConnectError(f"cannot attach to segment {segment.segment_id} of {self._topic}: {name}"))
        elif not is_busy(error) and (segment.part, name) not in self._refusals:
            self._refusals.add((segment.part, name))
            logger.warning(
                "consumer %r cannot attach to segment %d of %s and goes on trying: %s",
                self._consumer_name,
                segment.segment_id,
                self._topic,
                name,
            )

    def _look(self, held: HeldSegment) -> None:
        segment, consumer = held.segment, held.consumer
        if not (segment.is_sealed and self._session.is_registered and consumer.is_connected):
            return
        place = self._deliveries.last_place(consumer)
        finding = self._drains.look(
            segment.part,
            arrived=consumer.arrived,
            is_settled=not consumer.waiting and self._deliveries.is_settled(consumer),
            is_at_end=segment.end is not None and place[:2] >= segment.end,
            now=self._loop.time(),
        )
        if finding is Finding.DRAINED:
            # The leader looks as soon as it hears of it.
            self._loop.call_later(_ACKNOWLEDGED_SECONDS, self._session.drained, segment.part)
        elif finding is Finding.DOUBTFUL:
            consumer.attach_anew()


def _reached(segment: AssignedSegment, places: Mapping[Part, Place]) -> Place:
    """Up to where a part is reached; empty if nothing is said of it."""
    whole = places.get(Part(segment.segment_id), ())
    if segment.is_shared:
        return max(whole, places.get(segment.part, ()))
    # What is read whole is acknowledged as one.
    buckets = [places.get(Part(segment.segment_id, bucket), ()) for bucket in range(segment.bucket_count)]
    return max(whole, min(buckets))
