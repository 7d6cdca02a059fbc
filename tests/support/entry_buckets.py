"""Entry buckets in tests: which keys fall into them, and who reads them according to a subscription's status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Any

from scalable_topics.layout import Segment, SegmentLayout, bucket_hash, bucket_of, equal_splits, key_hash, segment_hash
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from tests.support.world import World

Bucket = tuple[int, int]
"""Id of a segment, and index of the bucket in it."""


def bucket_of_key(layout: SegmentLayout, key: str) -> Bucket:
    """The bucket of the active segment that messages of a key go to."""
    hash_value = key_hash(key)
    segment = layout.find_active(segment_hash(hash_value))
    return segment.segment_id, bucket_of(equal_splits(segment.buckets), bucket_hash(hash_value))


def buckets_of(segments: Iterable[Segment]) -> list[Bucket]:
    """All buckets of some segments."""
    return [(segment.segment_id, bucket) for segment in segments for bucket in range(max(1, segment.buckets))]


def keys_in_every_bucket(layout: SegmentLayout, each: int) -> list[str]:
    """So many keys of every bucket of the active segments, bucket after bucket by turns."""
    wanted = buckets_of(layout.active)
    found: defaultdict[Bucket, list[str]] = defaultdict(list)
    missing = len(wanted) * each
    for number in count():
        if not missing:
            break
        key = f"key-{number}"
        keys = found[bucket_of_key(layout, key)]
        if len(keys) < each:
            keys.append(key)
            missing -= 1
    return [found[bucket][place] for place in range(each) for bucket in wanted]


async def subscription_status(world: World, topic: str, subscription: str) -> dict[str, Any]:
    """The status of an ordered subscription of a ScalableTopic; empty while nobody has registered yet."""
    try:
        body = await world.get(SUBSCRIPTIONS, subscription_object_name(topic, subscription))
    except KubeNotFound:
        return {}
    found: dict[str, Any] = body.get("status") or {}
    return found


def readers(status: dict[str, Any], layout: SegmentLayout) -> dict[Bucket, list[str]]:
    """Who is assigned each bucket of the segments that are assigned at all, by a subscription's status."""
    found: defaultdict[Bucket, list[str]] = defaultdict(list)
    for consumer in status.get("consumers", ()):
        for entry in consumer.get("assignments", ()):
            segment_id = entry["segment"]
            for bucket in entry.get("buckets") or range(max(1, layout.segment(segment_id).buckets)):
                found[segment_id, bucket].append(consumer["name"])
    return dict(found)


def is_shared_out(status: dict[str, Any], layout: SegmentLayout, segments: Iterable[Segment]) -> bool:
    """Whether every bucket of some segments is assigned to one consumer, and nobody has to let go of any."""
    found = readers(status, layout)
    return all(len(found.get(bucket, ())) == 1 for bucket in buckets_of(segments)) and not any(
        consumer.get("releasing") for consumer in status.get("consumers", ())
    )
