"""How many consumers each coordinated subscription of a topic has (pip-483): a port for consumer sessions to feed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scalable_topics_operator.cluster.object_key import ObjectKey


class ConsumerCounts:
    """Counts by topic and subscription. Whoever knows of consumers sets them; decisions read them.

    Queue consumers share every segment and are never counted.

    Args:
        on_change: called with a topic's key when one of its counts has changed.
    """

    def __init__(self, on_change: Callable[[ObjectKey], None]) -> None:
        self._on_change = on_change
        self._counts: dict[ObjectKey, dict[str, int]] = {}

    def set(self, topic: ObjectKey, subscription: str, consumers: int) -> None:
        """A subscription has so many registered consumers now; 0 forgets it."""
        counts = self._counts.setdefault(topic, {})
        if counts.get(subscription, 0) == consumers:
            return
        if consumers:
            counts[subscription] = consumers
        else:
            counts.pop(subscription, None)
        if not counts:
            del self._counts[topic]
        self._on_change(topic)

    def of(self, topic: ObjectKey) -> Mapping[str, int]:
        """Consumers of a topic, by subscription."""
        return self._counts.get(topic, {})
