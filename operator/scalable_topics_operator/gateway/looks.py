"""Looks at segments for callers: any replica asks the brokers, since nothing is changed by it."""

from __future__ import annotations

from scalable_topics.layout import Segment
from scalable_topics_operator.controllers.topic_work import connection_of
from scalable_topics_operator.gateway.brokers import Brokers, answering
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Subject
from scalable_topics_operator.operations.context import concurrently
from scalable_topics_operator.operations.errors import TopicMissing
from scalable_topics_operator.operations.protocols import SegmentLook


class SegmentLooks:
    """Asks brokers.

    Args:
        brokers: of the Pulsar clusters.
    """

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    async def one(self, subject: Subject, segment: Segment) -> SegmentLook:
        """A segment as its broker shows it. Raises Refusal: 404 if it has no topic, 503 if it cannot be asked."""
        (look,) = await self._look(subject, [segment])
        if look is None:
            raise Refusal(404, f"segment {segment.segment_id} of {subject.topic} has no topic")
        return look

    async def all(self, subject: Subject) -> list[SegmentLook]:
        """All segments that have a topic. Raises Refusal: 503 if one of them cannot be asked."""
        layout = subject.layout
        return [look for look in await self._look(subject, [*layout.active, *layout.sealed]) if look is not None]

    async def _look(self, subject: Subject, segments: list[Segment]) -> list[SegmentLook | None]:
        backend = self._brokers.of(connection_of(subject.body))

        async def look(segment: Segment) -> SegmentLook | None:
            try:
                return await backend.look(backend.segment_topic(subject.topic, segment))
            except TopicMissing:
                return None

        async with answering():
            return await concurrently(look(segment) for segment in segments)
