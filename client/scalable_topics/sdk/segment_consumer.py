"""The consumer of one segment, or of one entry bucket of it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import math
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import pulsar

from scalable_topics.layout import Part
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.options import ConnectionOptions
from scalable_topics.sdk.pulsar_binding import close_client, close_consumer

_LEAST_PAUSE_SECONDS = 0.2
_MOST_PAUSE_SECONDS = 15.0
# Whoever is attached may be about to leave, for this very consumer.
_MOST_BUSY_PAUSE_SECONDS = 1.0
_BUSY = (pulsar.ConsumerBusy, pulsar.ConsumerAssignError)
_RECONNECT_LOOK_SECONDS = 0.1
# pulsar-client still drops acknowledgements that it gets while it attaches anew.
_CONNECTED_LOOKS = 3
# A bundle of topics that moves to another broker is served again within about as long.
_LAST_ACKNOWLEDGEMENTS_SECONDS = 5.0
# pulsar-client counts as connected from when it begins to attach anew, and sends acknowledgements within 100 ms.
_ATTACHING_SECONDS, _UNDER_WAY_SECONDS = 5.0, 0.5

Received = tuple["SegmentConsumer", pulsar.Message]
Listener: TypeAlias = Callable[[Any, pulsar.Message], None]
Subscribe: TypeAlias = Callable[[pulsar.Client, Any, int, Listener], Any]
"""Attaches a consumer to the segment's topic and answers it: through which pulsar-client, with which schema, how many
messages it may hold, and what is called with them in a thread of pulsar-client. Blocks."""


def is_busy(error: pulsar.PulsarException) -> bool:
    """Whether a broker refuses a consumer for those that are attached: to the segment, or to buckets of it."""
    return isinstance(error, _BUSY)


class SegmentConsumer:
    """Attached to one segment, or to one entry bucket of it, through connections of its own.

    Once the subscription is through with a sealed segment, brokers say so in a way that makes pulsar-client drop its
    connection; the unacknowledged messages of other consumers on it would be delivered again.

    Args:
        part: the segment, or the bucket.
        subscribe: how to attach.
        prefetch: messages that may wait for the application, 1 or more; each place has room for at least one.
        is_cumulative: acknowledging a message acknowledges everything before it.
        connection: how Pulsar is reached.
        schema: of the consumer.
        threads: for blocking calls.
        arrivals: where messages go.
    """

    def __init__(
        self,
        part: Part,
        subscribe: Subscribe,
        *,
        prefetch: int,
        is_cumulative: bool,
        connection: ConnectionOptions,
        schema: Any,
        threads: BlockingCalls,
        arrivals: Arrivals[Received],
    ) -> None:
        self.part = part
        self._subscribe_with = subscribe
        # Half may wait in pulsar-client, half here.
        self._most_waiting = max(1, prefetch // 2)
        self._is_cumulative = is_cumulative
        self._connection = connection
        # One that looks up writers' schemas does so through the connection that it is attached to.
        self._schema = copy.copy(schema)
        self._threads = threads
        self._arrivals = arrivals
        self._client: pulsar.Client | None = None
        self._consumer: Any = None
        self._arrived = 0
        self._taken = 0
        self._paused: Any = None
        self._is_stopped = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._attaching: asyncio.Task[None] | None = None
        self._first_attempt: asyncio.Future[pulsar.PulsarException | None] | None = None
        self._acknowledged: Any = None
        self._acknowledged_at = -math.inf
        self._unserved_at = -math.inf
        self._unsent: list[Any] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def segment_id(self) -> int:
        """The segment."""
        return self.part.segment_id

    @property
    def is_stopped(self) -> bool:
        """Whether what it has is of no use any more: it delivers nothing, and detaches soon."""
        return self._is_stopped

    @property
    def is_connected(self) -> bool:
        """Whether a broker serves it, as far as pulsar-client knows."""
        consumer = self._consumer
        return consumer is not None and bool(consumer.is_connected())

    @property
    def arrived(self) -> int:
        """How many messages have come."""
        return self._arrived

    @property
    def waiting(self) -> int:
        """Messages that wait for the application."""
        return self._arrived - self._taken

    async def attach(self) -> None:
        """Attach. Raises what pulsar-client does."""
        await self._threads.run(self._subscribe)

    def keep_attaching(self, refused: Callable[[pulsar.PulsarException], None] | None = None) -> None:
        """Attach in the background, as often as it takes.

        Args:
            refused: called in the event loop with the reason of each failure.
        """
        self._first_attempt = asyncio.get_running_loop().create_future()
        self._attaching = asyncio.get_running_loop().create_task(self._attach_at_last(refused))

    async def first_attempt(self) -> None:
        """Wait until `keep_attaching` has tried once, or is ended by `close`. Raises what pulsar-client does."""
        if self._first_attempt is not None and self._attaching is not None:
            await asyncio.wait({self._first_attempt, self._attaching}, return_when=asyncio.FIRST_COMPLETED)
            error = self._first_attempt.result() if self._first_attempt.done() else None
            if error is not None:
                raise error

    def attach_anew(self) -> None:
        """Detach, attach again and send the last acknowledgement again, where acknowledging is cumulative: it may have
        been lost with a connection, and a consumer of pulsar-client sends none twice.
        """
        if self._attaching is not None and not self._attaching.done():
            return
        consumer, self._consumer = self._consumer, None
        self._attaching = asyncio.get_running_loop().create_task(self._replace(consumer))
        if self._is_cumulative and self._acknowledged is not None:
            self.acknowledge(self._acknowledged)

    def taken(self) -> None:
        """The application has taken a message."""
        self._taken += 1
        paused = self._paused
        if paused is not None and self.waiting <= self._most_waiting // 2:
            self._resume(paused)

    def acknowledge(self, position: Any) -> None:
        """Acknowledge a message, by its id in pulsar-client; sent with others within 100 ms. Does not block."""
        if self._is_closed:
            return
        self._acknowledged, self._acknowledged_at = position, time.monotonic()
        if not self._unsent and self.is_connected:
            self._send(position)
            return
        # pulsar-client forgets acknowledgements that it is given without a connection.
        if self._is_cumulative:
            self._unsent.clear()
        self._unsent.append(position)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_when_connected())

    def negative_acknowledge(self, position: Any) -> None:
        """Have one message delivered again after the delay of the options. Does not block."""
        if self._consumer is not None and not self._is_closed:
            self._consumer.negative_acknowledge(position)

    def watch(self) -> None:
        """Note whether a broker serves it at this moment; to be called some times a second."""
        if self._consumer is not None and not self.is_connected:
            self._unserved_at = time.monotonic()

    def make_sure(self) -> None:
        """Send the last acknowledgement again, through another attachment, where acknowledging is cumulative and it
        may have been lost: it was given while pulsar-client, which tells nobody, lost its broker or attached anew. The
        next one would make up for it, but there may be none.
        """
        since_seconds = self._acknowledged_at - self._unserved_at
        if self._is_cumulative and -_UNDER_WAY_SECONDS <= since_seconds <= _ATTACHING_SECONDS:
            self.attach_anew()

    async def acknowledgements_sent(self) -> None:
        """Wait until all acknowledgements are on their way."""
        if self._sending is not None:
            await asyncio.shield(self._sending)

    def stop(self) -> None:
        """Deliver nothing more; acknowledging still works until it is closed."""
        self._is_stopped = True

    async def close(self) -> None:
        """Detach; acknowledgements are sent before, and those that wait for a connection are waited for, 5 seconds at
        most. An attachment under way comes to its end first: it never returns if its pulsar-client is closed meanwhile.
        """
        self._is_stopped = True
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=_LAST_ACKNOWLEDGEMENTS_SECONDS)
        self._is_closed = True
        background = [task for task in (self._attaching, self._sending) if task is not None]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await self._threads.run(self._detach)

    def _subscribe(self) -> None:
        with self._lock:
            # Nobody would close what is made after `close`, which does not stop this thread.
            if self._is_closed:
                return
            if self._client is None:
                self._client = self._connection.connect()
            self._consumer = self._subscribe_with(self._client, self._schema, self._most_waiting, self._receive)

    def _receive(self, consumer: Any, message: pulsar.Message) -> None:
        """Called in a thread of pulsar-client."""
        if self._is_stopped:
            consumer.pause_message_listener()
            return
        self._arrived += 1
        self._arrivals.put((self, message))
        if self.waiting >= self._most_waiting:
            # Not the consumer that is attached: messages come before the call that attaches has returned.
            self._paused = consumer
            consumer.pause_message_listener()
            if self.waiting <= self._most_waiting // 2:
                # The application was faster than this: nobody else would resume.
                self._resume(consumer)

    def _resume(self, consumer: Any) -> None:
        self._paused = None
        with contextlib.suppress(pulsar.PulsarException):
            consumer.resume_message_listener()

    async def _replace(self, consumer: Any) -> None:
        with contextlib.suppress(pulsar.PulsarException):
            await self._threads.run(close_consumer, consumer)
        await self._attach_at_last(None)

    async def _attach_at_last(self, refused: Callable[[pulsar.PulsarException], None] | None) -> None:
        pause_seconds = _LEAST_PAUSE_SECONDS
        while not self._is_closed:
            try:
                await self.attach()
                self._tried(None)
                return
            except pulsar.PulsarException as error:
                self._tried(error)
                if refused is not None:
                    refused(error)
                most_seconds = _MOST_BUSY_PAUSE_SECONDS if is_busy(error) else _MOST_PAUSE_SECONDS
                pause_seconds = min(pause_seconds, most_seconds)
                await asyncio.sleep(random.uniform(pause_seconds / 2, pause_seconds))
                pause_seconds *= 2

    def _tried(self, error: pulsar.PulsarException | None) -> None:
        if self._first_attempt is not None and not self._first_attempt.done():
            self._first_attempt.set_result(error)

    async def _send_when_connected(self) -> None:
        looks = 0
        while looks < _CONNECTED_LOOKS:
            await asyncio.sleep(_RECONNECT_LOOK_SECONDS)
            looks = looks + 1 if self.is_connected else 0
        self._send_unsent()

    def _send_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        for position in unsent:
            self._send(position)

    def _send(self, position: Any) -> None:
        if self._is_cumulative:
            self._consumer.acknowledge_cumulative(position)
        else:
            self._consumer.acknowledge(position)

    def _detach(self) -> None:
        with self._lock:
            if self._consumer is not None:
                with contextlib.suppress(pulsar.PulsarException):
                    self._send_unsent()
                    close_consumer(self._consumer)
            if self._client is not None:
                close_client(self._client)
