"""How a stream consumer reads the segments it holds, and acknowledges over all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pulsar

from scalable_topics.layout import TopicName
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.deliveries import Deliveries, Place
from scalable_topics.sdk.drain_watch import DrainWatch, Finding
from scalable_topics.sdk.errors import ClientError, ConnectError
from scalable_topics.sdk.held_segments import HeldSegment, HeldSegments
from scalable_topics.sdk.inbox import Inbox
from scalable_topics.sdk.options import ConnectionOptions, StreamConsumerOptions
from scalable_topics.sdk.received_message import StreamMessage
from scalable_topics.sdk.segment_consumer import Listener, SegmentConsumer
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

    def detached(self, segment_id: int) -> None:
        """The consumer is attached to a segment no longer."""
        ...

    def drained(self, segment_id: int) -> None:
        """Everything in a sealed segment is acknowledged, as far as the consumer knows."""
        ...


class StreamReading:
    """Reads, in a subscription that nobody shares, what a session assigns. Belongs to one event loop.

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
        self._has_attached = False
        self._refusals: set[tuple[int, str]] = set()
        self.inbox: Inbox[StreamMessage] = Inbox(self._deliver, check)
        self.held = HeldSegments(
            self, receiver_queue_size=options.receiver_queue_size, handover_seconds=options.handover_seconds
        )

    def acknowledge(self, message: StreamMessage) -> None:
        """Acknowledge a message and everything delivered before it. Raises ClientError if it is another consumer's."""
        if message.delivered_by is not self._deliveries:
            raise ClientError(f"{message!r} was not received by this consumer on {self._topic}")
        for consumer, position in self._deliveries.acknowledge(message.number).items():
            self._acknowledge(consumer, position)

    def acknowledge_to(self, places: Mapping[int, Place]) -> None:
        """Acknowledge segments up to places; those that are not held are left alone."""
        for held in self.held.every:
            place = places.get(held.segment.segment_id)
            position = None if place is None else self._deliveries.acknowledge_to(held.consumer, place)
            if position is not None:
                self._acknowledge(held.consumer, position)

    def places(self) -> dict[int, Place]:
        """Up to where each segment has been delivered; where nothing of it was, up to where the group had committed it
        before. Segments of which not even that is known are left out. Those that are about to be given back are among
        them: what was received of them last could not be committed else.
        """
        delivered = self._deliveries.places()
        found = {
            held.segment.segment_id: delivered[held.consumer] or held.segment.start or ()
            for held in self.held.every
            if held.consumer in delivered
        }
        return {segment_id: place for segment_id, place in found.items() if place}

    def look(self) -> None:
        """See whether sealed segments are drained; to be called about every second."""
        for held in self.held:
            self._look(held)

    def open(self, segment: AssignedSegment, prefetch: int) -> SegmentConsumer:
        """Begin to read a segment."""

        def subscribe(client: pulsar.Client, schema: Any, receiver_queue_size: int, listener: Listener) -> Any:
            return self._options.subscribe(
                client,
                segment.topic,
                self._subscription,
                consumer_name=self._consumer_name,
                receiver_queue_size=receiver_queue_size,
                schema=schema,
                listener=listener,
                beside_others=segment.is_ordinary,
                from_latest=segment.from_latest,
            )

        consumer = SegmentConsumer(
            segment.segment_id,
            subscribe,
            prefetch=prefetch,
            is_cumulative=True,
            connection=self._connection,
            schema=self._schema,
            threads=self._threads,
            arrivals=self.inbox.arrivals,
        )
        self._deliveries.hold(consumer)
        consumer.keep_attaching(lambda error: self._refused(segment, error))
        return consumer

    def updated(self, held: HeldSegment) -> None:
        """It may have been sealed where the application is already."""
        self._look(held)

    def is_settled(self, consumer: SegmentConsumer) -> bool:
        """Whether everything delivered of a segment is acknowledged."""
        return self._deliveries.is_settled(consumer)

    def detaching(self, consumer: SegmentConsumer) -> None:
        """Nothing of a segment can be acknowledged any more."""
        self._deliveries.give_back(consumer)
        self._drains.forget(consumer.segment_id)

    def detached(self, segment_id: int) -> None:
        """Tell the leader."""
        self._session.detached(segment_id)

    def _acknowledge(self, consumer: SegmentConsumer, position: Any) -> None:
        consumer.acknowledge(position)
        self.held.acknowledged(consumer)
        held = self.held.find(consumer.segment_id)
        if held is not None:
            self._look(held)

    def _deliver(self, consumer: SegmentConsumer, message: pulsar.Message) -> StreamMessage | None:
        self._has_attached = True
        position = message.message_id()
        place = (position.ledger_id(), position.entry_id(), position.batch_index())
        number = self._deliveries.deliver(consumer, place, position)
        return None if number is None else StreamMessage(message, consumer.segment_id, number, self._deliveries)

    def _refused(self, segment: AssignedSegment, error: pulsar.PulsarException) -> None:
        name = type(error).__name__
        self._has_attached = self._has_attached or any(held.consumer.is_connected for held in self.held)
        if isinstance(error, _PERMANENT) and not self._has_attached:
            self._tell_failed(ConnectError(f"cannot attach to segment {segment.segment_id} of {self._topic}: {name}"))
        elif not isinstance(error, pulsar.ConsumerBusy) and (segment.segment_id, name) not in self._refusals:
            self._refusals.add((segment.segment_id, name))
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
            segment.segment_id,
            arrived=consumer.arrived,
            is_settled=not consumer.waiting and self._deliveries.is_settled(consumer),
            is_at_end=segment.end is not None and place[:2] >= segment.end,
            now=self._loop.time(),
        )
        if finding is Finding.DRAINED:
            # The leader looks as soon as it hears of it.
            self._loop.call_later(_ACKNOWLEDGED_SECONDS, self._session.drained, segment.segment_id)
        elif finding is Finding.DOUBTFUL:
            consumer.attach_anew()
