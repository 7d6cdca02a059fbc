"""Who watches which topic: each change of a watched one is made into a frame once, and sent to all of its watchers."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from scalable_topics.layout import LayoutError, TopicName
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_backend import backend_of_topic
from scalable_topics_operator.gateway.segment_owners import find_owners
from scalable_topics_operator.gateway.views import Connections, Leaders
from scalable_topics_operator.gateway.watch_frames import (
    DELETED,
    LayoutFrame,
    layout_frame,
    owners_frame,
    unchanged_frame,
)
from scalable_topics_operator.gateway.websockets import CloseCode
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.operations.topic_state import read_state

logger = logging.getLogger(__name__)

_LEADERS_SECONDS = 2.0
_TOPICS_AT_ONCE = _WATCHERS_AT_ONCE = 100
# A watcher that comes later is told what was found for another, if it is not older.
_OWNERS_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_DELETED = "the topic was deleted"


class Watcher(Protocol):
    """A session that watches a topic."""

    def send(self, frame: bytes) -> None:
        """Send a text frame, without waiting."""

    def end(self, code: int, reason: str) -> None:
        """Close it, after what was sent."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A watcher among the others.

    Args:
        joined_at: number of the last frame that it need not be told, as it came later.
        wants_owners: whether it wants to know which brokers serve the segments.
    """

    joined_at: int
    wants_owners: bool


class _WatchedTopic:
    """One topic with watchers.

    Args:
        topic: its name.
        uid: of its object.
    """

    __slots__ = (
        "_number",
        "_outgoing",
        "_telling",
        "_watchers",
        "asking",
        "frame",
        "leader",
        "owners",
        "owners_at_seconds",
        "topic",
        "uid",
    )

    def __init__(self, topic: TopicName, uid: str) -> None:
        self.topic = topic
        self.uid = uid
        self.leader: Peer | None = None
        self.frame: LayoutFrame | None = None
        self.owners: bytes | None = None
        self.owners_at_seconds = 0.0
        self.asking: asyncio.Task[None] | None = None
        self._watchers: dict[Watcher, _Place] = {}
        self._number = 0
        self._outgoing: deque[tuple[int, bytes, bool]] = deque()
        self._telling: asyncio.Task[None] | None = None

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    @property
    def owners_wanted(self) -> bool:
        return any(place.wants_owners for place in self._watchers.values())

    def add(self, watcher: Watcher, *, wants_owners: bool) -> None:
        self._watchers[watcher] = _Place(self._number, wants_owners)

    def remove(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def send(self, frame: bytes, *, of_owners: bool = False) -> None:
        """Send a frame to all, or to those who want to know the owners, after what they are being sent."""
        self._number += 1
        self._outgoing.append((self._number, frame, of_owners))
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    def give_up_asking(self) -> None:
        self.owners = None
        if self.asking is not None:
            self.asking.cancel()
            self.asking = None

    async def _tell(self) -> None:
        while self._outgoing:
            number, frame, of_owners = self._outgoing.popleft()
            for count, (watcher, place) in enumerate(list(self._watchers.items())):
                if count % _WATCHERS_AT_ONCE == _WATCHERS_AT_ONCE - 1:
                    # Thousands of watchers hold up nothing else.
                    await asyncio.sleep(0)
                if place.joined_at < number and (place.wants_owners or not of_owners):
                    watcher.send(frame)
                    if frame is DELETED:
                        watcher.end(CloseCode.DONE, _DELETED)
        self._telling = None


class WatchHub:
    """All watched topics of this replica, which need not lead them.

    Args:
        cache: the objects.
        leaders: who leads what.
        connections: the topics' Pulsar clusters.
        hold_ms: how long producers hold after an announcement, in milliseconds.
    """

    def __init__(self, cache: ObjectCache, leaders: Leaders, connections: Connections, hold_ms: int) -> None:
        self._cache = cache
        self._leaders = leaders
        self._connections = connections
        self._hold_ms = hold_ms
        self._topics: dict[ObjectKey, _WatchedTopic] = {}
        self._news: deque[tuple[ObjectKey, Body | None, Peer | None]] = deque()
        self._is_to_tell = False
        cache.listen(TOPICS, self._on_change)

    def join(
        self, watcher: Watcher, topic: TopicName, key: ObjectKey, *, since: str | None = None, owners: bool = False
    ) -> None:
        """Send a watcher a topic's state, and every change from now on until `leave`.

        Args:
            watcher: a session.
            topic: the topic's name.
            key: of its object.
            since: the position that the watcher has seen last, if it has.
            owners: whether it wants to know which brokers serve the segments.
        """
        # What waits to be told is older than what the cache holds.
        self._tell_news()
        found = self._topics.get(key)
        if found is None:
            body = self._cache.get(key)
            if body is None:
                watcher.send(DELETED)
                watcher.end(CloseCode.DONE, _DELETED)
                return
            found = self._topics[key] = _WatchedTopic(topic, body["metadata"]["uid"])
            self._take(key, found, body, self._leaders.leader_of(key))
        found.add(watcher, wants_owners=owners)
        if found.frame is None:
            # Being created: the first layout is a change.
            return
        is_known = since == found.frame.position
        watcher.send(unchanged_frame(found.frame.position) if is_known else found.frame.frame)
        if not owners:
            return
        if found.owners is not None and time.monotonic() - found.owners_at_seconds < _OWNERS_SECONDS:
            watcher.send(found.owners)
        elif found.asking is None:
            self._ask_owners(key, found)

    def leave(self, watcher: Watcher, key: ObjectKey) -> None:
        """Tell a watcher nothing more."""
        found = self._topics.get(key)
        if found is None:
            return
        found.remove(watcher)
        if not found.owners_wanted:
            found.give_up_asking()
        if not found.is_watched:
            del self._topics[key]

    async def run(self) -> None:
        """Notice other leaders, until cancelled."""
        while True:
            await asyncio.sleep(_LEADERS_SECONDS)
            for number, (key, found) in enumerate(list(self._topics.items())):
                if number % _TOPICS_AT_ONCE == _TOPICS_AT_ONCE - 1:
                    await asyncio.sleep(0)
                # What waits to be told comes first.
                self._tell_news()
                body = self._cache.get(key)
                if self._topics.get(key) is not found or body is None:
                    continue
                leader = self._leaders.leader_of(key)
                if leader != found.leader:
                    self._change(key, found, body, leader)

    def close(self) -> None:
        """Give up what is being asked."""
        for found in self._topics.values():
            found.give_up_asking()

    def _on_change(self, key: ObjectKey, body: Body | None) -> None:
        if key not in self._topics:
            return
        # Not here: whoever has told the cache has more urgent things to do. Who leads it is not known any more once the
        # object has gone, which it may have when this is told.
        self._news.append((key, body, self._leaders.leader_of(key)))
        if not self._is_to_tell:
            self._is_to_tell = True
            asyncio.get_running_loop().call_soon(self._tell_news)

    def _tell_news(self) -> None:
        self._is_to_tell = False
        while self._news:
            key, body, leader = self._news.popleft()
            found = self._topics.get(key)
            if found is None:
                continue
            if body is None or body["metadata"]["uid"] != found.uid:
                self._forget(key, found)
            else:
                self._change(key, found, body, leader)

    def _forget(self, key: ObjectKey, found: _WatchedTopic) -> None:
        del self._topics[key]
        found.give_up_asking()
        found.send(DELETED)

    def _change(self, key: ObjectKey, found: _WatchedTopic, body: Body, leader: Peer | None) -> None:
        before = found.frame
        self._take(key, found, body, leader)
        after = found.frame
        if after is None or (before is not None and before.position == after.position):
            return
        found.send(after.frame)
        found.give_up_asking()
        if found.owners_wanted:
            self._ask_owners(key, found)

    def _take(self, key: ObjectKey, found: _WatchedTopic, body: Body, leader: Peer | None) -> None:
        """Make the frame of what an object says, if it says anything."""
        found.leader = leader
        least_term = found.frame.term if found.frame is not None else 0
        try:
            state = read_state(body.get("status") or {})
            frame = layout_frame(
                found.topic,
                state,
                found.leader,
                hold_ms=self._hold_ms,
                least_term=least_term,
                backend=backend_of_topic(body),
            )
        except (LayoutError, KeyError, TypeError, ValueError) as error:
            # Its conditions say so; nothing acts on it, and watchers keep what they have.
            logger.warning("%s has no valid record to show: %s", key, error)
            return
        if frame is not None:
            found.frame = frame

    def _ask_owners(self, key: ObjectKey, found: _WatchedTopic) -> None:
        found.asking = asyncio.create_task(self._tell_owners(key, found))

    async def _tell_owners(self, key: ObjectKey, found: _WatchedTopic) -> None:
        assert found.frame is not None
        epoch, segments = found.frame.epoch, found.frame.active
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            body = self._cache.get(key)
            handle = self._connections.handle(connection_of(body)) if body is not None else None
            try:
                if handle is not None:
                    owners = await find_owners(handle.admin.lookups, segments)
                    break
            except BackendError as error:
                logger.info("%s: the owners of its segments are not known: %s", key, error)
            await asyncio.sleep(random.uniform(pause_seconds / 2, pause_seconds))
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
        found.asking = None
        found.owners, found.owners_at_seconds = owners_frame(epoch, owners), time.monotonic()
        found.send(found.owners, of_owners=True)
