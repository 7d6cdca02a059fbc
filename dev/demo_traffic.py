"""An application beside the demonstration: numbered messages of many keys, sent and received without a pause."""

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import pulsar

from dev.access import PulsarAccess
from dev.errors import DevError
from scalable_topics.sdk import Client, Producer, QueueConsumer

_KEYS = 50
_BURST = 10
_PAUSE_SECONDS = 0.02
_DRAIN_SECONDS = 30.0


@dataclass
class Traffic:
    """What was sent and received.

    Args:
        sent: numbers stored under each key, in the order of sending.
        received: how often each key and number was received.
        sends: when each message was sent and how long it took to be stored, in seconds.
        changes: name, begin and end of each change of the layout.
    """

    sent: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    received: Counter[tuple[str, int]] = field(default_factory=Counter)
    sends: list[tuple[float, float]] = field(default_factory=list)
    changes: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Messages stored."""
        return len(self.sends)

    def messages(self) -> list[tuple[str, int]]:
        """Key and number of the messages stored."""
        return [(key, number) for key, numbers in self.sent.items() for number in numbers]

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Remember how long a change takes."""
        started = time.monotonic()
        yield
        self.changes.append((name, started, time.monotonic()))

    def stalls_ms(self) -> list[float]:
        """For each change, the longest that a message sent meanwhile took to be stored."""
        return [
            1000 * max((took for at, took in self.sends if begin <= at + took and at <= end), default=0.0)
            for _, begin, end in self.changes
        ]

    def ordinary_ms(self) -> float:
        """How long half of all messages took at most."""
        return 1000 * median(took for _, took in self.sends)


class DemoTraffic:
    """Runs while it is entered, in a thread with an event loop of its own.

    Args:
        access: the brokers.
        topic: the scalable topic.
        subscription: what the consumers share.
    """

    def __init__(self, access: PulsarAccess, topic: str, subscription: str) -> None:
        self._access = access
        self._topic = topic
        self._subscription = subscription
        self._stopping = threading.Event()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._error: BaseException | None = None
        self.traffic = Traffic()

    def __enter__(self) -> Traffic:
        self._thread.start()
        self._started.result(30)
        return self.traffic

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopping.set()
        self._thread.join(2 * _DRAIN_SECONDS)
        if kind is None and self._error is not None:
            raise DevError(f"the traffic failed: {self._error}") from self._error

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._error = error
            if not self._started.done():
                self._started.set_exception(error)

    async def _work(self) -> None:
        authentication = pulsar.AuthenticationToken(self._access.superuser_token)
        async with Client(self._access.service_url, authentication) as client:
            consumers = [await client.queue_consumer(self._topic, self._subscription) for _ in range(2)]
            readers = [asyncio.create_task(self._receive(consumer)) for consumer in consumers]
            async with await client.producer(self._topic) as producer:
                self._started.set_result(None)
                await self._send(producer)
            async with asyncio.timeout(_DRAIN_SECONDS):
                while len(self.traffic.received) < self.traffic.count:
                    await asyncio.sleep(0.05)
            for reader in readers:
                reader.cancel()

    async def _send(self, producer: Producer) -> None:
        number = 0
        under_way: set[asyncio.Task[None]] = set()
        while not self._stopping.is_set():
            for _ in range(_BURST):
                under_way.add(asyncio.create_task(self._send_one(producer, f"key-{number % _KEYS}", number)))
                number += 1
            await asyncio.sleep(_PAUSE_SECONDS)
            for task in [task for task in under_way if task.done()]:
                under_way.remove(task)
                task.result()
        await asyncio.gather(*under_way)

    async def _send_one(self, producer: Producer, key: str, number: int) -> None:
        at = time.monotonic()
        await producer.send(str(number).encode(), key=key)
        self.traffic.sent[key].append(number)
        self.traffic.sends.append((at, time.monotonic() - at))

    async def _receive(self, consumer: QueueConsumer) -> None:
        while True:
            for message in await consumer.receive_many(100):
                self.traffic.received[str(message.key), int(message.data)] += 1
                await consumer.acknowledge(message)
