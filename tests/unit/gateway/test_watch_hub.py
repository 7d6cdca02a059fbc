"""Who is told what, and in which order, whenever it comes and goes."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway import watch_hub as watch_hub_module
from scalable_topics_operator.gateway.watch_hub import WatchHub
from scalable_topics_operator.operations.journal import Step
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.gateway.pulsar_cluster import Clusters
from tests.unit.gateway.topics import KEY, ORDERS, created, split, splitting, topic_body


class Leader:
    """Implements `Leaders`."""

    peer: Peer | None = Peer("a", "10.0.0.1:81", is_me=True, term=1)

    def leader_of(self, key: ObjectKey) -> Peer | None:
        return self.peer


class Told:
    """A watcher that notes what it is told."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.ended: list[int] = []

    def send(self, frame: bytes) -> None:
        self.frames.append(json.loads(frame))

    def end(self, code: int, reason: str) -> None:
        self.ended.append(code)

    def types(self) -> list[str]:
        return [frame["type"] for frame in self.frames]

    def layouts(self) -> list[tuple[int, bool]]:
        found = [frame["layout"] for frame in self.frames if frame["type"] == "layout"]
        return [(layout["epoch"], "announcement" in layout) for layout in found]


async def told() -> None:
    """Until all that has happened was told."""
    for _ in range(10):
        await asyncio.sleep(0)


class World:
    """A hub over a cache that a test feeds."""

    def __init__(self) -> None:
        self.cache = ObjectCache()
        self.leaders = Leader()
        self.hub = WatchHub(self.cache, self.leaders, Clusters(), 10_000)
        self.version = 0

    def commit(self, state: TopicState, uid: str = "uid-1", **status: Any) -> None:
        self.version += 1
        self.cache.observe(TOPICS, topic_body(state, self.version, uid=uid, status=status))

    def watcher(self, since: str | None = None) -> Told:
        made = Told()
        self.hub.join(made, ORDERS, KEY, since=since)
        return made


async def test_first_the_state_then_every_change_in_the_order_of_the_commits() -> None:
    world = World()
    start = created()
    world.commit(start)
    watcher = world.watcher()
    # All before anybody has had time to tell.
    world.commit(splitting(start, 0, Step.CREATING))
    world.commit(splitting(start, 0, Step.ANNOUNCING))
    world.commit(splitting(start, 0, Step.SEALING))
    world.commit(split(start, 0))
    assert watcher.layouts() == [(0, False)], "whoever commits is not held up"
    late = world.watcher()
    assert late.layouts() == [(1, False)]
    await told()
    assert watcher.layouts() == [(0, False), (0, True), (1, False)]
    assert late.layouts() == [(1, False)], "what was on its way to others is older than what it was told first"


async def test_a_status_that_tells_clients_nothing_new_is_not_told() -> None:
    world = World()
    world.commit(created())
    watcher = world.watcher()
    world.commit(created(), conditions=[{"type": "Ready"}])
    await told()
    assert watcher.layouts() == [(0, False)]


async def test_whoever_comes_back_to_the_same_state_is_told_so_and_then_of_changes() -> None:
    """Hazard A5-25687."""
    world = World()
    world.commit(created())
    position = world.watcher().frames[0]["position"]
    back = world.watcher(position)
    assert back.frames == [{"type": "unchanged", "position": position}]
    world.commit(split(created(), 0))
    await told()
    assert back.types() == ["unchanged", "layout"]
    assert world.watcher(position).types() == ["layout"]
    assert world.watcher("nonsense").types() == ["layout"]


async def test_a_topic_that_is_being_created_is_told_once_it_has_a_layout() -> None:
    world = World()
    world.commit(TopicState())
    watcher = world.watcher()
    assert watcher.frames == []
    world.commit(created(3))
    await told()
    assert watcher.layouts() == [(0, False)]


async def test_the_last_state_of_a_topic_that_goes_is_told_with_whom_led_it() -> None:
    """Once the object has gone, its shard is not known any more: whoever is asked then may name another leader."""
    world = World()
    world.commit(created())
    led_by = Leader.peer
    watcher = world.watcher()
    world.commit(split(created(), 0))
    world.cache.remove(KEY, "uid-1")
    world.leaders.peer = Peer("b", "10.0.0.2:81", is_me=False, term=7)
    await told()
    assert watcher.types() == ["layout", "layout", "deleted"]
    assert led_by is not None
    assert {frame["leader"]["identity"] for frame in watcher.frames if frame["type"] == "layout"} == {led_by.identity}


@pytest.mark.parametrize("how", ["watched", "replaced", "missed by the watch"])
async def test_a_deleted_topic_is_told_and_its_watchers_go(how: str) -> None:
    """Hazard A5-26066."""
    world = World()
    world.commit(created())
    watcher = world.watcher()
    if how == "watched":
        world.cache.remove(KEY, "uid-1")
    elif how == "replaced":
        world.commit(created(uid="uid-2"), uid="uid-2")
    else:
        world.cache.drop_unlisted(TOPICS, None, frozenset(), "9")
    await told()
    assert (watcher.types(), watcher.ended) == (["layout", "deleted"], [1000])
    world.hub.leave(watcher, KEY)
    if how != "replaced":
        gone = world.watcher()
        assert (gone.types(), gone.ended) == (["deleted"], [1000])


async def test_a_record_that_breaks_an_invariant_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.commit(created())
    watcher = world.watcher()
    body = topic_body(split(created(), 0), 9)
    del body["status"]["layout"]["segments"]
    world.cache.observe(TOPICS, body)
    await told()
    assert watcher.layouts() == [(0, False)]
    assert "has no valid record to show" in caplog.text


async def test_another_leader_is_told_with_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_hub_module, "_LEADERS_SECONDS", 0.01)
    world = World()
    world.commit(created())
    watcher = world.watcher()
    running = asyncio.create_task(world.hub.run())
    for peer in (Peer("b", "10.0.0.2:81", is_me=False, term=2), None, Peer("b", "10.0.0.2:81", is_me=False, term=3)):
        told = len(watcher.frames)
        world.leaders.peer = peer
        async with asyncio.timeout(5):
            while len(watcher.frames) == told:
                await asyncio.sleep(0.01)
        expected = None if peer is None else {"identity": peer.identity, "address": peer.address}
        assert watcher.frames[-1]["leader"] == expected
    assert [frame["layout"]["term"] for frame in watcher.frames] == [1, 2, 2, 3]
    running.cancel()


async def test_thousands_of_watchers_hold_up_nothing_else_and_see_everything_in_order() -> None:
    world = World()
    start = created()
    world.commit(start)
    watchers = [world.watcher() for _ in range(1000)]
    world.commit(splitting(start, 0, Step.ANNOUNCING))
    world.commit(split(start, 0))
    turns = 0
    while watchers[-1].layouts()[-1] != (1, False):
        await asyncio.sleep(0)
        turns += 1
        # Some come and go meanwhile.
        if turns == 5:
            world.hub.leave(watchers[500], KEY)
            late = world.watcher()
    assert turns >= 20
    assert late.layouts() == [(1, False)]
    for number, watcher in enumerate(watchers):
        if number != 500:
            assert watcher.layouts() == [(0, False), (0, True), (1, False)]


async def test_whoever_has_left_is_told_nothing_and_costs_nothing() -> None:
    """Hazard A5-25650."""
    world = World()
    world.commit(created())
    first, second = world.watcher(), world.watcher()
    world.hub.leave(first, KEY)
    world.hub.leave(first, KEY)
    world.commit(split(created(), 0))
    await told()
    assert (first.layouts(), second.layouts()) == ([(0, False)], [(0, False), (1, False)])
    world.hub.leave(second, KEY)
    world.commit(split(split(created(), 0), 1))
    await told()
    assert second.layouts() == [(0, False), (1, False)]
    assert world.watcher().layouts() == [(2, False)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["announce", "call off", "split", "noise", "join", "leave", "turn"]), st.integers(0)),
        max_size=30,
    )
)
def test_every_watcher_sees_the_end_of_one_and_the_same_story(events: list[tuple[str, int]]) -> None:
    async def play() -> None:
        world = World()
        state = created()
        world.commit(state)
        from_the_beginning = world.watcher()
        watchers: list[Told] = []
        for event, number in events:
            segment = sorted(one.segment_id for one in state.layout.active)[number % len(state.layout.active)]  # type: ignore[union-attr]
            if event == "announce":
                world.commit(splitting(state, segment, Step.ANNOUNCING, announcements=1 + number % 3))
            elif event == "call off":
                world.commit(splitting(state, segment, Step.ROLLING_BACK))
            elif event == "split":
                state = split(state, segment)
                world.commit(state)
            elif event == "noise":
                world.commit(state, lastAction=str(number))
            elif event == "join":
                watchers.append(world.watcher())
            elif event == "leave" and watchers:
                world.hub.leave(watchers.pop(number % len(watchers)), KEY)
            elif event == "turn":
                await asyncio.sleep(0)
        await told()
        story = [frame["position"] for frame in from_the_beginning.frames]
        assert all(one != other for one, other in pairwise(story)), "nothing is told twice in a row"
        for watcher in watchers:
            assert [frame["position"] for frame in watcher.frames] == story[-len(watcher.frames) :]

    asyncio.run(play())
