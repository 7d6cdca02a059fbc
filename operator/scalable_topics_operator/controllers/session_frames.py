"""What a coordinator tells consumers (docs/sessions.md). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalable_topics.layout import Part, Segment, SegmentLayout, TopicName
from scalable_topics_operator.assignment.group import Version
from scalable_topics_operator.backends.classic.names import segment_topic
from scalable_topics_operator.operations.protocols import MessagePosition, Position


def registered_frame(record: str, grace_seconds: float, handover_seconds: float) -> dict[str, Any]:
    """The answer to a registration.

    Args:
        record: uid of the subscription's object, within which versions compare.
        grace_seconds: how long a consumer without a session stays a member.
        handover_seconds: how long a connected one may take to let go of a segment.
    """
    return {
        "type": "registered",
        "record": record,
        "graceMs": round(grace_seconds * 1000),
        "handoverMs": round(handover_seconds * 1000),
    }


def assignment_frame(
    topic: TopicName,
    layout: SegmentLayout,
    version: Version,
    parts: Iterable[Part],
    starts: Mapping[int, Position | None] | None = None,
    floors: Mapping[Part, MessagePosition] | None = None,
) -> dict[str, Any]:
    """Everything a consumer may be attached to.

    Args:
        topic: the scalable topic.
        layout: of it.
        version: of the assignment.
        parts: these, of segments in the layout.
        starts: up to where segments are acknowledged, as checkpoint consumers are told (R22).
        floors: up to where entry buckets are not to be delivered again, as the same are told.
    """
    known = starts or {}
    buckets: dict[int, list[int]] = {}
    for part in sorted(parts):
        buckets.setdefault(part.segment_id, []).extend([] if part.is_whole else [part.bucket])
    return {
        "type": "assignment",
        "version": {"term": version.term, "epoch": version.epoch, "counter": version.counter},
        "segments": [
            _segment(topic, layout.segment(one), some, known.get(one), floors or {}) for one, some in buckets.items()
        ],
    }


def _segment(
    topic: TopicName,
    segment: Segment,
    buckets: list[int],
    start: Position | None,
    floors: Mapping[Part, MessagePosition],
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": segment.segment_id,
        "range": segment.hash_range.descriptor,
        "topic": segment_topic(topic, segment),
        "state": segment.state.value,
        "buckets": buckets,
        "bucketCount": segment.buckets,
    }
    if segment.sealed_position is not None:
        data["end"] = segment.sealed_position
    if start is not None:
        data["start"] = str(start)
    told = [
        {"bucket": bucket, "position": _floor(floors[part])}
        for bucket in buckets or range(segment.buckets)
        if (part := Part(segment.segment_id, bucket)) in floors
    ]
    if told:
        data["floors"] = told
    return data


def _floor(position: MessagePosition) -> str:
    entry = f"{position.ledger_id}:{position.entry_id}"
    return entry if position.batch_index < 0 else f"{entry}:{position.batch_index}"
