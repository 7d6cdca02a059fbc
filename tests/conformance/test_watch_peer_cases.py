"""R38: the peer's cases of watch sessions, which are prose: each is a test here, over a real socket."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from scalable_topics.layout import SegmentLayout, TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.sessions import Session
from scalable_topics_operator.operations.topic_state import TopicState
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.unit.gateway.topics import KEY, created, split, topic_body
from tests.unit.gateway.watch_gate import Gate, frame, gate

CASES = [case for case in load_cases() if case.area == "Watch"]
_REFUSALS = {404: "not-found"}


def _watch_path(topic: TopicName) -> str:
    return f"/admin/v2/scalable/{topic.tenant}/{topic.namespace}/{topic.local}/watch"


def _split_later(epoch: int) -> TopicState:
    """Segment 0, split into 2 and 3 by the change that made the epoch: id 1 went with one that was called off (R9)."""
    layout = SegmentLayout.initial(1)
    layout = layout.reserve(layout.plan_rebucket(0, 2))
    return split(TopicState(layout=replace(layout, epoch=epoch - 1), incarnation="uid-1.0"), 0)


async def _until_nobody_watches(one: Gate) -> None:
    async with asyncio.timeout(5):
        while one.sessions():
            await asyncio.sleep(0.01)


async def _pushed(given: dict[str, Any]) -> dict[str, Any]:
    async with gate() as one:
        one.commit(_split_later(given["epoch"]))
        async with one.watching("?owners=true") as socket:
            layout, owners = (await frame(socket))["layout"], await frame(socket)
    assert layout["epoch"] == owners["epoch"] == given["epoch"]
    # An edge is told at its child; a state in other letters.
    shown = {
        str(segment["id"]): segment["state"].upper()
        + "->" * any(segment["id"] in other["parents"] for other in layout["segments"])
        + ",".join(str(other["id"]) for other in layout["segments"] if segment["id"] in other["parents"])
        for segment in layout["segments"]
    }
    assert shown == given["segments"]
    return {
        "segments": len(layout["segments"]),
        "brokers": sorted(map(int, owners["owners"])),
        "activeHasSealedAt": any("sealedAt" in one for one in layout["segments"] if one["state"] == "Active"),
    }


async def _undeclared(given: dict[str, Any]) -> dict[str, Any]:
    """Of a name that no object declares, whatever there is of it on brokers."""
    async with gate() as one:
        status, _ = await one.refused(path=_watch_path(TopicName("tenant", "ns", "my-regular")))
        assert one.cluster.paths == [], "nothing is asked of brokers, and so nothing is made there"
    return {"error": _REFUSALS[status]}


def _listeners() -> int:
    """Sessions that anything still knows: a hub that went on telling one would keep it."""
    gc.collect()
    return sum(type(found) is Session for found in gc.get_objects())


async def _closed(given: dict[str, Any]) -> dict[str, Any]:
    async with gate() as one:
        before = _listeners()
        async with one.watching() as socket:
            await frame(socket)
            assert _listeners() == before + 1
        await _until_nobody_watches(one)
        # The request's own handler lets go of it a moment later.
        async with asyncio.timeout(5):
            while (left := _listeners() - before) > 0:
                await asyncio.sleep(0.05)
        return {"listeners": left}


async def _told_after_closing(given: dict[str, Any]) -> dict[str, Any]:
    async with gate() as one:
        async with one.watching() as socket:
            await frame(socket)
        await _until_nobody_watches(one)
        one.commit(split(created(), 0))
        async with one.watching() as other:
            assert (await frame(other))["layout"]["epoch"] == 1
        # The first frame of each, and no third.
        return {"reload": one.replica.count("scalable_topics_gateway_session_frames_total", kind="watch") != 2}


async def _told_once(given: dict[str, Any]) -> dict[str, Any]:
    async with gate() as one, one.watching() as socket:
        await frame(socket)
        one.commit(split(created(), 0))
        assert (await frame(socket))["layout"]["epoch"] == 1
        reloads = 1
        one.replica.cache.remove(KEY, "uid-1")
        while (await frame(socket))["type"] != "deleted":
            reloads += 1
        return {"reloads": reloads}


async def _named(given: dict[str, Any]) -> dict[str, Any]:
    """An object may spell its topic in either domain; watchers are told of one."""
    topic = TopicName.parse(given["name"])
    body = topic_body(created(uid="uid-2"), 2, topic=topic, name=topic.local, uid="uid-2")
    body["spec"]["topic"] = given["name"]
    async with gate() as one:
        one.replica.cache.observe(TOPICS, body)
        assert one.replica.cache.get(ObjectKey(TOPICS.plural, "shop", topic.local)) is not None
        async with one.watching(path=_watch_path(topic)) as socket:
            return {"resolved": (await frame(socket))["layout"]["topic"]}


Story = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
STORIES: dict[str, Story] = {
    "pushed graph carries states, edges, epochs, owner addresses of active only": _pushed,
    "synthetic layout, non-partitioned": _undeclared,
    "synthetic layout, 4 partitions": _undeclared,
    "missing topic, auto-create off": _undeclared,
    "close deregisters the listener": _closed,
    "closed session ignores": _told_after_closing,
    "match reloads once": _told_once,
    "pushed name is always topic://": _named,
}


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_peer_case(case: PeerCase) -> None:
    """Hazard A5-25650."""
    judge(case, await STORIES[case.name](case.given))


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == {case.name for case in CASES}
