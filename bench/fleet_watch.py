"""When each of many topics became Ready, as the API server tells it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.world import is_ready


@dataclass(slots=True)
class FleetWatch:
    """What a watch of all topics of a namespace has told so far.

    Args:
        ready_at_seconds: monotonic time at which a topic was Ready first, by its object's name.
        events: how many there were, whoever made them.
    """

    ready_at_seconds: dict[str, float] = field(default_factory=dict)
    events: int = 0
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_ready(self, count: int, *, within_seconds: float) -> None:
        """Wait until so many topics have been Ready. Raises TimeoutError."""
        async with asyncio.timeout(within_seconds):
            while len(self.ready_at_seconds) < count:
                self._more.clear()
                await self._more.wait()

    def take(self, line: bytes) -> None:
        """Take in one event of the watch."""
        event = json.loads(line)
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch ended: {event['object']}")
        self.events += 1
        body = event["object"]
        name = body["metadata"]["name"]
        if name not in self.ready_at_seconds and is_ready(body):
            self.ready_at_seconds[name] = time.perf_counter()
            self._more.set()


@asynccontextmanager
async def watched_fleet(namespace: str) -> AsyncIterator[FleetWatch]:
    """Watch all topics of a namespace, in which there are none yet."""
    fleet = FleetWatch()
    endpoint = load_endpoint()
    query = {"watch": "true", "timeoutSeconds": "86400"}
    async with (
        aiohttp.ClientSession(headers=endpoint.headers, timeout=aiohttp.ClientTimeout(total=None)) as session,
        session.get(
            endpoint.server + TOPICS.path(namespace), params=query, ssl=endpoint.ssl_context or True
        ) as response,
    ):
        response.raise_for_status()

        async def read() -> None:
            buffer = b""
            async for chunk in response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    fleet.take(line)

        reading = asyncio.create_task(read())
        try:
            yield fleet
            if reading.done():
                raise RuntimeError("the watch ended before its time")
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
