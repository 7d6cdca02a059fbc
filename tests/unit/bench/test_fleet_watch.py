"""A watch of many topics, and its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench.fleet_watch import FleetWatch

_READY = {"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}}


def _event(name: str, **body: Any) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": {"metadata": {"name": name, "generation": 1, "resourceVersion": "1"}, **body}}


async def test_a_topic_counts_from_when_it_was_ready_first() -> None:
    watch = FleetWatch()
    for at_seconds, event in ((1.0, _event("a")), (2.0, _event("a", **_READY)), (3.0, _event("a", **_READY))):
        watch.take(at_seconds, event)
    await watch.until_ready(1, within_seconds=5)
    assert watch.ready_at_seconds == {"a": 2.0}


async def test_nobody_waits_for_a_watch_that_has_ended() -> None:
    watch, reading = FleetWatch(), asyncio.get_running_loop().create_future()
    watch.follow(reading)
    waiting = asyncio.create_task(watch.until_ready(1, within_seconds=60))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="no such") as error:
        watch.take(1.0, {"type": "ERROR", "object": {"code": 403, "message": "no such right"}})
    reading.set_exception(error.value)
    async with asyncio.timeout(5):
        with pytest.raises(RuntimeError, match="before its time") as ended:
            await waiting
    assert ended.value.__cause__ is error.value
    with pytest.raises(RuntimeError, match="before its time"):
        watch.require_going_on()
