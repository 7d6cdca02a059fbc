"""Which brokers serve a topic's segments, asked of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from scalable_topics_operator.backends.admin.lookup_api import LookupApi

_AT_A_TIME = 4


async def find_owners(lookups: LookupApi, segments: Mapping[int, str]) -> dict[int, str]:
    """Service URLs of the brokers that serve segments, by the segments' ids.

    Args:
        lookups: of the topic's cluster.
        segments: full names of their topics, by their ids.

    Raises BackendError.
    """
    permits = asyncio.Semaphore(_AT_A_TIME)

    async def find(topic: str) -> str:
        async with permits:
            return await lookups.service_url(topic)

    urls = await asyncio.gather(*(find(topic) for topic in segments.values()))
    return {segment_id: url for segment_id, url in zip(segments, urls, strict=True) if url}
