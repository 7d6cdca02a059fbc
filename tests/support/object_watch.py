"""A bare watch of objects: what the API server has committed, and when, told by itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from scalable_topics_operator.cluster.kube_client import Resource
from scalable_topics_operator.cluster.kube_login import load_endpoint

Seen = list[tuple[float, str, dict[str, Any]]]
"""Monotonic time, type of the event, and the object."""


@asynccontextmanager
async def watched(
    resource: Resource, namespace: str, take: Callable[[float, dict[str, Any]], None], **query: str
) -> AsyncIterator[asyncio.Task[None]]:
    """Have events of a watch taken in as they come; answers the task that does it, which ends where the watch ends.

    Args:
        resource: of which kind.
        namespace: where.
        take: takes in each event, with the monotonic time at which it came; what it raises ends the watch.
        query: further parameters of the request.
    """
    endpoint = load_endpoint()
    async with (
        aiohttp.ClientSession(headers=endpoint.headers, timeout=aiohttp.ClientTimeout(total=None)) as session,
        session.get(
            endpoint.server + resource.path(namespace),
            params={"watch": "true", **query},
            ssl=endpoint.ssl_context or True,
        ) as response,
    ):
        assert response.status == 200, await response.text()

        async def read() -> None:
            buffer = b""
            async for chunk in response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                at_seconds = time.monotonic()
                for line in lines:
                    take(at_seconds, json.loads(line))

        reading = asyncio.create_task(read())
        try:
            yield reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def watched_object(resource: Resource, namespace: str, name: str) -> AsyncIterator[Seen]:
    """Everything that happens to an object meanwhile, in the order of the commits."""
    seen: Seen = []

    def take(at_seconds: float, event: dict[str, Any]) -> None:
        seen.append((at_seconds, event["type"], event["object"]))

    async with watched(resource, namespace, take, fieldSelector=f"metadata.name={name}"):
        yield seen
