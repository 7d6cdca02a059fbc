"""What callers of the REST want of subscriptions, recorded by the topic's reconcile in its turn (R10, R32)."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import ordered_subscriptions
from scalable_topics_operator.operations.context import TopicContext
from scalable_topics_operator.operations.errors import RequestRefused
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.subscriptions import SubscriptionWish, record_wish

# Consumers are attached that were not to be disconnected.
_IN_USE_SECONDS = 30.0
_UNFINISHED = (SubscriptionPhase.CREATING.value, SubscriptionPhase.DELETING.value)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    wish: SubscriptionWish
    recorded: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SubscriptionWishes:
    """Wishes that are not recorded yet; whoever made one waits for that, so that none is lost unnoticed.

    Args:
        kube: the API server.
        cache: the objects.
        wake: has an object reconciled.
    """

    def __init__(self, kube: KubeClient, cache: ObjectCache, wake: Callable[[ObjectKey], None]) -> None:
        self._kube = kube
        self._cache = cache
        self._wake = wake
        self._waiting: defaultdict[ObjectKey, list[_Waiting]] = defaultdict(list)

    async def record(self, topic: ObjectKey, wish: SubscriptionWish) -> None:
        """Have a wish recorded; give it up by cancelling. Raises RequestRefused."""
        waiting = _Waiting(wish)
        self._waiting[topic].append(waiting)
        self._wake(topic)
        try:
            await waiting.recorded
        finally:
            self._waiting[topic].remove(waiting)
            if not self._waiting[topic]:
                del self._waiting[topic]

    def pending(self, topic: ObjectKey) -> bool:
        """Whether somebody waits."""
        return topic in self._waiting

    async def grant(self, topic: ObjectKey, ctx: TopicContext) -> None:
        """Record what is waited for, oldest first; the topic's journal is closed."""
        for waiting in list(self._waiting.get(topic, ())):
            if waiting.recorded.done():
                continue
            try:
                await record_wish(ctx, waiting.wish)
            except RequestRefused as refused:
                _answer(waiting.recorded, refused)
            else:
                _answer(waiting.recorded, None)

    async def drop_objects(self, topic: ObjectKey, body: Body) -> None:
        """Delete the ScalableTopicSubscriptions of subscriptions that somebody asked to delete.

        Whether the caller may was found out before; the operator makes these objects, and unmakes them.
        """
        for key, uid in list(self._objects_going(topic, body)):
            await self._kube.delete(SUBSCRIPTIONS, key.namespace, key.name, uid=uid)
            self._cache.remove(key, uid)
            self._wake(key)

    def next_look_seconds(self, topic: ObjectKey, body: Body) -> float:
        """When to go on with what is not finished; never, if everything is."""
        if any(self._objects_going(topic, body)):
            return 0.0
        return _IN_USE_SECONDS if has_unfinished(body) else math.inf

    def _objects_going(self, topic: ObjectKey, body: Body) -> Iterator[tuple[ObjectKey, str]]:
        going = {
            entry["name"]
            for entry in (body.get("status") or {}).get("subscriptions", ())
            if entry.get("requested") and entry["phase"] == SubscriptionPhase.DELETING.value
        }
        for key, found in ordered_subscriptions(self._cache, topic) if going else ():
            if found["spec"]["subscription"] in going:
                yield key, found["metadata"]["uid"]


def has_unfinished(body: Body) -> bool:
    """Whether cursors are still to be made or deleted that somebody asked for, as a ScalableTopic's status says."""
    return any(
        entry.get("requested") and entry["phase"] in _UNFINISHED
        for entry in (body.get("status") or {}).get("subscriptions", ())
    )


def _answer(recorded: asyncio.Future[None], refused: RequestRefused | None) -> None:
    # Whoever waited may have given up meanwhile.
    if recorded.done():
        return
    if refused is None:
        recorded.set_result(None)
    else:
        recorded.set_exception(refused)
