"""Reconciles ScalableTopicSubscriptions: their topic makes the cursors (R16, R18)."""

from __future__ import annotations

from collections.abc import Callable

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import topic_of_subscription


class SubscriptionController:
    """Has the topic of a changed subscription looked at.

    Args:
        cache: the objects.
        wake: has a topic reconciled.
    """

    def __init__(self, cache: ObjectCache, wake: Callable[[ObjectKey], None]) -> None:
        self._cache = cache
        self._wake = wake

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Look at one subscription."""
        body = self._cache.get(key)
        if body is not None:
            self._wake(topic_of_subscription(body))
        return None
