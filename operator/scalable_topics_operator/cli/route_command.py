"""`stopics route`: which segment and entry bucket a key goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import (
    LayoutError,
    SegmentLayout,
    TopicName,
    bucket_hash,
    bucket_of,
    classic_segment_name,
    equal_splits,
    key_hash,
    native_segment_name,
    ranges_of,
    route,
    routing_key,
    segment_hash,
)
from scalable_topics_operator.cli.faults import BadUsage
from scalable_topics_operator.cli.kubernetes import api_server, find_object, ref_of
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import for_machines, people
from scalable_topics_operator.cli.tables import line
from scalable_topics_operator.cli.topic_view import TopicView

_NATIVE = "Native"


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a key goes.

    Args:
        key_hash: its hash, 32 bits.
        segment: id of the segment.
        range: of the segment.
        topic: name of the segment's topic.
        bucket: entry bucket within the segment.
        buckets: how many it has.
        bucket_range: of the entry bucket, on the ring of the low half of the hash.
    """

    key_hash: int
    segment: int
    range: str
    topic: str
    bucket: int
    buckets: int
    bucket_range: str

    def as_json(self) -> Mapping[str, Any]:
        """For machines."""
        return {
            "hash": f"{self.key_hash:08x}",
            "segment": self.segment,
            "range": self.range,
            "topic": self.topic,
            "bucket": self.bucket,
            "buckets": self.buckets,
            "bucketRange": self.bucket_range,
        }


def routed(layout: SegmentLayout, topic: TopicName, backend: str, key: bytes) -> Routed:
    """Where a key goes. Pure.

    Args:
        layout: of the topic.
        topic: its name.
        backend: `Classic` or `Native`.
        key: as `routing_key` gives it.
    """
    value = key_hash(key)
    segment = route(layout, value)
    made = native_segment_name if backend == _NATIVE else classic_segment_name
    splits = equal_splits(segment.buckets)
    bucket = bucket_of(splits, bucket_hash(value))
    return Routed(
        value,
        segment.segment_id,
        segment.hash_range.descriptor,
        segment.topic or made(topic, segment.hash_range, segment.segment_id),
        bucket,
        segment.buckets,
        ranges_of(splits)[bucket].descriptor,
    )


async def show_route(name: str, keys: list[str], namespace: str | None, output: Output, *, is_base64: bool) -> None:
    """Show where keys go. Raises CliError.

    Args:
        name: of the ScalableTopic, or its topic's.
        keys: keys or ordering keys of messages.
        namespace: of the object; None for the kubeconfig's.
        output: how it is shown.
        is_base64: whether the keys are bytes as base64.
    """
    decoded = [_bytes(key, is_base64) for key in keys]
    async with api_server() as kube:
        view = TopicView(await find_object(kube, name, namespace))
    found, topic = view.layout(), ref_of(view.body).topic
    backend = str(view.status.get("backend") or "")
    answers = [(key, routed(found, topic, backend, content)) for key, content in zip(keys, decoded, strict=True)]
    if not output.is_for_people:
        routes = [{"key": key, **answer.as_json()} for key, answer in answers]
        return for_machines(output, {"topic": str(topic), "epoch": found.epoch, "routes": routes})
    console = people()
    line(console, "topic", f"{topic}, epoch {found.epoch}")
    for key, answer in answers:
        line(console, "key", key)
        line(console, "hash", f"{answer.key_hash:08x}: {segment_hash(answer.key_hash):04x} on the ring")
        line(console, "segment", f"{answer.segment} {answer.range}: {answer.topic}")
        line(console, "entry bucket", f"{answer.bucket} of {answer.buckets} ({answer.bucket_range})")
    return None


def _bytes(key: str, is_base64: bool) -> bytes:
    try:
        found = routing_key(None, key, base64_encoded=is_base64)
    except LayoutError as error:
        raise BadUsage(f"{key!r}: {error}") from None
    assert found is not None
    return found
