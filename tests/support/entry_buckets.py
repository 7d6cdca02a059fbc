"""Entry buckets in tests: which keys fall into them, and who reads them according to a subscription's status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Any

from scalable_topics.layout import (
    Part,
    Segment,
    SegmentLayout,
    bucket_hash,
    bucket_of,
    equal_splits,
    key_hash,
    segment_hash,
)
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from scalable_topics_operator.controllers.subscription_status import read_group
from tests.support.world import World


def bucket_of_key(layout: SegmentLayout, key: str) -> Part:
    """The bucket of the active segment that messages of a key go to."""
    hash_value = key_hash(key)
    segment = layout.find_active(segment_hash(hash_value))
    return Part(segment.segment_id, bucket_of(equal_splits(segment.buckets), bucket_hash(hash_value)))


def every_bucket(segments: Iterable[Segment]) -> list[Part]:
    """All buckets of some segments."""
    return [Part(segment.segment_id, bucket) for segment in segments for bucket in range(segment.buckets)]


def keys_in_every_bucket(layout: SegmentLayout, each: int) -> list[str]:
    """So many keys of every bucket of the active segments, bucket after bucket by turns."""
    wanted = every_bucket(layout.active)
    found: defaultdict[Part, list[str]] = defaultdict(list)
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


def readers(status: dict[str, Any], layout: SegmentLayout) -> dict[Part, list[str]]:
    """Who is assigned each bucket of the segments that are assigned at all, by a subscription's status."""
    found: defaultdict[Part, list[str]] = defaultdict(list)
    for name, member in read_group(status).members.items():
        for part in sorted(member.assigned):
            buckets = every_bucket([layout.segment(part.segment_id)]) if part.is_whole else [part]
            for bucket in buckets:
                found[bucket].append(name)
    return dict(found)


def is_shared_out(status: dict[str, Any], layout: SegmentLayout, segments: Iterable[Segment]) -> bool:
    """Whether every bucket of some segments is assigned to one consumer, and nobody has to let go of any."""
    found = readers(status, layout)
    return all(len(found.get(bucket, ())) == 1 for bucket in every_bucket(segments)) and not any(
        member.releasing for member in read_group(status).members.values()
    )
