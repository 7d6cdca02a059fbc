"""A watch of many topics, and its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench.fleet_watch import FleetWatch, watched_fleet
from tests.unit.cli.kubeconfig_file import answering

_READY = {"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}}


def _event(name: str, version: str = "1", /, **body: Any) -> dict[str, Any]:
    metadata = {"name": name, "generation": 1, "resourceVersion": version}
    return {"type": "MODIFIED", "object": {"metadata": metadata, **body}}


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


async def test_a_watch_that_the_api_server_ends_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [
        [_event("a", "7", **_READY)],
        [_event("b", "9", **_READY), {"type": "ERROR", "object": {"code": 410, "message": "too old"}}],
        [_event("a", "11", **_READY), _event("c", "12", **_READY)],
    ]
    begun_at: list[str | None] = []
    open_ended = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        begun_at.append(request.query.get("resourceVersion"))
        response = web.StreamResponse()
        await response.prepare(request)
        for event in told[len(begun_at) - 1]:
            await response.write(json.dumps(event).encode() + b"\n")
        if len(begun_at) == len(told):
            await open_ended.wait()
        return response

    async with answering(tmp_path, answer) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        async with watched_fleet("shop") as fleet:
            await fleet.until_ready(3, within_seconds=30)
        open_ended.set()
    assert begun_at == [None, "7", None]
    assert list(fleet.ready_at_seconds) == ["a", "b", "c"]
