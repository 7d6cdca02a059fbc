"""Stream consumers that read until they are stopped, and what they got, in the order in which they got it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Self

from scalable_topics.sdk import StreamConsumer


class OrderedReading:
    """Reads with any number of consumers while it is entered, acknowledging batch by batch.

    Args:
        acknowledge: acknowledge what was received.
    """

    def __init__(self, *consumers: StreamConsumer, acknowledge: bool = True) -> None:
        self._acknowledge = acknowledge
        self._consumers = list(consumers)
        self._tasks: dict[StreamConsumer, asyncio.Task[None]] = {}
        self._silent: set[StreamConsumer] = set()
        self._more = asyncio.Event()
        self.received: list[tuple[str, int, int, str]] = []
        """Key, number, segment and consumer of every message."""

    async def __aenter__(self) -> Self:
        for consumer in self._consumers:
            self.join(consumer)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for consumer in list(self._tasks):
            await self.leave(consumer)

    def join(self, consumer: StreamConsumer) -> None:
        """Read with one more consumer."""
        self._tasks[consumer] = asyncio.create_task(self._read(consumer))

    async def leave(self, consumer: StreamConsumer) -> None:
        """Read with one consumer less; what it received is acknowledged."""
        task = self._tasks.pop(consumer)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def hush(self, consumer: StreamConsumer) -> None:
        """Acknowledge nothing more with a consumer; what it receives from here on comes again elsewhere."""
        self._silent.add(consumer)

    @property
    def in_order(self) -> dict[str, list[int]]:
        """Numbers in the order in which each was received first, by key."""
        return {key: list(dict.fromkeys(numbers)) for key, numbers in self.by_key.items()}

    @property
    def by_key(self) -> dict[str, list[int]]:
        """Numbers in the order in which they were received, by key."""
        found: dict[str, list[int]] = defaultdict(list)
        for key, number, _, _ in self.received:
            found[key].append(number)
        return found

    def readers(self, segment_id: int) -> set[str]:
        """Names of the consumers that got something of a segment."""
        return {name for _, _, found, name in self.received if found == segment_id}

    async def until(self, count: int, *, within_seconds: float = 60.0) -> None:
        """Wait until so many messages have been received. Raises what a consumer raised, or TimeoutError."""
        await self._until(lambda: len(self.received) >= count, within_seconds)

    async def until_different(self, count: int, *, within_seconds: float = 60.0) -> None:
        """Wait until so many have been received, those that came again not counted. Errors are those of `until`."""
        await self._until(lambda: len({number for _, number, *_ in self.received}) >= count, within_seconds)

    async def _until(self, holds: Callable[[], bool], within_seconds: float) -> None:
        async with asyncio.timeout(within_seconds):
            while not holds():
                for task in self._tasks.values():
                    if task.done():
                        task.result()
                self._more.clear()
                waiting = asyncio.create_task(self._more.wait())
                await asyncio.wait({waiting, *self._tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()

    async def _read(self, consumer: StreamConsumer) -> None:
        while True:
            messages = await consumer.receive_many(20)
            for message in messages:
                key = message.key
                assert isinstance(key, str)
                self.received.append((key, int(message.data), message.segment_id, consumer.consumer_name))
            if self._acknowledge and consumer not in self._silent:
                await consumer.acknowledge_cumulative(messages[-1])
            self._more.set()
