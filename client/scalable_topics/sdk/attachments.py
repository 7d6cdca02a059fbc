"""Which segments a queue consumer is attached to, and how much each may prefetch (docs/contract.md). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics.sdk.layout_message import FollowedSegment, LayoutMessage
from scalable_topics.sdk.prefetch_budget import PrefetchBudget


@dataclass(frozen=True, slots=True)
class Attach:
    """Attach to a segment.

    Args:
        segment: the segment.
        prefetch: messages that may wait here for the application, 1 or more.
        from_earliest: start at the earliest message if the subscription has no cursor here: always where the segment
            appeared while the consumer was there, since everything in it is new to the subscription.
    """

    segment: FollowedSegment
    prefetch: int
    from_earliest: bool


@dataclass(frozen=True, slots=True)
class Detach:
    """Detach from a segment that left the layout: the subscription is through with it."""

    segment_id: int


class Attachments:
    """The attachments of one consumer.

    Args:
        budget: messages that may wait for the application, over all segments; each segment gets at least one.
        from_earliest: whether a new subscription starts at the earliest message.
    """

    def __init__(self, budget: int, *, from_earliest: bool) -> None:
        self._budget = PrefetchBudget(budget)
        self._from_earliest = from_earliest
        self._prefetch: dict[int, int] = {}
        self._topics: dict[int, str] = {}

    def follow(self, message: LayoutMessage) -> list[Attach | Detach]:
        """What to do for a layout; detach before attaching."""
        is_first = not self._prefetch
        gone = [
            segment_id
            for segment_id, topic in self._topics.items()
            if segment_id not in message.segments or message.segments[segment_id].topic != topic
        ]
        for segment_id in gone:
            self._budget.give_back(self._prefetch.pop(segment_id))
            del self._topics[segment_id]
        new = [segment for segment_id, segment in message.segments.items() if segment_id not in self._topics]
        share = self._budget.take(len(new)) if new else 0
        for segment in new:
            self._topics[segment.segment_id] = segment.topic
            self._prefetch[segment.segment_id] = share
        attach = [Attach(segment, share, self._from_earliest or not is_first) for segment in new]
        return [*(Detach(segment_id) for segment_id in gone), *attach]
