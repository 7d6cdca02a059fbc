"""Keyed messages at a rate that a test sets, spread evenly over the hash ring."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from scalable_topics.sdk import Producer, QueueConsumer

_PULSE_SECONDS = 0.05
_KEYS = 512


class PacedTraffic:
    """Sends while it is entered, and reads if it has a consumer.

    Args:
        producer: sends.
        rate: messages a second, by the seconds since it was entered.
        size_bytes: of a payload.
        consumer: reads everything, if there is one.
    """

    def __init__(
        self,
        producer: Producer,
        rate: Callable[[float], float],
        size_bytes: int = 10,
        consumer: QueueConsumer | None = None,
    ) -> None:
        self._producer = producer
        self._rate = rate
        self._payload = b"x" * size_bytes
        self._consumer = consumer
        self._tasks: list[asyncio.Task[None]] = []
        self.sent = 0

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._send())]
        if self._consumer is not None:
            self._tasks.append(asyncio.create_task(self._receive(self._consumer)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._producer.flush()
        if error is None and (wrong := [one for one in ended if not isinstance(one, asyncio.CancelledError)]):
            raise AssertionError(f"the traffic had ended: {wrong}")

    async def _send(self) -> None:
        began, owed = time.monotonic(), 0.0
        last = began
        while True:
            await asyncio.sleep(_PULSE_SECONDS)
            now = time.monotonic()
            owed += self._rate(now - began) * (now - last)
            last = now
            for _ in range(int(owed)):
                await self._producer.submit(self._payload, key=f"key-{self.sent % _KEYS}")
                self.sent += 1
            owed -= int(owed)

    async def _receive(self, consumer: QueueConsumer) -> None:
        while True:
            await consumer.acknowledge_many(await consumer.receive_many(500))
