"""A bare watch of one object: what the API server has committed, and when, told by itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from scalable_topics_operator.cluster.kube_client import Resource
from scalable_topics_operator.cluster.kube_login import load_endpoint

Seen = list[tuple[float, str, dict[str, Any]]]
"""Monotonic time, type of the event, and the object."""


@asynccontextmanager
async def watched_object(resource: Resource, namespace: str, name: str) -> AsyncIterator[Seen]:
    """Everything that happens to an object meanwhile, in the order of the commits."""
    seen: Seen = []
    endpoint = load_endpoint()
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}"}
    async with (
        aiohttp.ClientSession(headers=endpoint.headers, timeout=aiohttp.ClientTimeout(total=None)) as session,
        session.get(
            endpoint.server + resource.path(namespace), params=query, ssl=endpoint.ssl_context or True
        ) as response,
    ):
        assert response.status == 200, await response.text()

        async def read() -> None:
            buffer = b""
            async for chunk in response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                at_seconds = time.monotonic()
                for line in lines:
                    event = json.loads(line)
                    seen.append((at_seconds, event["type"], event["object"]))

        reading = asyncio.create_task(read())
        try:
            yield seen
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
