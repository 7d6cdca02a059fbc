"""What the coordinator of ordered subscriptions finds on a topic's segments (R17, R21, R22)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from scalable_topics.layout import Part, SegmentLayout, TopicName
from scalable_topics_operator.assignment.barrier import readable_segments
from scalable_topics_operator.assignment.group import Group
from scalable_topics_operator.backends.classic.names import segment_topic
from scalable_topics_operator.operations.context import concurrently
from scalable_topics_operator.operations.errors import BackendError, TopicMissing
from scalable_topics_operator.operations.protocols import Position, SegmentLook, TopicBackend
from scalable_topics_operator.operations.prune import is_read_to_its_end

logger = logging.getLogger(__name__)


class SegmentLooks:
    """Looks at segments, each at most once.

    Args:
        backend: the brokers.
        topic: the scalable topic.
        layout: of it.
    """

    def __init__(self, backend: TopicBackend, topic: TopicName, layout: SegmentLayout) -> None:
        self._backend = backend
        self._topic = topic
        self._layout = layout
        self._found: dict[int, SegmentLook | None] = {}

    async def may_serve(self, parts: Iterable[Part], subscription: str, consumer: str) -> bool:
        """Whether a consumer of that name is attached to any of the parts' segments, as far as brokers can be asked."""
        known = {part.segment_id for part in parts} & self._layout.segments.keys()
        try:
            looks = await concurrently(self._look(segment) for segment in known)
        except BackendError:
            return True
        cursors = [look.cursors.get(subscription) for look in looks if look is not None]
        return any(cursor is not None and consumer in cursor.consumer_names for cursor in cursors)

    async def starts(self, segments: Iterable[int], subscription: str) -> Mapping[int, Position | None]:
        """Up to where segments are acknowledged; None where there is no cursor. Those that cannot be looked at now are
        left out.
        """

        async def start(segment_id: int) -> tuple[int, Position | None] | None:
            try:
                look = await self._look(segment_id)
            except BackendError as error:
                logger.info("%s: where segment %d is read from is not known: %s", self._topic, segment_id, error)
                return None
            cursor = look.cursors.get(subscription) if look is not None else None
            return segment_id, cursor.mark_delete if cursor else None

        found = await concurrently(start(segment_id) for segment_id in segments)
        return dict(one for one in found if one is not None)

    async def drained(self, group: Group, subscription: str) -> frozenset[int]:
        """Segments that were found to be read to their ends; those that these keep back are not looked at yet."""
        found: set[int] = set()
        for segment_id in sealed_and_read(group, self._layout):
            try:
                look = await self._look(segment_id)
            except BackendError as error:
                # Others are read on, and this one is looked at again.
                logger.info("%s: whether segment %d is drained is not known: %s", self._topic, segment_id, error)
                continue
            if look is not None and is_read_to_its_end(self._layout.segment(segment_id), look, subscription):
                found.add(segment_id)
        return frozenset(found)

    async def _look(self, segment_id: int) -> SegmentLook | None:
        if segment_id not in self._found:
            name = segment_topic(self._topic, self._layout.segment(segment_id))
            try:
                self._found[segment_id] = await self._backend.look(name)
            except TopicMissing:
                self._found[segment_id] = None
        return self._found[segment_id]


def sealed_and_read(group: Group, layout: SegmentLayout) -> list[int]:
    """Sealed segments that are being read."""
    return [one.segment_id for one in readable_segments(layout, group.drained) if not one.is_active]
