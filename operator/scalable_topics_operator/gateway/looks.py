"""Looks at segments for callers: any replica asks the brokers, since nothing is changed by it."""

from __future__ import annotations

import asyncio

from scalable_topics.layout import Segment
from scalable_topics_operator.controllers.topic_work import connection_of
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Subject
from scalable_topics_operator.gateway.views import Connections
from scalable_topics_operator.operations.context import concurrently
from scalable_topics_operator.operations.errors import BackendError, BackendUnavailable, TopicMissing
from scalable_topics_operator.operations.protocols import SegmentLook, TopicBackend

_LOOK_SECONDS = 15.0


class SegmentLooks:
    """Asks brokers.

    Args:
        connections: the Pulsar clusters.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

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
        backend = self._backend(subject)

        async def look(segment: Segment) -> SegmentLook | None:
            try:
                return await backend.look(backend.segment_topic(subject.topic, segment))
            except TopicMissing:
                return None

        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await concurrently(look(segment) for segment in segments)
        except (BackendUnavailable, TimeoutError) as error:
            raise Refusal(503, f"the brokers do not answer: {error or 'no answer in time'}; try again") from None
        except BackendError as error:
            raise Refusal(409, f"the brokers refuse to tell: {error}") from None

    def _backend(self, subject: Subject) -> TopicBackend:
        connection = connection_of(subject.body)
        handle = self._connections.handle(connection)
        if handle is None or handle.backend is None or handle.problem:
            why = handle.problem if handle is not None else "it does not exist, or was not looked at yet"
            raise Refusal(503, f"connection {connection.namespace}/{connection.name}: {why}")
        return handle.backend
