"""Messages that have arrived for an application, and its calls that wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import pulsar

from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.receivers import Receivers
from scalable_topics.sdk.segment_consumer import Received, SegmentConsumer

M = TypeVar("M")


class Inbox(Generic[M]):
    """What the segments of one consumer have received. Belongs to one event loop.

    Args:
        accept: makes of a message what the application gets; None if it is not to get it.
        check: raises what a call is to raise once the consumer is of no use any more.
    """

    def __init__(
        self, accept: Callable[[SegmentConsumer, pulsar.Message], M | None], check: Callable[[], None]
    ) -> None:
        self._accept = accept
        self._check = check
        self._receivers = Receivers(lambda: len(self.arrivals.items))
        self.arrivals: Arrivals[Received] = Arrivals(asyncio.get_running_loop(), self._receivers.wake)

    async def receive(self, timeout_seconds: float | None) -> M:
        """The next message. Raises TimeoutError if there is none in time, and what `check` raises."""
        async with asyncio.timeout(timeout_seconds):
            while True:
                message = self._take()
                if message is not None:
                    return message
                await self._receivers.wait()

    async def receive_many(self, most: int, timeout_seconds: float | None) -> list[M]:
        """As many as are there, at least one and at most `most`; errors are those of `receive`."""
        messages = [await self.receive(timeout_seconds)]
        while len(messages) < most and (message := self._take()) is not None:
            messages.append(message)
        return messages

    def wake_all(self) -> None:
        """Have every call that waits look again: `check` has something to raise."""
        self._receivers.wake_all()

    def clear(self) -> None:
        """Forget what has arrived."""
        self.arrivals.items.clear()

    def _take(self) -> M | None:
        self._check()
        items = self.arrivals.items
        while items:
            consumer, message = items.popleft()
            if not consumer.is_stopped:
                consumer.taken()
                accepted = self._accept(consumer, message)
                if accepted is not None:
                    return accepted
        return None
