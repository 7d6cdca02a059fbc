"""What metrics show of topics, read from their objects. Pure but for where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_text
from scalable_topics_operator.controllers.conditions import find_condition, holds
from scalable_topics_operator.controllers.topic_work import canonical_topic
from scalable_topics_operator.telemetry.fleet_metrics import TopicGlimpse, TopicStanding


def glimpse_of(body: Body, topic: str, connection: str) -> TopicGlimpse:
    """What the status of a ScalableTopic tells.

    Args:
        body: the object.
        topic: its canonical name.
        connection: that it names, `namespace/name`.
    """
    status = body.get("status") or {}
    ready = find_condition(status, "Ready")
    if not ready:
        standing = TopicStanding.NEW
    elif holds(status, "Stalled"):
        standing = TopicStanding.STALLED
    elif holds(status, "Reconciling") or ready["status"] != "True":
        standing = TopicStanding.RECONCILING
    else:
        standing = TopicStanding.READY
    operation = status.get("operation") or {}
    kind, started = str(operation.get("kind", "")), str(operation.get("startedAt", ""))
    reason, started_seconds = str(ready.get("reason", "")), _seconds(started) if kind else 0.0
    return TopicGlimpse(topic, connection, standing, reason, kind, started_seconds)


class TopicGlimpses:
    """Glimpses of the topics that a replica leads.

    Args:
        led: those topics, with their objects as last seen.
    """

    def __init__(self, led: Callable[[], Iterable[tuple[ObjectKey, Body]]]) -> None:
        self._led = led

    def __call__(self) -> Iterator[TopicGlimpse]:
        """One of each, with its names if an operation is open."""
        for key, body in self._led():
            # Only operations are shown with names, and few topics have one open.
            named = (body.get("status") or {}).get("operation")
            names = (canonical_topic(body) or str(key), connection_text(body)) if named else ("", "")
            yield glimpse_of(body, *names)


def _seconds(timestamp: str) -> float:
    """Seconds since 1970 of an RFC 3339 timestamp; 0 of what is none: somebody may have edited a status."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
