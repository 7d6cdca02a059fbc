"""A producer on a topic (pip-468, pip-475, docs/contract.md)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, Unpack, cast

import pulsar

from scalable_topics.layout import TopicName
from scalable_topics.sdk.batch_counts import BucketBatches, batches_of
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.errors import (
    ClosedError,
    QueueFullError,
    SendOutcomeUnknownError,
    SendTimeoutError,
)
from scalable_topics.sdk.lane_driver import LaneDriver
from scalable_topics.sdk.layout_follower import LayoutFollower
from scalable_topics.sdk.layout_message import LayoutMessage
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.options import ConnectionOptions, ProducerOptions
from scalable_topics.sdk.outgoing_message import MessageFields, OutgoingMessage
from scalable_topics.sdk.pending_sends import PendingSends
from scalable_topics.sdk.pulsar_binding import attach_refused
from scalable_topics.sdk.segment_connections import SegmentConnections
from scalable_topics.sdk.segment_lane import KEYLESS, NOT_HANDED_OVER, LaneKey, SegmentLane, Send
from scalable_topics.sdk.send_plan import SendPlan

_LOOK_EVERY = 32
"""Submits between two looks at the clock."""
_BURST_SECONDS = 0.004
_LEAST_MESSAGES_OF_A_BURST = 100
"""An application that submits less in that time does other things in between, in which outcomes can come in."""
_PAUSE_SECONDS = 0.003
"""Less than batches wait for company by default: a longer pause has them sent with a fifth of what they could hold,
which costs more than it saves."""
_MOST_MESSAGES_TO_PAUSE_FOR = 1000


class Producer:
    """Sends messages to a topic; made by `Client.producer`. Belongs to one event loop.

    Messages with equal keys are stored in the order of the calls, through every change of the layout, and nothing that
    was acknowledged is lost. Calls of one task, or of several that agree among themselves, have an order.
    """

    def __init__(
        self,
        topic: TopicName,
        *,
        follower: LayoutFollower,
        connections: SegmentConnections,
        connection: ConnectionOptions,
        options: ProducerOptions,
        schema: Any,
        threads: BlockingCalls,
        closed: Callable[[Producer], Awaitable[None]],
    ) -> None:
        self._topic = topic
        self._name = f"scalable-{uuid.uuid4().hex}"
        self._names_made = 0
        self._follower = follower
        self._options = options
        self._encode = schema.encode
        self._takes_bytes = type(schema) is pulsar.schema.BytesSchema
        self._loop = asyncio.get_running_loop()
        self._orders = 0
        self._burst_began_at, self._burst_first = self._loop.time(), 0
        self._is_closed = False
        self._tell_closed = closed
        self._pending = PendingSends(
            self._loop,
            max_messages=options.max_pending_messages,
            max_bytes=options.max_pending_bytes,
            admit=self._admit,
            expire=self._expire,
        )
        self._driver = LaneDriver(
            topic,
            SendPlan(per_bucket=options.batches, name_producer=self._make_name),
            connections=connections,
            connection=connection,
            options=options,
            schema=schema,
            threads=threads,
            tell=self._pending.tell,
            release=self._pending.release,
            finish=self._pending.finish,
            is_flushing=lambda: self._pending.is_flushing,
            # An ordinary topic may be migrated at this moment.
            refused=follower.look_now,
        )

    async def start(self) -> None:
        """Learn the layout and attach to its active segments; called by `Client.producer`.

        Raises:
            ScalableTopicNotFoundError: there is no such topic.
            ConnectError: a segment cannot be written to, with the reason.
        """
        await self._follower.first()
        if self._follower.latest is not None:
            self._driver.follow(self._follower.latest)
        self._follower.add_listener(self._follow)
        try:
            await self._driver.open_ahead()
        except pulsar.PulsarException as error:
            raise attach_refused("producer", self._topic, error) from None

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return str(self._topic)

    @property
    def topic_name(self) -> TopicName:
        """The same, parsed."""
        return self._topic

    @property
    def name(self) -> str:
        """What the names of its Pulsar producers begin with; unique for ever."""
        return self._name

    @property
    def lanes(self) -> tuple[SegmentLane, ...]:
        """What it sends through, for diagnosis."""
        return self._driver.lanes

    @property
    def batches(self) -> tuple[BucketBatches, ...]:
        """How its messages were put into entries, by segment and entry bucket, of the segments that it sends to now."""
        return tuple(batches_of(lane, self._options) for lane in sorted(self._driver.lanes, key=lambda lane: lane.key))

    @property
    def options(self) -> ProducerOptions:
        """Its settings."""
        return self._options

    @property
    def pending_messages(self) -> int:
        """Sends without an outcome, held ones included."""
        return self._pending.messages

    @property
    def pending_bytes(self) -> int:
        """Payload of the sends without an outcome."""
        return self._pending.bytes

    async def send(self, value: Any, **fields: Unpack[MessageFields]) -> MessageId:
        """Send a message and wait until it is stored.

        Args:
            value: what the schema encodes, bytes without one; None is a null value (a tombstone).
            fields: what else it carries, see `MessageFields`.

        Raises:
            SendError: it is not stored and will not be, being too big for instance.
            SendTimeoutError: no broker took it within the send timeout; it will not be stored.
            SendOutcomeUnknownError: whether it is stored could not be found out within the send timeout.
            ClosedError: the producer is closed, or was closed before the message was sent.
        """
        send = self.enqueue(self.encode(value), fields)
        try:
            return await send
        except asyncio.CancelledError:
            self._withdraw(send)
            raise

    async def submit(self, value: Any, **fields: Unpack[MessageFields]) -> OutgoingMessage:
        """Send a message without waiting for its outcome; waits only while the producer's bounds are reached, and in a
        tight loop every 4 ms for up to 3 ms, so that the outcomes of those before can come in.

        Arguments are those of `send`. Awaiting the answer answers or raises what `send` does.
        """
        send = self.enqueue(self.encode(value), fields)
        if send.order % _LOOK_EVERY == 0:
            await self._breathe(send.order)
        if not send.is_admitted and (admission := self._pending.admission(send)) is not None:
            try:
                await admission
            except asyncio.CancelledError:
                self._withdraw(send)
                raise
        return send

    def send_nowait(self, value: Any, **fields: Unpack[MessageFields]) -> OutgoingMessage:
        """Send a message without waiting for anything. Arguments and answer are those of `submit`.

        Raises:
            QueueFullError: the producer's bounds are reached.
        """
        return self.enqueue(self.encode(value), fields, wait=False)

    async def flush(self) -> None:
        """Send batches now, and wait until every message sent so far has an outcome, wherever it goes meanwhile."""
        self._driver.flush()
        await self._pending.flush()

    async def close(self, timeout_seconds: float = 30.0) -> None:
        """Take no more messages, wait for the outcomes of those taken, and detach.

        Args:
            timeout_seconds: how long to wait for outcomes, held messages included; 0 or more. What has none by then
                fails with `ClosedError`, or with `SendOutcomeUnknownError` if a broker may have it.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.flush()
        except TimeoutError:
            self._give_up()
        self._follower.remove_listener(self._follow)
        self._pending.close()
        await self._driver.close()
        await self._tell_closed(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def enqueue(self, data: bytes | None, fields: MessageFields, *, wait: bool = True) -> OutgoingMessage:
        """Take an encoded message, which is sent now or, with `wait`, once there is room for it.

        `data` is what `encode` made of the value. For faces over this one: `send`, `submit` and `send_nowait` say how
        to wait.
        """
        if self._is_closed:
            raise ClosedError(f"the producer on {self._topic} is closed")
        deadline = self._loop.time() + self._options.send_timeout_seconds
        send = OutgoingMessage(self._driver.completions, self._orders, deadline, data, **fields)
        if not wait and not self._pending.has_room(send.size_bytes):
            raise QueueFullError(f"{self._pending.messages} messages to {self._topic} have no outcome yet")
        self._orders += 1
        if self._pending.add(send):
            self._driver.submit(send)
        return send

    def encode(self, value: Any) -> bytes | None:
        """A value as the schema encodes it. May be called in any thread."""
        if value is None:
            return None
        # The schema of bytes would only check and return them.
        data: bytes = value if self._takes_bytes and type(value) is bytes else self._encode(value)
        return data

    async def _breathe(self, order: int) -> None:
        """Give other tasks a turn, and end a burst in which outcomes would soon begin to arrive.

        Sending costs half as much while none arrive: a thread of pulsar-client needs the interpreter for each, and
        takes it at each send.
        """
        if self._loop.time() - self._burst_began_at < _BURST_SECONDS:
            return
        if order - self._burst_first < _LEAST_MESSAGES_OF_A_BURST:
            await asyncio.sleep(0)
        else:
            await self._pending.pause(_PAUSE_SECONDS, most_messages=_MOST_MESSAGES_TO_PAUSE_FOR)
        self._burst_began_at, self._burst_first = self._loop.time(), order

    def _withdraw(self, send: OutgoingMessage) -> None:
        """Nobody waits for a send any more; it is forgotten if it has not been admitted."""
        if not send.is_admitted:
            self._pending.tell(send, ClosedError(f"a send to {self._topic} was cancelled"))

    def _admit(self, send: Send) -> None:
        self._driver.submit(cast("OutgoingMessage", send))

    def _follow(self, message: LayoutMessage) -> None:
        self._driver.follow(message)

    def _expire(self, send: Send) -> None:
        after = f"after {self._options.send_timeout_seconds:g} s"
        if send.sequence_id != NOT_HANDED_OVER:
            error = SendOutcomeUnknownError(f"{after} no broker had acknowledged the message to {self._topic}")
            self._pending.tell(send, error)
            return
        trouble = "" if self._driver.trouble is None else f" ({type(self._driver.trouble).__name__})"
        self._pending.tell(send, SendTimeoutError(f"{after} no broker had taken the message to {self._topic}{trouble}"))
        send.drop_payload()
        if send.is_admitted:
            self._pending.release(send)

    def _give_up(self) -> None:
        for send in self._pending.untold:
            if send.sequence_id == NOT_HANDED_OVER:
                self._pending.tell(send, ClosedError(f"the producer on {self._topic} was closed before it was sent"))
            else:
                error = f"the producer on {self._topic} was closed before a broker had acknowledged the message"
                self._pending.tell(send, SendOutcomeUnknownError(error))

    def _make_name(self, key: LaneKey) -> str:
        self._names_made += 1
        bucket = "keyless" if key.bucket == KEYLESS else str(key.bucket)
        return f"{self._name}-{key.segment_id}-{bucket}-{self._names_made}"
