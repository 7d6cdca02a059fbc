"""The consumer of one segment of a queue consumer."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import random
import threading
from typing import Any

import pulsar

from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.attachments import Attach
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.options import ConnectionOptions, QueueConsumerOptions
from scalable_topics.sdk.pulsar_binding import close_client, close_consumer

_LEAST_PAUSE_SECONDS = 0.2
_MOST_PAUSE_SECONDS = 15.0
_RECONNECT_LOOK_SECONDS = 0.1
# pulsar-client still drops acknowledgements that it gets while it attaches anew.
_CONNECTED_LOOKS = 3

Received = tuple["SegmentConsumer", pulsar.Message]


class SegmentConsumer:
    """Attached to one segment, in a Shared subscription, through connections of its own.

    Once the subscription is through with a sealed segment, brokers say so in a way that makes pulsar-client drop its
    connection; the unacknowledged messages of other consumers on it would be delivered again.

    Args:
        attach: the segment, and how to attach.
        subscription: name of the subscription.
        dead_letter_topic: full name of the topic for messages given up on.
        connection: how Pulsar is reached.
        options: of the consumer.
        schema: of the consumer.
        threads: for blocking calls.
        arrivals: where messages go.
    """

    def __init__(
        self,
        attach: Attach,
        subscription: str,
        dead_letter_topic: str,
        *,
        connection: ConnectionOptions,
        options: QueueConsumerOptions,
        schema: Any,
        threads: BlockingCalls,
        arrivals: Arrivals[Received],
    ) -> None:
        self.segment = attach.segment
        self._subscription = subscription
        self._dead_letter_topic = dead_letter_topic
        self._connection = connection
        self._options = options
        # One that looks up writers' schemas does so through the connection that it is attached to.
        self._schema = copy.copy(schema)
        self._from_earliest = attach.from_earliest
        # Half may wait in pulsar-client, half here.
        self._most_waiting = max(1, attach.prefetch // 2)
        self._threads = threads
        self._arrivals = arrivals
        self._client: pulsar.Client | None = None
        self._consumer: Any = None
        self._arrived = 0
        self._taken = 0
        self._is_paused = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._attaching: asyncio.Task[None] | None = None
        self._unsent: list[Any] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it is detached, or about to be; what it had is of no use any more."""
        return self._is_closed

    @property
    def waiting(self) -> int:
        """Messages that wait for the application."""
        return self._arrived - self._taken

    async def attach(self) -> None:
        """Attach. Raises what pulsar-client does."""
        await self._threads.run(self._subscribe)

    def keep_attaching(self) -> None:
        """Attach in the background, as often as it takes."""
        self._attaching = asyncio.get_running_loop().create_task(self._attach_at_last())

    def taken(self) -> None:
        """The application has taken a message."""
        self._taken += 1
        if self._is_paused and self.waiting <= self._most_waiting // 2:
            self._resume()

    def acknowledge(self, position: Any) -> None:
        """Acknowledge one message, by its id in pulsar-client; sent with others within 100 ms. Does not block."""
        if self._consumer is None or self._is_closed:
            return
        if not self._unsent and self._consumer.is_connected():
            self._consumer.acknowledge(position)
            return
        # pulsar-client forgets acknowledgements that it is given without a connection.
        self._unsent.append(position)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_when_connected())

    def negative_acknowledge(self, position: Any) -> None:
        """Have one message delivered again after the delay of the options. Does not block."""
        if self._consumer is not None and not self._is_closed:
            self._consumer.negative_acknowledge(position)

    async def close(self) -> None:
        """Detach; acknowledgements are sent before."""
        with self._lock:
            self._is_closed = True
        background = [task for task in (self._attaching, self._sending) if task is not None]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        if self._client is not None:
            await self._threads.run(self._detach)

    def _subscribe(self) -> None:
        with self._lock:
            # Nobody would close what is made after `close`, which does not stop this thread.
            if self._is_closed:
                return
            if self._client is None:
                self._client = self._connection.connect()
        consumer = self._options.subscribe(
            self._client,
            self.segment.topic,
            self._subscription,
            dead_letter_topic=self._dead_letter_topic,
            from_earliest=self._from_earliest,
            receiver_queue_size=self._most_waiting,
            schema=self._schema,
            listener=self._receive,
        )
        self._consumer = consumer

    def _receive(self, consumer: Any, message: pulsar.Message) -> None:
        """Called in a thread of pulsar-client."""
        if self._consumer is None:
            # Messages come before the call that attaches has returned.
            self._consumer = consumer
        self._arrived += 1
        self._arrivals.put((self, message))
        if self.waiting >= self._most_waiting:
            self._is_paused = True
            consumer.pause_message_listener()
            if self.waiting <= self._most_waiting // 2:
                # The application was faster than this: nobody else would resume.
                self._resume(consumer)

    def _resume(self, consumer: Any = None) -> None:
        self._is_paused = False
        with contextlib.suppress(pulsar.PulsarException):
            (consumer or self._consumer).resume_message_listener()

    async def _attach_at_last(self) -> None:
        pause_seconds = _LEAST_PAUSE_SECONDS
        while not self._is_closed:
            try:
                await self.attach()
                return
            except pulsar.PulsarException:
                await asyncio.sleep(random.uniform(pause_seconds / 2, pause_seconds))
                pause_seconds = min(2 * pause_seconds, _MOST_PAUSE_SECONDS)

    async def _send_when_connected(self) -> None:
        looks = 0
        while looks < _CONNECTED_LOOKS:
            await asyncio.sleep(_RECONNECT_LOOK_SECONDS)
            looks = looks + 1 if self._consumer.is_connected() else 0
        self._send_unsent()

    def _send_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        for position in unsent:
            self._consumer.acknowledge(position)

    def _detach(self) -> None:
        if self._consumer is not None:
            with contextlib.suppress(pulsar.PulsarException):
                self._send_unsent()
                close_consumer(self._consumer)
        if self._client is not None:
            # This ends an attachment under way, too.
            close_client(self._client)
