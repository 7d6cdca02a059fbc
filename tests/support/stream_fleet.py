"""Very many stream consumers of one subscription, in this process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pulsar

from scalable_topics.sdk import Client, StreamConsumer
from tests.support.consumption import Receipt
from tests.support.guarantee_checker import Numbered
from tests.support.waiting import eventually

_AT_ONCE = 100
_JOINING_AT_ONCE = 16


class StreamFleet:
    """Reads and acknowledges with all of them while it is entered.

    Args:
        client: makes the consumers; closed by others.
        topic: full name of the topic.
        subscription: of all consumers.

    Attributes:
        receipts: everything received, in the order of receiving.
        counts: how many messages each consumer has received.
    """

    def __init__(self, client: Client, topic: str, subscription: str) -> None:
        self._client = client
        self._topic = topic
        self._subscription = subscription
        self._consumers: dict[str, StreamConsumer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._joining = asyncio.Semaphore(_JOINING_AT_ONCE)
        self.receipts: list[Receipt] = []
        self.counts: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def join(self, names: Sequence[str]) -> None:
        """Have consumers of these names join, some at a time. Raises what making them raises."""
        await asyncio.gather(*(self._join(name) for name in names))

    async def leave(self, name: str) -> None:
        """Have one stop reading and leave; what it has received is acknowledged."""
        consumer = self._consumers.pop(name)
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await consumer.close()

    def check(self) -> None:
        """Raise what a consumer has raised."""
        for task in self._tasks.values():
            if task.done():
                task.result()

    async def until(self, count: int, *, within_seconds: float = 60.0) -> None:
        """Wait until so many different messages have been received. Raises what a consumer raised, or AssertionError
        if they have not been in time.
        """

        async def received() -> int:
            self.check()
            return len({receipt.message for receipt in self.receipts})

        await eventually(
            received,
            lambda found: found >= count,
            what=f"{count} messages are received",
            within_seconds=within_seconds,
            every_seconds=0.5,
        )

    async def until_busy(self, name: str, *, within_seconds: float = 60.0) -> None:
        """Wait until one receives something more. Raises as `until`."""
        had = self.counts[name]

        async def count() -> int:
            self.check()
            return self.counts[name]

        await eventually(count, lambda found: found > had, what=f"{name} is busy", within_seconds=within_seconds)

    async def _join(self, name: str) -> None:
        async with self._joining:
            consumer = await self._client.stream_consumer(
                self._topic,
                self._subscription,
                consumer_name=name,
                initial_position=pulsar.InitialPosition.Earliest,
            )
        self._consumers[name] = consumer
        self._tasks[name] = asyncio.create_task(self._read(consumer))

    async def _read(self, consumer: StreamConsumer) -> None:
        name = consumer.consumer_name
        while True:
            messages = await consumer.receive_many(_AT_ONCE)
            now_ns = time.monotonic_ns()
            self.receipts += [
                Receipt(Numbered.parse(message.data), message.part, (), name, now_ns, now_ns) for message in messages
            ]
            self.counts[name] += len(messages)
            await consumer.acknowledge_cumulative(messages[-1])
