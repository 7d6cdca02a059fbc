"""A producer that numbers its messages by key, and things that happen again and again meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from scalable_topics.sdk import OutgoingMessage, Producer
from tests.support.guarantee_checker import Numbered

_AT_ONCE = 10_000


class NumberedSender:
    """Sends to some keys by turns.

    Args:
        producer: sends.
        keys: that take turns.
        per_second: pace of `run`, above 0.
    """

    def __init__(self, producer: Producer, keys: Sequence[str], per_second: float = 25.0) -> None:
        self._producer = producer
        self._keys = keys
        self._per_second = per_second
        self._number = 0
        self.sent: list[tuple[Numbered, OutgoingMessage]] = []

    async def run(self, stopping: asyncio.Event) -> None:
        """Send at a steady pace until told to stop, then wait for the outcomes."""
        due = time.monotonic()
        while not stopping.is_set():
            message = self._next()
            self.sent.append((message, await self._producer.submit(message.payload(), key=message.key)))
            due += 1 / self._per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await self._producer.flush()

    async def send(self, count: int) -> None:
        """Send so many as fast as it goes, and forget them once they are stored. Raises what a send raised."""
        while count > 0:
            batch = []
            for _ in range(min(count, _AT_ONCE)):
                message = self._next()
                batch.append(await self._producer.submit(message.payload(), key=message.key))
            await self._producer.flush()
            for outcome in batch:
                outcome.result()
            count -= len(batch)

    def acknowledged(self) -> list[Numbered]:
        """What `run` has sent, all of it stored. Raises what a send raised."""
        for _, outcome in self.sent:
            outcome.result()
        return [message for message, _ in self.sent]

    def counts(self) -> dict[tuple[str, str], int]:
        """How many messages of each of its keys there are, by producer and key."""
        rounds, rest = divmod(self._number, len(self._keys))
        return {(self._producer.name, key): rounds + (place < rest) for place, key in enumerate(self._keys)}

    def _next(self) -> Numbered:
        rounds, place = divmod(self._number, len(self._keys))
        self._number += 1
        return Numbered(self._producer.name, self._keys[place], rounds)


async def repeat(seconds: float, act: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
    """Act every so many seconds, the first time after half of that; what takes longer is followed at once."""
    due = time.monotonic() + seconds / 2
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.0, due - time.monotonic())):
                await stopping.wait()
        if stopping.is_set():
            return
        due = max(due + seconds, time.monotonic())
        await act()
