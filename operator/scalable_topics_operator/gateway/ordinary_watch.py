"""Watch sessions of topics that are not scalable yet: the layout that models them, until there is a real one (pip-475).

Partitions are counted again as long as somebody watches. A migration is told as the record has it; once it is done, the
watchers go over to those of scalable topics.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from scalable_topics.layout import LayoutError, TopicName, incarnation_of, synthetic_layout
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_NAME, canonical_topic
from scalable_topics_operator.gateway.ordinary_topics import OrdinaryTopics, is_ordinary
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.watch_frames import DELETED, LayoutFrame, layout_frame, unchanged_frame
from scalable_topics_operator.gateway.watch_hub import Watcher, WatchHub
from scalable_topics_operator.gateway.websockets import CloseCode
from scalable_topics_operator.operations.topic_state import TopicState, read_state

logger = logging.getLogger(__name__)

_COUNT_SECONDS = 15.0
# Of layouts that no operator has made. With the partitions as counter, more of them win (docs/contract.md).
_UID = "ordinary"
_DELETED = "the topic was deleted"
_ELSEWHERE = "it is a scalable topic now; come again"

Place = tuple[str, ObjectKey]
"""A topic's name and its connection."""


@dataclass(frozen=True, slots=True)
class _Guest:
    """A watcher.

    Args:
        key: of the object that its right was judged by, whether there is one or not.
        wants_owners: whether it wants to know which brokers serve the segments of a scalable topic.
    """

    key: ObjectKey
    wants_owners: bool


@dataclass(slots=True)
class _Watched:
    """One topic with watchers."""

    topic: TopicName
    partitions: int
    frame: LayoutFrame
    guests: dict[Watcher, _Guest] = field(default_factory=dict)
    counting: asyncio.Task[None] | None = None

    def send(self, frame: bytes) -> None:
        for watcher in list(self.guests):
            watcher.send(frame)


class OrdinaryWatch:
    """All ordinary topics that are watched through this replica.

    Args:
        cache: the objects.
        ordinary: counts partitions.
        hub: has the watchers of scalable topics.
        hold_ms: how long producers hold after an announcement, in milliseconds.
    """

    def __init__(self, cache: ObjectCache, ordinary: OrdinaryTopics, hub: WatchHub, hold_ms: int) -> None:
        self._cache = cache
        self._ordinary = ordinary
        self._hub = hub
        self._hold_ms = hold_ms
        self._topics: dict[Place, _Watched] = {}
        self._places: dict[Watcher, Place] = {}
        self._handed_over: dict[Watcher, ObjectKey] = {}
        self._news: set[Place] = set()
        cache.listen(TOPICS, self._on_change)

    def join(
        self,
        watcher: Watcher,
        topic: TopicName,
        connection: ObjectKey,
        partitions: int,
        key: ObjectKey,
        *,
        since: str | None = None,
        owners: bool = False,
    ) -> None:
        """Send a watcher the layout that models a topic, and every change from now on until `leave`.

        Args:
            watcher: a session.
            topic: the topic's name.
            connection: to its Pulsar cluster.
            partitions: its partition count, found a moment ago; 0 if it is not partitioned.
            key: of the object that the watcher's right was judged by; that of another one needs another session.
            since: the position that the watcher has seen last, if it has.
            owners: whether it wants to know the segments' brokers, once it is a scalable topic.
        """
        place = (str(topic), connection)
        found = self._topics.get(place)
        if found is None:
            found = _Watched(topic, partitions, self._frame(topic, partitions, self._declared(place)))
            self._topics[place] = found
            found.counting = asyncio.create_task(self._count(place, found))
        found.partitions = partitions
        found.guests[watcher], self._places[watcher] = _Guest(key, owners), place
        is_known = since == found.frame.position
        watcher.send(unchanged_frame(found.frame.position) if is_known else found.frame.frame)
        # It may have grown, or become a scalable topic, since the others were told.
        self._look(place, found)

    def leave(self, watcher: Watcher) -> None:
        """Tell a watcher nothing more."""
        key = self._handed_over.pop(watcher, None)
        if key is not None:
            self._hub.leave(watcher, key)
        place = self._places.pop(watcher, None)
        found = self._topics.get(place) if place is not None else None
        if place is None or found is None:
            return
        found.guests.pop(watcher, None)
        if not found.guests:
            self._forget(place, found)

    def close(self) -> None:
        """Count nothing any more."""
        for place, found in list(self._topics.items()):
            self._forget(place, found)

    def _on_change(self, key: ObjectKey, body: Body | None) -> None:
        if not self._topics:
            return
        # An object that is gone says nothing of its topic, and takes nothing away that was told: it had no layout.
        name = canonical_topic(body) if body is not None else None
        if body is None or name is None:
            return
        place = (name, connection_of(body))
        if place in self._topics:
            if not self._news:
                # Not here: whoever has told the cache has more urgent things to do.
                asyncio.get_running_loop().call_soon(self._look_at_news)
            self._news.add(place)

    def _look_at_news(self) -> None:
        places, self._news = self._news, set()
        for place in places:
            found = self._topics.get(place)
            if found is not None:
                self._look(place, found)

    def _look(self, place: Place, found: _Watched) -> None:
        """Tell what has changed, or hand the watchers over once there is a layout."""
        declared = self._declared(place)
        scalable = next((key for key, state in declared if state.layout is not None), None)
        if scalable is not None:
            self._hand_over(place, found, scalable)
            return
        frame = self._frame(found.topic, found.partitions, declared)
        if frame.position != found.frame.position:
            found.frame = frame
            found.send(frame.frame)

    def _hand_over(self, place: Place, found: _Watched, key: ObjectKey) -> None:
        guests, found.guests = found.guests, {}
        self._forget(place, found)
        for watcher, guest in guests.items():
            if guest.key != key:
                # Whether it may see this object has not been judged.
                watcher.end(CloseCode.GOING_AWAY, _ELSEWHERE)
                continue
            self._handed_over[watcher] = key
            self._hub.join(watcher, found.topic, key, owners=guest.wants_owners)

    def _send_away(self, place: Place, found: _Watched, code: CloseCode, reason: str) -> None:
        for watcher in found.guests:
            watcher.end(code, reason)
        self._forget(place, found)

    def _forget(self, place: Place, found: _Watched) -> None:
        if self._topics.get(place) is found:
            del self._topics[place]
        if found.counting is not None:
            found.counting.cancel()

    async def _count(self, place: Place, found: _Watched) -> None:
        while self._topics.get(place) is found:
            await asyncio.sleep(_COUNT_SECONDS * random.uniform(0.8, 1.2))
            try:
                name = await self._ordinary.read(found.topic, place[1])
            except Refusal as refusal:
                logger.info("%s: its partitions cannot be counted: %s", found.topic, refusal.reason)
                continue
            if is_ordinary(name):
                found.partitions = name.partitions
                self._look(place, found)
            elif not name.exists:
                found.send(DELETED)
                self._send_away(place, found, CloseCode.DONE, _DELETED)
            elif not self._declared(place):
                # Another installation has it now.
                self._send_away(place, found, CloseCode.GOING_AWAY, _ELSEWHERE)

    def _declared(self, place: Place) -> list[tuple[ObjectKey, TopicState]]:
        """The objects of a topic whose records can be read, with what these say."""
        name, connection = place
        bodies = ((key, body) for key, body in self._cache.find(BY_NAME, name) if connection_of(body) == connection)
        return [(key, state) for key, body in bodies if (state := _state(body)) is not None]

    def _frame(
        self, topic: TopicName, partitions: int, declared: Iterable[tuple[ObjectKey, TopicState]]
    ) -> LayoutFrame:
        # While it is being migrated the record says what clients may know.
        shown = (replace(state, layout=state.shown_layout(topic)) for _, state in declared if state.layout is None)
        modelled = TopicState(layout=synthetic_layout(topic, partitions), incarnation=incarnation_of(_UID, partitions))
        state = next((one for one in shown if one.layout is not None), modelled)
        frame = layout_frame(topic, state, None, hold_ms=self._hold_ms)
        assert frame is not None
        return frame


def _state(body: Body) -> TopicState | None:
    try:
        return read_state(body.get("status") or {})
    except (LayoutError, KeyError, TypeError, ValueError):
        # Its conditions say so; nothing acts on it.
        return None
