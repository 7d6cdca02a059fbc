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
        self._tasks: dict[StreamConsumer, asyncio.Task[None]] = {}
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

    def check(self) -> None:
        """Raise what a consumer has raised."""
        for task in self._tasks.values():
            if task.done():
                task.result()

    async def until(self, count: int, *, within_seconds: float) -> bool:
        """Wait until so many different messages have been received; answers whether they have been in time. Raises what
        a consumer raised.
        """
        deadline = time.monotonic() + within_seconds
        while len({receipt.message for receipt in self.receipts}) < count:
            self.check()
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(1.0)
        return True

    async def _join(self, name: str) -> None:
        async with self._joining:
            consumer = await self._client.stream_consumer(
                self._topic,
                self._subscription,
                consumer_name=name,
                initial_position=pulsar.InitialPosition.Earliest,
            )
        self._tasks[consumer] = asyncio.create_task(self._read(consumer))

    async def _read(self, consumer: StreamConsumer) -> None:
        name = consumer.consumer_name
        while True:
            messages = await consumer.receive_many(_AT_ONCE)
            now_ns = time.monotonic_ns()
            self.receipts += [
                Receipt(Numbered.parse(message.data), message.segment_id, (), name, now_ns, now_ns)
                for message in messages
            ]
            self.counts[name] += len(messages)
            await consumer.acknowledge_cumulative(messages[-1])
