"""An application under test: keyed messages sent and received without a pause, and everything it saw of them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pulsar

from dev.access import PulsarAccess
from scalable_topics.sdk import Client, OutgoingMessage, Producer, QueueConsumer

_BURST = 5
_RECEIVED_AT_ONCE = 200


@dataclass(slots=True)
class Journal:
    """What the application saw.

    Args:
        acknowledged: numbers reported as stored under each key, in the order they were sent.
        failed: errors of the messages that were not.
        received: how often each key and number was delivered.
        sends: when each message was sent, and how long it took to be stored, in seconds.
    """

    acknowledged: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    failed: list[BaseException] = field(default_factory=list)
    received: Counter[tuple[str, int]] = field(default_factory=Counter)
    sends: list[tuple[float, float]] = field(default_factory=list)

    @property
    def not_received(self) -> list[tuple[str, int]]:
        """Key and number of what was reported as stored and never delivered."""
        return [
            (key, number)
            for key, numbers in self.acknowledged.items()
            for number in numbers
            if not self.received[key, number]
        ]

    def longest_ms(self, begin: float, end: float) -> float:
        """The longest that a message under way between two times took to be stored, in milliseconds."""
        return 1000 * max((took for at, took in self.sends if at <= end and at + took >= begin), default=0.0)


class Application:
    """Sends and receives while it is entered; afterwards every message has an outcome and was looked for.

    Args:
        brokers: where.
        topic: the scalable topic.
        subscription: what its consumers share.
        producers: each with keys of its own, so that one task gives the order of a key.
        consumers: queue consumers.
        per_second: messages of one producer a second.
        keys: of one producer; no other application has them.
        from_earliest: a subscription that is not there yet starts at the beginning.
        drain_seconds: how long to wait at the end for what was stored to be delivered.
    """

    def __init__(
        self,
        brokers: PulsarAccess,
        topic: str,
        subscription: str,
        *,
        producers: int = 8,
        consumers: int = 4,
        per_second: float = 100.0,
        keys: int = 25,
        from_earliest: bool = False,
        drain_seconds: float = 60.0,
    ) -> None:
        self._brokers = brokers
        self._topic = topic
        self._subscription = subscription
        self._producer_count = producers
        self._consumer_count = consumers
        self._pause_seconds = _BURST / per_second
        self._name = uuid.uuid4().hex[:8]
        self._keys = keys
        self._from_earliest = from_earliest
        self._drain_seconds = drain_seconds
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._receiving: list[asyncio.Task[None]] = []
        self._producers: list[Producer] = []
        self.journal = Journal()

    async def __aenter__(self) -> Self:
        # One that sends and one that receives, as two applications would have.
        self._sender = Client(self._brokers.service_url, pulsar.AuthenticationToken(self._brokers.superuser_token))
        self._receiver = Client(self._brokers.service_url, pulsar.AuthenticationToken(self._brokers.superuser_token))
        begin = pulsar.InitialPosition.Earliest if self._from_earliest else pulsar.InitialPosition.Latest
        for _ in range(self._consumer_count):
            consumer = await self._receiver.queue_consumer(self._topic, self._subscription, initial_position=begin)
            self._receiving.append(asyncio.create_task(self._receive(consumer)))
        for number in range(self._producer_count):
            producer = await self._sender.producer(self._topic)
            self._producers.append(producer)
            self._tasks.append(asyncio.create_task(self._send(producer, number)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        try:
            await asyncio.gather(*self._tasks)
            await asyncio.gather(*(producer.flush() for producer in self._producers))
            if error is None:
                await self._drain()
        finally:
            for task in self._receiving:
                task.cancel()
            await asyncio.gather(*self._receiving, return_exceptions=True)
            await asyncio.gather(self._sender.close(), self._receiver.close())

    async def until_sent(self, count: int) -> None:
        """Wait until so many more messages are stored."""
        wanted = len(self.journal.sends) + count
        while len(self.journal.sends) < wanted:
            self._raise_if_dead()
            await asyncio.sleep(0.05)

    async def _send(self, producer: Producer, producer_number: int) -> None:
        number = 0
        due = time.monotonic()
        while not self._stopping:
            for _ in range(_BURST):
                key = f"{self._name}-{producer_number}-{number % self._keys}"
                message = await producer.submit(str(number).encode(), key=key)
                message.add_done_callback(_Told(self.journal, key, number))
                number += 1
            due = max(due + self._pause_seconds, time.monotonic() - 1.0)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _receive(self, consumer: QueueConsumer) -> None:
        while True:
            messages = await consumer.receive_many(_RECEIVED_AT_ONCE)
            for message in messages:
                self.journal.received[str(message.key), int(message.data)] += 1
            await consumer.acknowledge_many(messages)

    async def _drain(self) -> None:
        deadline = time.monotonic() + self._drain_seconds
        while self.journal.not_received and time.monotonic() < deadline:
            self._raise_if_dead()
            await asyncio.sleep(2.0)

    def _raise_if_dead(self) -> None:
        for task in (*self._tasks, *self._receiving):
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error


class _Told:
    """Notes the outcome of one message."""

    __slots__ = ("_at", "_journal", "_key", "_number")

    def __init__(self, journal: Journal, key: str, number: int) -> None:
        self._journal = journal
        self._key = key
        self._number = number
        self._at = time.monotonic()

    def __call__(self, message: OutgoingMessage) -> None:
        error = message.exception()
        if error is not None:
            self._journal.failed.append(error)
            return
        self._journal.acknowledged[self._key].append(self._number)
        self._journal.sends.append((self._at, time.monotonic() - self._at))
