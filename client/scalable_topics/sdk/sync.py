"""The client library without asyncio: the same core, whose event loop runs in a thread of the client."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.client import Client as AsyncClient
from scalable_topics.sdk.errors import ClosedError
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.outgoing_message import OutgoingMessage
from scalable_topics.sdk.producer import Producer as AsyncProducer
from scalable_topics.sdk.queue_consumer import QueueConsumer as AsyncQueueConsumer
from scalable_topics.sdk.received_message import ReceivedMessage

T = TypeVar("T")

_Submission = tuple[Future[MessageId], tuple[Any, ...]]


class Client:
    """Makes producers and queue consumers. May be used from any thread; close it, or use it as a context manager.

    Arguments and errors are those of `scalable_topics.sdk.Client`.
    """

    def __init__(self, service_url: str, authentication: Any = None, **connection: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scalable-topics", daemon=True)
        self._client = AsyncClient(service_url, authentication, **connection)
        self._thread.start()

    def producer(self, topic: str, *, schema: Any = None, **options: Any) -> Producer:
        """Make a producer. Arguments and errors are those of `scalable_topics.sdk.Client.producer`."""
        return Producer(self, self.run(self._client.producer(topic, schema=schema, **options)))

    def queue_consumer(self, topic: str, subscription: str, *, schema: Any = None, **options: Any) -> QueueConsumer:
        """Make a queue consumer. Arguments and errors are those of `scalable_topics.sdk.Client.queue_consumer`."""
        consumer = self.run(self._client.queue_consumer(topic, subscription, schema=schema, **options))
        return QueueConsumer(self, consumer)

    def close(self) -> None:
        """Close everything it made, then the connections."""
        if self._loop.is_closed():
            return
        self.run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the client's event loop and wait for it."""
        if self._loop.is_closed():
            work.close()
            raise ClosedError("the client is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The client's event loop."""
        return self._loop

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Producer:
    """Sends messages; made by `Client.producer`. May be used from any thread; each thread's calls keep their order."""

    def __init__(self, client: Client, producer: AsyncProducer) -> None:
        self._client = client
        self._producer = producer
        self._submissions: Arrivals[_Submission] = Arrivals(client.loop, self._submit)
        # Keeps threads from running ahead of the loop, which applies the producer's own bounds.
        self._room = threading.BoundedSemaphore(producer.max_pending_messages)

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return self._producer.topic

    def send(self, value: Any, **message: Any) -> MessageId:
        """Send a message and wait until it is stored. Arguments and errors: `scalable_topics.sdk.Producer.send`."""
        return self.send_async(value, **message).result()

    def send_async(
        self,
        value: Any,
        *,
        key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        event_timestamp_ms: int | None = None,
        deliver_at_ms: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> Future[MessageId]:
        """Send a message without waiting for its outcome; blocks only while the producer's bounds are reached.

        Arguments, and what the future answers or raises, are those of `scalable_topics.sdk.Producer.send`.
        """
        self._room.acquire()
        outcome: Future[MessageId] = Future()
        message = (value, key, ordering_key, properties, event_timestamp_ms, deliver_at_ms, deliver_after)
        self._submissions.put((outcome, message))
        return outcome

    def flush(self) -> None:
        """Wait until every message sent so far has an outcome."""
        self._client.run(self._producer.flush())

    def close(self, timeout_seconds: float = 30.0) -> None:
        """Take no more messages, wait for outcomes, and detach, as `scalable_topics.sdk.Producer.close`."""
        self._client.run(self._producer.close(timeout_seconds))

    def _submit(self) -> None:
        while self._submissions.items:
            outcome, message = self._submissions.items.popleft()
            try:
                sent = self._producer.enqueue(*message)
            except Exception as error:
                self._room.release()
                outcome.set_exception(error)
            else:
                sent.add_done_callback(functools.partial(self._finish, outcome))

    def _finish(self, outcome: Future[MessageId], sent: OutgoingMessage) -> None:
        self._room.release()
        error = sent.exception()
        if error is None:
            outcome.set_result(sent.result())
        else:
            outcome.set_exception(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QueueConsumer:
    """Receives the messages of a subscription; made by `Client.queue_consumer`. May be used from any thread."""

    def __init__(self, client: Client, consumer: AsyncQueueConsumer) -> None:
        self._client = client
        self._consumer = consumer

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return self._consumer.topic

    def receive(self, timeout_seconds: float | None = None) -> ReceivedMessage:
        """The next message, as `scalable_topics.sdk.QueueConsumer.receive`."""
        return self._client.run(self._consumer.receive(timeout_seconds))

    def receive_many(self, most: int, timeout_seconds: float | None = None) -> list[ReceivedMessage]:
        """The next messages, as `scalable_topics.sdk.QueueConsumer.receive_many`."""
        return self._client.run(self._consumer.receive_many(most, timeout_seconds))

    def acknowledge(self, message: ReceivedMessage | MessageId) -> None:
        """Say that a message is done with, as `scalable_topics.sdk.QueueConsumer.acknowledge`."""
        self._client.run(self._consumer.acknowledge(message))

    def acknowledge_many(self, messages: Iterable[ReceivedMessage | MessageId]) -> None:
        """Acknowledge several messages."""
        self._client.run(self._consumer.acknowledge_many(messages))

    def negative_acknowledge(self, message: ReceivedMessage | MessageId) -> None:
        """Have a message delivered again, as `scalable_topics.sdk.QueueConsumer.negative_acknowledge`."""
        self._client.run(self._consumer.negative_acknowledge(message))

    def close(self) -> None:
        """Detach from all segments."""
        self._client.run(self._consumer.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
