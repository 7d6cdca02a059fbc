"""The watched objects by shard. Implements `Fleet`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.operation_queue import topic_of_operation
from scalable_topics_operator.controllers.ordered_subscriptions import topic_of_subscription
from scalable_topics_operator.controllers.topic_work import canonical_topic

_KINDS = (CONNECTIONS, TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS, POLICIES)
"""In the order in which work on them begins: what topics depend on comes first."""


class WatchedFleet:
    """Shards of what the cache holds.

    Objects for one topic share a shard by its name, so that one leader judges rivals (R1), and its subscriptions are
    in the same; a SegmentOperation is so until it has finished, and from then on in one of its own, whatever becomes of
    the topic. Who is in which shard is kept as the cache changes: a shard that is gained or lost costs as much as it
    has objects, and not as much as there are in all.

    Args:
        cache: the objects; empty as yet.
        shards: how many shards there are.
        begin: puts a key into the work queue.
        forget: drops what is remembered of a topic.
    """

    def __init__(
        self,
        cache: ObjectCache,
        shards: int,
        begin: Callable[[ObjectKey], None],
        forget: Callable[[ObjectKey], None],
    ) -> None:
        self._cache = cache
        self._shards = shards
        self._begin = begin
        self._forget = forget
        self._shard: dict[ObjectKey, int] = {}
        # Of each shard and kind; of a dictionary the keys alone, in the order they came.
        self._members: defaultdict[tuple[int, str], dict[ObjectKey, None]] = defaultdict(dict)
        # Topic, there or not -> what belongs to it, in the order it came.
        self._belonging: defaultdict[ObjectKey, dict[ObjectKey, None]] = defaultdict(dict)
        self._topic: dict[ObjectKey, ObjectKey] = {}
        for resource in _KINDS:
            cache.listen(resource, self._changed)

    def shard_of(self, key: ObjectKey) -> int:
        """The shard of an object; of one that is not known the one that its key alone gives."""
        shard = self._shard.get(key)
        return shard if shard is not None else self._placed(key)

    def keys_of(self, shard: int) -> Iterator[ObjectKey]:
        """The objects of a shard that are known."""
        for resource in _KINDS:
            yield from list(self._members.get((shard, resource.plural), ()))

    def topics_of(self, shards: Iterable[int]) -> Iterator[tuple[ObjectKey, Body]]:
        """The ScalableTopics of some shards."""
        for shard in shards:
            for key in list(self._members.get((shard, TOPICS.plural), ())):
                if (body := self._cache.get(key)) is not None:
                    yield key, body

    def highest_term_of(self, shard: int) -> int:
        """The highest term that journals of a shard's topics and assignments of their consumers carry."""
        journals = (recorded_term(body) for _, body in self.topics_of((shard,)))
        assignments = (
            int((body.get("status") or {}).get("term") or 0)
            for key in self._members.get((shard, SUBSCRIPTIONS.plural), ())
            if (body := self._cache.get(key)) is not None
        )
        return max((0, *journals, *assignments))

    def begin(self, keys: Iterable[ObjectKey]) -> None:
        """Objects are to be worked on from now on."""
        for key in keys:
            self._begin(key)

    def forget(self, keys: Iterable[ObjectKey]) -> None:
        """Others work on these objects from now on."""
        for key in keys:
            if key.plural in (TOPICS.plural, SUBSCRIPTIONS.plural):
                self._forget(key)

    def _changed(self, key: ObjectKey, body: Body | None) -> None:
        """An object is new, has changed or is gone."""
        topic = _topic_it_belongs_to(key, body) if body is not None else None
        before = self._topic.pop(key, None)
        if before is not None and before != topic:
            self._belonging[before].pop(key, None)
            if not self._belonging[before]:
                del self._belonging[before]
        if topic is not None:
            self._topic[key] = topic
            self._belonging[topic][key] = None
        self._put(key, None if body is None else self._placed(key))
        if key.plural == TOPICS.plural:
            for belonging in self._belonging.get(key, ()):
                self._put(belonging, self._placed(belonging))

    def _placed(self, key: ObjectKey) -> int:
        """Work the shard of an object out."""
        key = self._topic.get(key, key)
        body = self._cache.get(key)
        name = canonical_topic(body) if key.plural == TOPICS.plural and body is not None else None
        return shard_of(name if name is not None else str(key), self._shards)

    def _put(self, key: ObjectKey, shard: int | None) -> None:
        before = self._shard.get(key)
        if before == shard:
            return
        if before is not None:
            del self._shard[key]
            del self._members[before, key.plural][key]
        if shard is not None:
            self._shard[key] = shard
            self._members[shard, key.plural][key] = None


def _topic_it_belongs_to(key: ObjectKey, body: Body) -> ObjectKey | None:
    if key.plural == SUBSCRIPTIONS.plural:
        return topic_of_subscription(body)
    if key.plural == SEGMENT_OPERATIONS.plural and topic_of_operation(body) is not None:
        return ObjectKey(TOPICS.plural, key.namespace, body["spec"]["scalableTopic"])
    return None


def recorded_term(body: Body) -> int:
    """The term under which a ScalableTopic's open journal was begun; 0 without one."""
    operation = (body.get("status") or {}).get("operation") or {}
    return int(operation.get("term") or 0)
