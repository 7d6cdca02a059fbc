"""The client library without asyncio: the same core, whose event loop runs in a thread of the client."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import weakref
from collections.abc import Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, Unpack

from scalable_topics.layout import Part
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.batch_counts import BucketBatches
from scalable_topics.sdk.checkpoint import Checkpoint
from scalable_topics.sdk.checkpoint_consumer import CheckpointConsumer as AsyncCheckpointConsumer
from scalable_topics.sdk.client import Client as AsyncClient
from scalable_topics.sdk.errors import ClosedError
from scalable_topics.sdk.gateway_options import GatewayOptions
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.outgoing_message import MessageFields, OutgoingMessage
from scalable_topics.sdk.producer import Producer as AsyncProducer
from scalable_topics.sdk.queue_consumer import QueueConsumer as AsyncQueueConsumer
from scalable_topics.sdk.received_message import ReceivedMessage, StreamMessage
from scalable_topics.sdk.sending_room import SendingRoom
from scalable_topics.sdk.stream_consumer import StreamConsumer as AsyncStreamConsumer

T = TypeVar("T")
M = TypeVar("M", bound=ReceivedMessage)

_Submission = tuple[Future[MessageId], int, bytes | None, MessageFields]


class Client:
    """Makes producers and consumers. May be used from any thread; close it, or use it as a context manager.

    Arguments and errors are those of `scalable_topics.sdk.Client`.
    """

    def __init__(
        self,
        service_url: str,
        authentication: Any = None,
        *,
        gateway: GatewayOptions | None = None,
        **connection: Any,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scalable-topics", daemon=True)
        self._client = AsyncClient(service_url, authentication, gateway=gateway, **connection)
        self._closing = threading.Lock()
        self._lock = threading.Lock()
        self._takes_work = True
        self._producers: weakref.WeakSet[Producer] = weakref.WeakSet()
        self._thread.start()

    def producer(self, topic: str, *, schema: Any = None, **options: Any) -> Producer:
        """Make a producer. Arguments and errors are those of `scalable_topics.sdk.Client.producer`."""
        producer = Producer(self, self.run(self._client.producer(topic, schema=schema, **options)))
        self._producers.add(producer)
        return producer

    def queue_consumer(self, topic: str, subscription: str, *, schema: Any = None, **options: Any) -> QueueConsumer:
        """Make a queue consumer. Arguments and errors are those of `scalable_topics.sdk.Client.queue_consumer`."""
        consumer = self.run(self._client.queue_consumer(topic, subscription, schema=schema, **options))
        return QueueConsumer(self, consumer)

    def stream_consumer(self, topic: str, subscription: str, *, schema: Any = None, **options: Any) -> StreamConsumer:
        """Make a stream consumer. Arguments and errors are those of `scalable_topics.sdk.Client.stream_consumer`; an
        `assignment_listener` is called in a thread of the client and must use none of its blocking calls.
        """
        consumer = self.run(self._client.stream_consumer(topic, subscription, schema=schema, **options))
        return StreamConsumer(self, consumer)

    def checkpoint_consumer(self, topic: str, group: str, *, schema: Any = None, **options: Any) -> CheckpointConsumer:
        """Make a checkpoint consumer. Arguments and errors are those of
        `scalable_topics.sdk.Client.checkpoint_consumer`; as for `stream_consumer`.
        """
        return CheckpointConsumer(
            self, self.run(self._client.checkpoint_consumer(topic, group, schema=schema, **options))
        )

    def close(self) -> None:
        """Close everything it made, then the connections."""
        with self._closing:
            if not self._takes_work:
                return
            try:
                self.run(self._client.close())
            finally:
                self._end()

    def _end(self) -> None:
        with self._lock:
            self._takes_work = False
        asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for producer in tuple(self._producers):
            producer.abandon()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the client's event loop and wait for it. Raises ClosedError once the client is closed."""
        with self._lock:
            if not self._takes_work:
                work.close()
                raise ClosedError("the client is closed")
            doing = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return doing.result()
        except CancelledError:
            raise ClosedError("the client was closed meanwhile") from None
        except BaseException:
            # An interrupted `receive` must not go on and take a message that nobody gets.
            doing.cancel()
            raise

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more work."""
        return not self._takes_work

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
        options = producer.options
        self._room = SendingRoom(options.max_pending_messages, options.max_pending_bytes)

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return self._producer.topic

    @property
    def name(self) -> str:
        """What the names of its Pulsar producers begin with; unique for ever."""
        return self._producer.name

    @property
    def batches(self) -> tuple[BucketBatches, ...]:
        """How its messages were put into entries, as `scalable_topics.sdk.Producer.batches`."""

        async def look() -> tuple[BucketBatches, ...]:
            return self._producer.batches

        return self._client.run(look())

    def send(self, value: Any, **fields: Unpack[MessageFields]) -> MessageId:
        """Send a message and wait until it is stored. Arguments and errors: `scalable_topics.sdk.Producer.send`."""
        return self.send_async(value, **fields).result()

    def send_async(self, value: Any, **fields: Unpack[MessageFields]) -> Future[MessageId]:
        """Send a message without waiting for its outcome; blocks only while the producer's bounds are reached.

        Arguments, and what the future answers or raises, are those of `scalable_topics.sdk.Producer.send`.
        """
        data = self._producer.encode(value)
        size_bytes = 0 if data is None else len(data)
        if properties := fields.get("properties"):
            size_bytes += sum(map(len, properties)) + sum(map(len, properties.values()))
        self._room.take(size_bytes)
        outcome: Future[MessageId] = Future()
        self._submissions.put((outcome, size_bytes, data, fields))
        if self._client.is_closed:
            self.abandon()
        return outcome

    def flush(self) -> None:
        """Wait until every message sent so far has an outcome."""
        self._client.run(self._producer.flush())

    def close(self, timeout_seconds: float = 30.0) -> None:
        """Take no more messages, wait for outcomes, and detach, as `scalable_topics.sdk.Producer.close`."""
        self._client.run(self._producer.close(timeout_seconds))

    def abandon(self) -> None:
        """Fail what the client's event loop will not take any more; called once the client is closed."""
        with contextlib.suppress(IndexError):
            while True:
                outcome, size_bytes, *_ = self._submissions.items.popleft()
                self._room.give_back(size_bytes)
                if outcome.set_running_or_notify_cancel():
                    outcome.set_exception(ClosedError(f"the client of {self.topic} is closed"))

    def _submit(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                outcome, size_bytes, data, fields = self._submissions.items.popleft()
                if not outcome.set_running_or_notify_cancel():
                    self._room.give_back(size_bytes)
                    continue
                try:
                    sent = self._producer.enqueue(data, fields)
                except Exception as error:
                    self._room.give_back(size_bytes)
                    outcome.set_exception(error)
                else:
                    sent.add_done_callback(functools.partial(self._finish, outcome, size_bytes))

    def _finish(self, outcome: Future[MessageId], size_bytes: int, sent: OutgoingMessage) -> None:
        self._room.give_back(size_bytes)
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


class _AsyncConsumer(Protocol[M]):
    """What the consumers for asyncio have in common."""

    @property
    def topic(self) -> str: ...

    @property
    def subscription(self) -> str: ...

    @property
    def segment_ids(self) -> tuple[int, ...]: ...

    async def receive(self, timeout_seconds: float | None = None) -> M: ...

    async def receive_many(self, most: int, timeout_seconds: float | None = None) -> list[M]: ...

    async def close(self) -> None: ...


class _Consumer(Generic[M]):
    """The same without asyncio."""

    def __init__(self, client: Client, consumer: _AsyncConsumer[M]) -> None:
        self._client = client
        self._receiving = consumer

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return self._receiving.topic

    @property
    def subscription(self) -> str:
        """Name of the subscription."""
        return self._receiving.subscription

    @property
    def segment_ids(self) -> tuple[int, ...]:
        """The segments it reads, whole or in part."""
        return self._receiving.segment_ids

    def receive(self, timeout_seconds: float | None = None) -> M:
        """The next message, as `receive` of the consumer for asyncio."""
        return self._client.run(self._receiving.receive(timeout_seconds))

    def receive_many(self, most: int, timeout_seconds: float | None = None) -> list[M]:
        """The next messages, as `receive_many` of the consumer for asyncio."""
        return self._client.run(self._receiving.receive_many(most, timeout_seconds))

    def close(self) -> None:
        """Detach from all segments."""
        self._client.run(self._receiving.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QueueConsumer(_Consumer[ReceivedMessage]):
    """Receives the messages of a subscription; made by `Client.queue_consumer`. May be used from any thread."""

    def __init__(self, client: Client, consumer: AsyncQueueConsumer) -> None:
        super().__init__(client, consumer)
        self._consumer = consumer

    @property
    def dead_letter_topic(self) -> str:
        """Full name of the topic for messages given up on."""
        return self._consumer.dead_letter_topic

    def acknowledge(self, message: ReceivedMessage | MessageId) -> None:
        """Say that a message is done with, as `scalable_topics.sdk.QueueConsumer.acknowledge`."""
        self._client.run(self._consumer.acknowledge(message))

    def acknowledge_many(self, messages: Iterable[ReceivedMessage | MessageId]) -> None:
        """Acknowledge several messages."""
        self._client.run(self._consumer.acknowledge_many(messages))

    def negative_acknowledge(self, message: ReceivedMessage | MessageId) -> None:
        """Have a message delivered again, as `scalable_topics.sdk.QueueConsumer.negative_acknowledge`."""
        self._client.run(self._consumer.negative_acknowledge(message))


class StreamConsumer(_Consumer[StreamMessage]):
    """Receives the messages of a subscription in the order of each key; made by `Client.stream_consumer`. May be used
    from any thread.
    """

    def __init__(self, client: Client, consumer: AsyncStreamConsumer) -> None:
        super().__init__(client, consumer)
        self._consumer = consumer

    @property
    def consumer_name(self) -> str:
        """Name of the consumer within the subscription."""
        return self._consumer.consumer_name

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it reads: whole segments, and entry buckets of those that it shares."""
        return self._consumer.parts

    def acknowledge_cumulative(self, message: StreamMessage) -> None:
        """Say that a message and everything delivered before it is done with, as
        `scalable_topics.sdk.StreamConsumer.acknowledge_cumulative`.
        """
        self._client.run(self._consumer.acknowledge_cumulative(message))


class CheckpointConsumer(_Consumer[StreamMessage]):
    """Receives the messages of a checkpoint group in the order of each key; made by `Client.checkpoint_consumer`.
    May be used from any thread.
    """

    def __init__(self, client: Client, consumer: AsyncCheckpointConsumer) -> None:
        super().__init__(client, consumer)
        self._consumer = consumer

    @property
    def consumer_name(self) -> str:
        """Name of the consumer within the group."""
        return self._consumer.consumer_name

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it reads: whole segments, and entry buckets of those that it shares."""
        return self._consumer.parts

    @property
    def group(self) -> str:
        """Name of the checkpoint group."""
        return self._consumer.group

    def checkpoint(self) -> Checkpoint:
        """Where this consumer stands, as `scalable_topics.sdk.CheckpointConsumer.checkpoint`."""
        return self._client.run(_checkpoint_of(self._consumer))

    def commit(self, checkpoint: Checkpoint) -> None:
        """Say that a checkpoint is kept safe, as `scalable_topics.sdk.CheckpointConsumer.commit`."""
        self._client.run(self._consumer.commit(checkpoint))


async def _checkpoint_of(consumer: AsyncCheckpointConsumer) -> Checkpoint:
    # In the loop, to which what it looks at belongs.
    return consumer.checkpoint()


async def _end_tasks() -> None:
    """Cancel what others had begun to do in the loop, and wait until it has ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
