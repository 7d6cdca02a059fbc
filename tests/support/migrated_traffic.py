"""An ordinary topic with messages and readers that is migrated under traffic, and what became of every message."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass

import pulsar

from dev.access import PulsarAccess
from scalable_topics.layout import SegmentLayout
from scalable_topics.sdk import Client, GatewayOptions, Producer, QueueConsumer
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.ordered_reading import OrderedReading
from tests.support.replicas import Replicas
from tests.support.waiting import until

QUEUE, STREAM = "billing", "ledger"
_KEYS = 200
_BURST, _PAUSE_SECONDS = 5, 0.01
_EARLIEST = pulsar.InitialPosition.Earliest
_SETTLE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration came to.

    Args:
        retained: messages that were there before.
        sent: messages sent while it ran, before it and after it.
        lost: messages that were stored and that a subscription never got.
        repeated: messages that it got more than once.
        disorder: messages of a key that the stream subscription got after a later one.
        failed: sends that failed.
        latencies_ms: from the call to the outcome, of the messages sent meanwhile.
        ready_seconds: from the manifest to Ready.
        layout: afterwards.
    """

    retained: int
    sent: int
    lost: dict[str, int]
    repeated: dict[str, int]
    disorder: int
    failed: int
    latencies_ms: list[float]
    ready_seconds: float
    layout: SegmentLayout

    @property
    def stall_ms(self) -> float:
        """The longest that a message took to be stored."""
        return max(self.latencies_ms)


class _TimedTraffic:
    """Numbered keyed messages, each with the time its outcome took."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._stopping = False
        self.count = 0
        self.stored: list[int] = []
        self.failed = 0
        self.latencies_ms: list[float] = []

    async def fill(self, count: int) -> None:
        """Send so many without pause, and wait until they are stored."""
        sends = []
        for _ in range(count):
            number, self.count = self.count, self.count + 1
            sends.append(await self._producer.submit(b"%d" % number, key=f"key-{number % _KEYS}"))
        await self._producer.flush()
        for send in sends:
            await send
        self.stored += range(count)

    async def run(self) -> None:
        """Send until it is stopped."""
        waiting: set[asyncio.Task[None]] = set()
        while not self._stopping:
            for _ in range(_BURST):
                number, self.count = self.count, self.count + 1
                began = time.monotonic()
                send = await self._producer.submit(b"%d" % number, key=f"key-{number % _KEYS}")
                task = asyncio.create_task(self._settle(number, began, send))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.sleep(_PAUSE_SECONDS)
        await asyncio.gather(*waiting)

    def stop(self) -> None:
        """Send no more."""
        self._stopping = True

    async def _settle(self, number: int, began: float, send: Awaitable[object]) -> None:
        try:
            await send
        except Exception:
            self.failed += 1
        else:
            self.stored.append(number)
            self.latencies_ms.append(1000 * (time.monotonic() - began))


class _QueueReading:
    """Reads a queue subscription until it is cancelled."""

    def __init__(self, consumer: QueueConsumer) -> None:
        self._consumer = consumer
        self.received: Counter[int] = Counter()

    async def run(self) -> None:
        """Read and acknowledge."""
        while True:
            messages = await self._consumer.receive_many(200)
            for message in messages:
                self.received[int(message.data)] += 1
            await self._consumer.acknowledge_many(messages)


async def migrate_under_traffic(two: Replicas, access: PulsarAccess, *, partitions: int, retained: int) -> Migrated:
    """Make, fill and half read an ordinary topic, migrate it while producers and consumers of the library run, and read
    everything.

    Args:
        two: operators and the world they work in.
        access: the brokers.
        partitions: of the topic; 0 for one that is not partitioned.
        retained: messages that are there before.
    """
    world, name = two.world, f"orders-{partitions}"
    topic = world.topic_name(name)
    if partitions:
        await world.pulsar.create_partitioned(topic.persistent, partitions)
    else:
        await world.pulsar.create_topic(topic.persistent)
    token = await make_caller(world.kube, world.namespace, f"reader-{partitions}", ["consume"])
    gateway = GatewayOptions(two.operators[0].gateway_url, token=token)
    async with (
        Client(access.service_url, pulsar.AuthenticationToken(access.superuser_token), gateway=gateway) as client,
        await client.producer(topic.persistent) as producer,
        await client.queue_consumer(topic.persistent, QUEUE, initial_position=_EARLIEST) as queue,
        await client.stream_consumer(topic.persistent, STREAM, initial_position=_EARLIEST) as one,
        await client.stream_consumer(topic.persistent, STREAM, initial_position=_EARLIEST) as other,
    ):
        traffic, reading = _TimedTraffic(producer), _QueueReading(queue)
        await traffic.fill(retained)
        queue_task = asyncio.create_task(reading.run())
        async with OrderedReading(one, other) as stream:
            await until(
                lambda: len(reading.received) >= retained // 2 and len(stream.received) >= retained // 2,
                what="half of what is retained has come",
                within_seconds=_SETTLE_SECONDS,
            )
            traffic_task = asyncio.create_task(traffic.run())
            await asyncio.sleep(1.0)
            began = time.monotonic()
            await world.apply(manifests.topic(name, str(topic), migrateFrom={"topic": str(topic)}, subscriptions=()))
            await world.until_ready(name, within_seconds=180)
            ready_seconds = time.monotonic() - began
            await asyncio.sleep(3.0)
            traffic.stop()
            await traffic_task
            stored = set(traffic.stored)
            await until(
                lambda: stored <= reading.received.keys() and stored <= {number for _, number, _, _ in stream.received},
                what="everything has come",
                within_seconds=_SETTLE_SECONDS,
            )
            got: Counter[int] = Counter(number for _, number, _, _ in stream.received)
        queue_task.cancel()
        await asyncio.gather(queue_task, return_exceptions=True)
        return Migrated(
            retained=retained,
            sent=traffic.count - retained,
            lost={QUEUE: len(stored - reading.received.keys()), STREAM: len(stored - got.keys())},
            repeated={QUEUE: _repeated(reading.received), STREAM: _repeated(got)},
            disorder=_disorder(stream.by_key),
            failed=traffic.failed,
            latencies_ms=traffic.latencies_ms,
            ready_seconds=ready_seconds,
            layout=await world.layout(name),
        )


def _repeated(received: Counter[int]) -> int:
    return sum(count - 1 for count in received.values())


def _disorder(by_key: dict[str, list[int]]) -> int:
    """Messages that came for the first time after a later one of their key."""
    found = 0
    for numbers in by_key.values():
        latest = -1
        for number in dict.fromkeys(numbers):
            found += number < latest
            latest = max(latest, number)
    return found
