"""Numbered messages of several keys, sent asynchronously and without pause by one producer."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import TracebackType
from typing import Self

from scalable_topics.sdk import OutgoingMessage, Producer


class KeyedTraffic:
    """Sends while it is entered; afterwards every message has an outcome.

    Args:
        producer: sends; its payloads are numbers, counted up over all keys.
        keys: how many keys take turns.
        burst: messages sent without a pause.
        pause_seconds: between bursts.
        first: the first number, for traffic that follows other traffic.
    """

    def __init__(
        self, producer: Producer, *, keys: int = 20, burst: int = 20, pause_seconds: float = 0.01, first: int = 0
    ) -> None:
        self._producer = producer
        self._keys = keys
        self._burst = burst
        self._pause_seconds = pause_seconds
        self._next = first
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self.sent: list[tuple[str, int, OutgoingMessage]] = []

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._send())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Send no more, and wait for the outcomes."""
        self._stopping = True
        if self._task is not None:
            await self._task
        await self._producer.flush()

    async def until(self, count: int) -> None:
        """Wait until so many more messages have been sent."""
        wanted = len(self.sent) + count
        while len(self.sent) < wanted:
            await asyncio.sleep(0.01)

    async def until_stored(self, count: int) -> None:
        """Wait until so many of the messages sent from here on are stored."""
        start = len(self.sent)
        while sum(message.done() and message.exception() is None for _, _, message in self.sent[start:]) < count:
            await asyncio.sleep(0.01)

    @property
    def acknowledged(self) -> dict[str, list[int]]:
        """Numbers of the messages reported as stored, by key."""
        found: dict[str, list[int]] = defaultdict(list)
        for key, number, message in self.sent:
            if message.done() and message.exception() is None:
                found[key].append(number)
        return found

    @property
    def failures(self) -> list[Exception]:
        """Errors of the messages that were not reported as stored."""
        errors = [message.exception() for _, _, message in self.sent if message.done()]
        return [error for error in errors if error is not None]

    async def _send(self) -> None:
        while not self._stopping:
            for _ in range(self._burst):
                key, number = f"key-{self._next % self._keys}", self._next
                self._next += 1
                self.sent.append((key, number, await self._producer.submit(str(number).encode(), key=key)))
            await asyncio.sleep(self._pause_seconds)
