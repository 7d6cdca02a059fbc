"""Looks at segments for callers: any replica asks the brokers, since nothing is changed by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from scalable_topics.layout import Segment
from scalable_topics_operator.cluster.object_key import connection_of
from scalable_topics_operator.controllers.topic_backend import is_native
from scalable_topics_operator.gateway import native_stats
from scalable_topics_operator.gateway.brokers import Brokers, answering
from scalable_topics_operator.gateway.clients_shown import Attached, SegmentCursor
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Subject
from scalable_topics_operator.operations.context import concurrently
from scalable_topics_operator.operations.errors import TopicMissing
from scalable_topics_operator.operations.protocols import SegmentLook


class SegmentLooks:
    """Asks brokers, whoever owns the layout.

    Args:
        brokers: of the Pulsar clusters.
    """

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    async def cursors(self, subject: Subject, segment: Segment) -> dict[str, SegmentCursor]:
        """The subscriptions on a segment. Raises Refusal: 404 if it has no topic, 503 if it cannot be asked."""
        if is_native(subject.body):
            return await self._native_cursors(subject, segment)
        (look,) = await self._look(subject, [segment])
        if look is None:
            raise _no_topic(subject, segment)
        return {
            name: SegmentCursor(cursor.backlog, cursor.consumers, cursor.counts, str(cursor.mark_delete))
            for name, cursor in look.cursors.items()
        }

    async def attached(self, subject: Subject) -> Attached:
        """Who uses the topic. Raises Refusal: 503 if one of its segments cannot be asked."""
        if is_native(subject.body):
            return native_stats.attached(await self.native(subject))
        layout = subject.layout
        looks = [look for look in await self._look(subject, [*layout.active, *layout.sealed]) if look is not None]
        consumers: Counter[str] = Counter()
        for look in looks:
            consumers.update({name: cursor.consumers for name, cursor in look.cursors.items()})
        return Attached(sum(len(look.producers) for look in looks), consumers)

    async def native(self, subject: Subject) -> Mapping[str, Any]:
        """What the brokers tell of a topic whose layout they own. Raises Refusal: 404, 503."""
        scalable = self._brokers.admin_of(connection_of(subject.body)).scalable
        async with answering():
            try:
                return await scalable.stats(subject.topic)
            except TopicMissing:
                raise Refusal(404, f"the brokers have no scalable topic {subject.topic} any more") from None

    async def _native_cursors(self, subject: Subject, segment: Segment) -> dict[str, SegmentCursor]:
        scalable = self._brokers.admin_of(connection_of(subject.body)).scalable
        async with answering():
            try:
                told = await scalable.segment_stats(subject.topic, segment.segment_id)
            except TopicMissing:
                raise _no_topic(subject, segment) from None
        return native_stats.cursors(told)

    async def _look(self, subject: Subject, segments: list[Segment]) -> list[SegmentLook | None]:
        backend = self._brokers.of(connection_of(subject.body))

        async def look(segment: Segment) -> SegmentLook | None:
            try:
                return await backend.look(backend.segment_topic(subject.topic, segment))
            except TopicMissing:
                return None

        async with answering():
            return await concurrently(look(segment) for segment in segments)


def _no_topic(subject: Subject, segment: Segment) -> Refusal:
    return Refusal(404, f"segment {segment.segment_id} of {subject.topic} has no topic")
