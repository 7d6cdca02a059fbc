"""Layouts over ordinary topics: before a migration and right after it (pip-475, R25)."""

from __future__ import annotations

from collections.abc import Mapping

from scalable_topics.layout.change import planned_initial
from scalable_topics.layout.entry_buckets import DEFAULT_BUCKET_BUDGET
from scalable_topics.layout.errors import LayoutArgumentError
from scalable_topics.layout.hash_range import HashRange
from scalable_topics.layout.names import TopicName
from scalable_topics.layout.segment import CreatedBy, Segment, SegmentState
from scalable_topics.layout.segment_layout import SegmentLayout

MAX_MIGRATED_PARTITIONS = 128
"""Most partitions of a topic that is migrated (R29): the record holds one parent and one child for each."""


def legacy_topics(topic: TopicName, partitions: int) -> tuple[str, ...]:
    """Full names of the ordinary topics behind a plain name.

    Args:
        topic: the plain name.
        partitions: its partition count; 0 for a topic that is not partitioned.

    Raises:
        LayoutArgumentError: a negative count.
    """
    if partitions < 0:
        raise LayoutArgumentError(f"{topic.persistent} cannot have {partitions} partitions")
    if partitions == 0:
        return (topic.persistent,)
    return tuple(f"{topic.persistent}-partition-{index}" for index in range(partitions))


def synthetic_layout(topic: TopicName, partitions: int) -> SegmentLayout:
    """The layout that models a topic not migrated (pip-475 "special segments"), at epoch 0.

    It has one active segment a partition, each over the whole ring; `partitions` is 0 for a topic that is not
    partitioned. Raises LayoutArgumentError for a negative count.
    """
    wrapped = {
        segment_id: Segment(segment_id, HashRange.full(), topic=name)
        for segment_id, name in enumerate(legacy_topics(topic, partitions))
    }
    return SegmentLayout(epoch=0, next_segment_id=len(wrapped), segments=wrapped)


def migrated_layout(
    topic: TopicName,
    partitions: int,
    bucket_budget: int = DEFAULT_BUCKET_BUDGET,
    now_ms: int = 0,
    *,
    first_child_id: int | None = None,
    sealed_positions: Mapping[int, str] | None = None,
) -> SegmentLayout:
    """The first layout of a migrated topic, at epoch 0 (pip-475 §2.4).

    A sealed parent wraps each old topic; as many active children tile the ring, each with all parents.

    Args:
        topic: the plain name.
        partitions: its partition count, 0..128; 0 for a topic that is not partitioned.
        bucket_budget: entry buckets of the children together, 1 or more.
        now_ms: wall clock of the migration, milliseconds since 1970; when the parents began is not known.
        first_child_id: id of the first child, above all that earlier attempts have used (R9); right after the parents'
            if left out.
        sealed_positions: by parent id (which is the partition's number), last entry as `ledger:entry` (R14).

    Raises:
        LayoutArgumentError: more than 128 partitions (R29), or a count out of range.
    """
    if partitions > MAX_MIGRATED_PARTITIONS:
        raise LayoutArgumentError(
            f"{topic.persistent} has {partitions} partitions; "
            f"topics of at most {MAX_MIGRATED_PARTITIONS} can be migrated"
        )
    old = legacy_topics(topic, partitions)
    first_id = len(old) if first_child_id is None else first_child_id
    children = planned_initial(len(old), bucket_budget=bucket_budget, first_id=first_id)
    parent_ids = tuple(range(len(old)))
    child_ids = tuple(child.segment_id for child in children)
    positions = sealed_positions or {}
    segments = {
        segment_id: Segment(
            segment_id,
            HashRange.full(),
            state=SegmentState.SEALED,
            child_ids=child_ids,
            sealed_at_ms=now_ms,
            created_by=CreatedBy.MIGRATE,
            topic=name,
            sealed_position=positions.get(segment_id),
        )
        for segment_id, name in enumerate(old)
    }
    for child in children:
        segments[child.segment_id] = Segment(
            child.segment_id,
            child.hash_range,
            parent_ids=parent_ids,
            created_at_ms=now_ms,
            buckets=child.buckets,
            created_by=CreatedBy.MIGRATE,
        )
    return SegmentLayout(epoch=0, next_segment_id=first_id + len(old), segments=segments)
