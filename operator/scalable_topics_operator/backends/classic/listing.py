"""Segments found in the topic listing of a Pulsar namespace, shared by all topics of that namespace."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scalable_topics.layout import TopicName, parse_classic_segment_name
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.operations.protocols import FoundSegment

_NAMES_AT_ONCE = 2000


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asked_at: float = float("-inf")
    segments: Mapping[TopicName, Sequence[FoundSegment]] = field(default_factory=dict)


class SegmentListing:
    """Lists each namespace at most once for callers that ask together or accept the same age.

    Args:
        admin: the cluster.
    """

    def __init__(self, admin: PulsarAdmin) -> None:
        self._admin = admin
        self._entries: dict[str, _Entry] = defaultdict(_Entry)

    async def segments(self, topic: TopicName, *, max_age_seconds: float) -> Sequence[FoundSegment]:
        """Topics whose name parses as a segment of `topic`, from a listing at most that old.

        With age 0 the listing was asked for after this call began. Raises NamespaceMissing.
        """
        called_at = time.monotonic()
        entry = self._entries[topic.pulsar_namespace]
        # Whoever waits here behind a listing in progress began after it did; the first of them asks again
        # and that answer serves all others.
        async with entry.lock:
            if entry.asked_at < called_at - max_age_seconds:
                asked_at = time.monotonic()
                entry.segments = await _index(await self._admin.namespaces.topics(topic.pulsar_namespace))
                entry.asked_at = asked_at
            return entry.segments.get(topic, ())


async def _index(names: Sequence[str]) -> Mapping[TopicName, Sequence[FoundSegment]]:
    found: dict[TopicName, list[FoundSegment]] = defaultdict(list)
    for number, name in enumerate(names):
        if number % _NAMES_AT_ONCE == 0:
            await asyncio.sleep(0)
        parsed = parse_classic_segment_name(name)
        if parsed is not None:
            topic, hash_range, segment_id = parsed
            found[topic].append(FoundSegment(segment_id, hash_range, name))
    return {topic: sorted(segments, key=lambda one: (one.segment_id, one.topic)) for topic, segments in found.items()}
