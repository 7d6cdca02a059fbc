"""Segments found in the topic listing of a Pulsar namespace, shared by all topics of that namespace."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from scalable_topics.layout import TopicName, parse_classic_segment_name
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.shared_reading import SharedReading
from scalable_topics_operator.operations.protocols import FoundSegment

_NAMES_AT_ONCE = 2000

Index = Mapping[TopicName, Sequence[FoundSegment]]


class SegmentListing:
    """Finds segments by name.

    Args:
        admin: the cluster.
    """

    def __init__(self, admin: PulsarAdmin) -> None:
        self._admin = admin
        self._indexes: SharedReading[Index] = SharedReading(self._read)

    async def segments(self, topic: TopicName, *, max_age_seconds: float) -> Sequence[FoundSegment]:
        """Topics whose name parses as a segment of `topic`, by id, from a listing at most that old.

        Raises NamespaceMissing.
        """
        index = await self._indexes.get(topic.pulsar_namespace, max_age_seconds=max_age_seconds)
        return index.get(topic, ())

    async def topics(self, namespace: str) -> Collection[TopicName]:
        """Scalable topics of which there are segments, from a listing made now. Raises NamespaceMissing."""
        return (await self._indexes.get(namespace, max_age_seconds=0.0)).keys()

    async def _read(self, namespace: str) -> Index:
        return await _index(await self._admin.namespaces.topics(namespace))


async def _index(names: Sequence[str]) -> Index:
    found: dict[TopicName, list[FoundSegment]] = defaultdict(list)
    for number, name in enumerate(names):
        if number % _NAMES_AT_ONCE == 0:
            await asyncio.sleep(0)
        parsed = parse_classic_segment_name(name)
        if parsed is not None:
            topic, hash_range, segment_id = parsed
            found[topic].append(FoundSegment(segment_id, hash_range, name))
    return {topic: sorted(segments, key=lambda one: (one.segment_id, one.topic)) for topic, segments in found.items()}
