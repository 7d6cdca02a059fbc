"""A ScalableTopic object as it is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scalable_topics.layout import RING_SIZE, LayoutError, Segment, SegmentLayout, from_record
from scalable_topics_operator.cli.faults import Refused
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.controllers.conditions import find_condition

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LAST_OF_A_UNIT = 999.5


@dataclass(frozen=True, slots=True)
class TopicView:
    """A ScalableTopic.

    Args:
        body: the object.
    """

    body: Body

    @property
    def name(self) -> str:
        """Of the object."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Of the object."""
        return str(self.body["metadata"]["namespace"])

    @property
    def status(self) -> Mapping[str, Any]:
        """Its status; empty if it has none."""
        return self.body.get("status") or {}

    @property
    def topic(self) -> str:
        """Name of the topic, in full once it is known."""
        return str(self.status.get("topic") or self.body["spec"]["topic"])

    def condition(self, kind: str) -> Mapping[str, Any]:
        """One of its conditions; empty if it has none of that kind."""
        return find_condition(self.status, kind)

    def layout(self) -> SegmentLayout:
        """Its segments. Raises Refused if it has none, or none that can be read."""
        record = self.status.get("layout")
        if not record:
            ready = self.condition("Ready")
            why = f": {ready.get('reason')}: {ready.get('message')}" if ready else " yet"
            raise Refused(f"ScalableTopic {self.namespace}/{self.name} has no layout{why}")
        try:
            return from_record(record)
        except LayoutError as error:
            raise Refused(f"the layout of ScalableTopic {self.namespace}/{self.name} cannot be read: {error}") from None


def subscription_kind(recorded: Mapping[str, Any], body: Body | None) -> str:
    """How a subscription is read.

    Args:
        recorded: of it, in the status of its topic.
        body: its ScalableTopicSubscription; None where there is none, or it may not be seen.
    """
    if body is not None:
        return str(body["spec"]["type"])
    return "Ordered" if recorded.get("ordered") else "Shared"


def seconds_since(timestamp: Any, now: datetime) -> float | None:
    """Age in seconds of a time as Kubernetes writes it; None for what is no such time."""
    try:
        return (now - datetime.fromisoformat(str(timestamp))).total_seconds()
    except (ValueError, TypeError):
        return None


def age(seconds: float | None) -> str:
    """An age as kubectl writes it, such as `5m12s` or `3d`."""
    if seconds is None:
        return "unknown"
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 2 * _HOUR:
        minutes, rest = divmod(whole, _MINUTE)
        return f"{minutes}m{rest}s" if minutes < 10 and rest else f"{minutes}m"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    return f"{whole // _DAY}d"


def time_of(at_ms: int) -> str:
    """A time in milliseconds since 1970 as people read it, UTC; `-` for none."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if at_ms else "-"


def share(segment: Segment) -> str:
    """How much of the ring a segment covers."""
    return f"{100 * segment.hash_range.size / RING_SIZE:.3g} %"


def amount(number: float | None) -> str:
    """A rate or a count in few characters, such as `12.3k`; `-` if it is not known."""
    if number is None:
        return "-"
    value = float(number)
    for unit in ("", "k", "M", "G"):
        # Three digits of more would be those of a thousand.
        if abs(value) < _LAST_OF_A_UNIT:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g}T" if abs(value) < _LAST_OF_A_UNIT else f"{value:.0f}T"


def ids(values: Iterable[int]) -> str:
    """Segments in a cell; `-` for none."""
    return ",".join(map(str, values)) or "-"
