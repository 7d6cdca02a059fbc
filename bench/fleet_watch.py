"""When each of many topics became Ready, as the API server tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.object_watch import watched
from tests.support.world import is_ready


@dataclass(slots=True)
class FleetWatch:
    """What a watch of all topics of a namespace has told so far.

    Args:
        ready_at_seconds: monotonic time at which a topic was Ready first, by its object's name.
    """

    ready_at_seconds: dict[str, float] = field(default_factory=dict)
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _reading: asyncio.Future[None] | None = None

    def follow(self, reading: asyncio.Future[None]) -> None:
        """Be told by this, whose end is the end of the watch."""
        self._reading = reading
        reading.add_done_callback(lambda _: self._more.set())

    async def until_ready(self, count: int, *, within_seconds: float) -> None:
        """Wait until so many topics have been Ready. Raises TimeoutError, or RuntimeError as the watch ends."""
        async with asyncio.timeout(within_seconds):
            while len(self.ready_at_seconds) < count:
                self.require_going_on()
                self._more.clear()
                await self._more.wait()

    def require_going_on(self) -> None:
        """Raises RuntimeError if the watch has ended."""
        if self._reading is not None and self._reading.done():
            raise RuntimeError("the watch ended before its time") from self._reading.exception()

    def take(self, at_seconds: float, event: dict[str, Any]) -> None:
        """Take in one event of the watch."""
        body = event["object"]
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch ended: {body}")
        name = body["metadata"]["name"]
        if name not in self.ready_at_seconds and is_ready(body):
            self.ready_at_seconds[name] = at_seconds
            self._more.set()


@asynccontextmanager
async def watched_fleet(namespace: str) -> AsyncIterator[FleetWatch]:
    """Watch all topics of a namespace, in which there are none yet."""
    fleet = FleetWatch()
    async with watched(TOPICS, namespace, fleet.take, timeoutSeconds="86400") as reading:
        fleet.follow(reading)
        yield fleet
        fleet.require_going_on()
