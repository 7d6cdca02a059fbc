"""When each of many topics became Ready, as the API server tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from dev.console import say
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.object_watch import watched
from tests.support.world import is_ready

_GONE = 410
_PAUSE_SECONDS = 0.2


@dataclass(slots=True)
class FleetWatch:
    """What a watch of all topics of a namespace has told so far.

    Args:
        ready_at_seconds: monotonic time at which a topic was Ready first, by its object's name.
    """

    ready_at_seconds: dict[str, float] = field(default_factory=dict)
    _version: str = ""
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
            if body.get("code") != _GONE:
                raise RuntimeError(f"the watch ended: {body}")
            self._version = ""
            return
        self._version = body["metadata"]["resourceVersion"]
        name = body["metadata"]["name"]
        if name not in self.ready_at_seconds and is_ready(body):
            self.ready_at_seconds[name] = at_seconds
            self._more.set()

    async def read(self, namespace: str) -> None:
        """Take in what happens to topics, for ever. Raises what `take` raises, AssertionError if nothing is told."""
        while True:
            begins_at = {"resourceVersion": self._version} if self._version else {}
            async with watched(TOPICS, namespace, self.take, timeoutSeconds="86400", **begins_at) as reading:
                await reading
            # So it does with watches that do not keep up: while thousands of objects are made it has no room for more.
            say("the API server has ended the watch of topics, which goes on where it was")
            await asyncio.sleep(_PAUSE_SECONDS)


@asynccontextmanager
async def watched_fleet(namespace: str) -> AsyncIterator[FleetWatch]:
    """Watch all topics of a namespace, in which there are none yet."""
    fleet = FleetWatch()
    reading = asyncio.create_task(fleet.read(namespace))
    fleet.follow(reading)
    try:
        yield fleet
        fleet.require_going_on()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
