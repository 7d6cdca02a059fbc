"""Segments found in the topic listing of a Pulsar namespace, shared by all topics of that namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scalable_topics.layout import TopicName, parse_classic_segment_name
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.shared_reading import SharedReading
from scalable_topics_operator.operations.protocols import FoundSegment

_NAMES_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class _Index:
    """A listing.

    Args:
        names: all that it has.
        segments: those of its names that are a segment's, of each topic by id.
    """

    names: frozenset[str] = frozenset()
    segments: Mapping[TopicName, Sequence[FoundSegment]] = field(default_factory=dict)


class SegmentListing:
    """Finds segments by name.

    Args:
        admin: the cluster.
    """

    def __init__(self, admin: PulsarAdmin) -> None:
        self._admin = admin
        self._indexes: SharedReading[_Index] = SharedReading(self._read)

    async def segments(self, topic: TopicName, *, max_age_seconds: float) -> Sequence[FoundSegment]:
        """Topics whose name parses as a segment of `topic`, by id, from a listing at most that old.

        Raises NamespaceMissing.
        """
        index = await self._indexes.get(topic.pulsar_namespace, max_age_seconds=max_age_seconds)
        return index.segments.get(topic, ())

    async def topics(self, namespace: str) -> Collection[TopicName]:
        """Scalable topics of which there are segments, from a listing made now. Raises NamespaceMissing."""
        return (await self._indexes.get(namespace, max_age_seconds=0.0)).segments.keys()

    async def _read(self, namespace: str) -> _Index:
        listed = await self._admin.namespaces.topics(namespace)
        return await _indexed(self._indexes.latest(namespace) or _Index(), listed)


async def _indexed(before: _Index, listed: Sequence[str]) -> _Index:
    """The index of a listing. Names that the one before had are not parsed again: each creation lists its namespace,
    so that making many topics would take the square of their number.
    """
    names = frozenset(listed)
    gone, new = before.names - names, names - before.names
    changed: dict[TopicName, set[FoundSegment]] = {}
    for number, name in enumerate((*gone, *new)):
        if number % _NAMES_AT_ONCE == 0:
            await asyncio.sleep(0)
        parsed = parse_classic_segment_name(name)
        if parsed is not None:
            topic, hash_range, segment_id = parsed
            found = changed.setdefault(topic, set(before.segments.get(topic, ())))
            # Whatever differs has either come or gone.
            found ^= {FoundSegment(segment_id, hash_range, name)}
    segments = dict(before.segments)
    for topic, found in changed.items():
        segments[topic] = sorted(found, key=lambda one: (one.segment_id, one.topic))
        if not found:
            del segments[topic]
    # The texts of before are kept, which segments have, and not their copies.
    return _Index((before.names - gone) | new, segments)
