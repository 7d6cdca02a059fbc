"""A queue consumer on a topic (pip-468, pip-475, docs/contract.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self

import pulsar

from scalable_topics.layout import Part, TopicName
from scalable_topics.sdk.attachments import Attach, Attachments, Detach
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.errors import ClientError, ClosedError
from scalable_topics.sdk.inbox import Inbox
from scalable_topics.sdk.layout_follower import LayoutFollower
from scalable_topics.sdk.layout_message import FollowedSegment, LayoutMessage
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.options import ConnectionOptions, QueueConsumerOptions
from scalable_topics.sdk.pulsar_binding import attach_refused
from scalable_topics.sdk.received_message import ReceivedMessage
from scalable_topics.sdk.segment_consumer import Listener, SegmentConsumer, Subscribe


class QueueConsumer:
    """Receives the messages of a subscription, shared with its other consumers and in no particular order; made by
    `Client.queue_consumer`. Belongs to one event loop.

    It is attached to every segment of the layout, sealed ones included, until the subscription is through with them.
    """

    def __init__(
        self,
        topic: TopicName,
        subscription: str,
        *,
        follower: LayoutFollower,
        connection: ConnectionOptions,
        options: QueueConsumerOptions,
        schema: Any,
        threads: BlockingCalls,
        closed: Callable[[QueueConsumer], Awaitable[None]],
    ) -> None:
        self._topic = topic
        self._subscription = subscription
        self._follower = follower
        self._connection = connection
        self._options = options
        self._schema = schema
        self._threads = threads
        self._tell_closed = closed
        self._attachments = Attachments(
            options.receiver_queue_size, from_earliest=options.initial_position == pulsar.InitialPosition.Earliest
        )
        self._consumers: dict[int, SegmentConsumer] = {}
        self._inbox: Inbox[ReceivedMessage] = Inbox(_received, self._check_open)
        self._detaching: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def start(self) -> None:
        """Learn the layout and attach to its segments; called by `Client.queue_consumer`.

        Raises:
            ScalableTopicNotFoundError: there is no such topic.
            ConnectError: a segment cannot be read, with the reason.
        """
        await self._follower.first()
        latest = self._follower.latest
        assert latest is not None
        self._follow(latest, in_background=False)
        self._follower.add_listener(self._follow)
        segments = latest.segments
        try:
            await asyncio.gather(
                *(self._attach_first(segments[key], consumer) for key, consumer in self._consumers.items())
            )
        except pulsar.PulsarException as error:
            raise attach_refused("consumer", self._topic, error) from None

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return str(self._topic)

    @property
    def topic_name(self) -> TopicName:
        """The same, parsed."""
        return self._topic

    @property
    def subscription(self) -> str:
        """Name of the subscription."""
        return self._subscription

    @property
    def dead_letter_topic(self) -> str:
        """Full name of the topic for messages given up on: named by the scalable topic unless the policy names it."""
        policy = self._options.dead_letter_policy
        return (policy and policy.topic) or f"{self._topic.persistent}-{self._subscription}-DLQ"

    @property
    def segment_ids(self) -> tuple[int, ...]:
        """The segments it is attached to or about to be."""
        return tuple(sorted(self._consumers))

    @property
    def waiting_messages(self) -> int:
        """Messages that wait here for the application, beside those that wait in pulsar-client."""
        return sum(consumer.waiting for consumer in self._consumers.values())

    async def receive(self, timeout_seconds: float | None = None) -> ReceivedMessage:
        """The next message.

        Args:
            timeout_seconds: how long to wait; None for as long as it takes.

        Raises:
            TimeoutError: there was none in time.
            ClosedError: the consumer is closed.
        """
        return await self._inbox.receive(timeout_seconds)

    async def receive_many(self, most: int, timeout_seconds: float | None = None) -> list[ReceivedMessage]:
        """The next messages: as many as are there, at least one and at most `most`.

        Arguments and errors are those of `receive`; `most` is 1 or more.
        """
        return await self._inbox.receive_many(most, timeout_seconds)

    async def acknowledge(self, message: ReceivedMessage | MessageId) -> None:
        """Say that a message is done with. It is sent to the broker with others, within 100 ms or at close; without a
        connection, once there is one.

        Args:
            message: a message received by this consumer, or its id.

        Raises:
            ClientError: the id was deserialised and is one of a batch, which pulsar-client cannot acknowledge singly.
            ClosedError: the consumer is closed.
        """
        consumer, position = self._find(message)
        if consumer is not None:
            consumer.acknowledge(position)

    async def acknowledge_many(self, messages: Iterable[ReceivedMessage | MessageId]) -> None:
        """Acknowledge several messages. Errors are those of `acknowledge`."""
        for message in messages:
            await self.acknowledge(message)

    async def negative_acknowledge(self, message: ReceivedMessage | MessageId) -> None:
        """Have a message delivered again, to any consumer, after the delay of the options, or given up on.

        Arguments and errors are those of `acknowledge`.
        """
        consumer, position = self._find(message)
        if consumer is not None:
            consumer.negative_acknowledge(position)

    async def close(self) -> None:
        """Detach from all segments; what was not acknowledged goes to other consumers of the subscription.

        Takes as long as brokers take to detach, at most the operation timeout, and 5 seconds at most for a connection
        to send acknowledgements by.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._follower.remove_listener(self._follow)
        self._inbox.wake_all()
        await asyncio.gather(*(consumer.close() for consumer in self._consumers.values()), *self._detaching)
        self._consumers.clear()
        self._inbox.clear()
        await self._tell_closed(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _follow(self, message: LayoutMessage, *, in_background: bool = True) -> None:
        for change in self._attachments.follow(message):
            match change:
                case Detach(segment_id):
                    task = asyncio.get_running_loop().create_task(self._consumers.pop(segment_id).close())
                    self._detaching.add(task)
                    task.add_done_callback(self._detaching.discard)
                case Attach(segment):
                    consumer = self._consumers[segment.segment_id] = SegmentConsumer(
                        Part(segment.segment_id),
                        self._subscribing(change),
                        prefetch=change.prefetch,
                        is_cumulative=False,
                        connection=self._connection,
                        schema=self._schema,
                        threads=self._threads,
                        arrivals=self._inbox.arrivals,
                    )
                    if in_background:
                        consumer.keep_attaching()

    def _subscribing(self, attach: Attach) -> Subscribe:
        def subscribe(client: pulsar.Client, schema: Any, receiver_queue_size: int, listener: Listener) -> Any:
            return self._options.subscribe(
                client,
                attach.segment.topic,
                self._subscription,
                dead_letter_topic=self.dead_letter_topic,
                from_earliest=attach.from_earliest,
                receiver_queue_size=receiver_queue_size,
                schema=schema,
                listener=listener,
            )

        return subscribe

    async def _attach_first(self, segment: FollowedSegment, consumer: SegmentConsumer) -> None:
        try:
            await consumer.attach()
        except pulsar.TopicNotFound:
            if segment.is_active:
                raise
            # It has been pruned since the layout was published; the next layout says so.
            consumer.keep_attaching()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError(f"the consumer on {self._topic} is closed")

    def _find(self, message: ReceivedMessage | MessageId) -> tuple[SegmentConsumer | None, Any]:
        self._check_open()
        message_id = message.message_id if isinstance(message, ReceivedMessage) else message
        if message_id.position is None:
            raise ClientError(f"{message_id!r} does not say where the message is stored")
        if message_id.is_deserialized and message_id.batch_index >= 0:
            raise ClientError(f"{message_id!r} is one of a batch; acknowledge it with the message received")
        # A segment that is gone from the layout is acknowledged to its end: there is nothing left to do.
        return self._consumers.get(message_id.segment_id), message_id.position


def _received(consumer: SegmentConsumer, message: pulsar.Message) -> ReceivedMessage:
    return ReceivedMessage(message, consumer.segment_id)
