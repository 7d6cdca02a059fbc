"""Callers wait for objects: for what is there, for what comes, however shortly, and never for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.waiting import ObjectWaits

KEY = ObjectKey(SEGMENT_OPERATIONS.plural, "shop", "split-0")


def _operation(version: int, phase: str) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": "split-0", "uid": "uid", "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {"phase": phase}}


def _succeeded(body: dict[str, Any] | None) -> str | None:
    phase: str | None = (body or {}).get("status", {}).get("phase")
    return phase if phase == "Succeeded" else None


def _gone(body: dict[str, Any] | None) -> bool | None:
    return True if body is None else None


async def test_what_is_there_is_not_waited_for() -> None:
    cache = ObjectCache()
    waits = ObjectWaits(cache, [SEGMENT_OPERATIONS], seconds=0.0)
    assert await waits.until(KEY, _gone)
    cache.observe(SEGMENT_OPERATIONS, _operation(1, "Succeeded"))
    assert await waits.until(KEY, _succeeded) == "Succeeded"


async def test_what_comes_is_seen_even_if_it_is_gone_at_once() -> None:
    """As a SegmentOperation whose TTL is 0."""
    cache = ObjectCache()
    waits = ObjectWaits(cache, [SEGMENT_OPERATIONS], seconds=5.0)
    cache.observe(SEGMENT_OPERATIONS, _operation(1, "Running"))
    waiting = asyncio.create_task(waits.until(KEY, _succeeded))
    await asyncio.sleep(0)
    cache.observe(SEGMENT_OPERATIONS, _operation(2, "Succeeded"))
    cache.remove(KEY)
    assert await waiting == "Succeeded"
    assert waits.latest(KEY) is None


async def test_whoever_waits_too_long_or_at_the_end_is_told_nothing() -> None:
    cache = ObjectCache()
    assert await ObjectWaits(cache, [SEGMENT_OPERATIONS], seconds=0.01).until(KEY, _succeeded) is None
    waits = ObjectWaits(cache, [SEGMENT_OPERATIONS], seconds=60.0)
    waiting = [asyncio.create_task(waits.until(KEY, _succeeded)) for _ in range(3)]
    await asyncio.sleep(0)
    await waits.close()
    assert await asyncio.gather(*waiting) == [None] * 3


async def test_only_so_many_wait() -> None:
    waits = ObjectWaits(ObjectCache(), [SEGMENT_OPERATIONS], seconds=60.0, most=1)
    waits.require_room()
    waiting = asyncio.create_task(waits.until(KEY, _succeeded))
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refusal:
        waits.require_room()
    assert refusal.value.status == 429
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    waits.require_room()
