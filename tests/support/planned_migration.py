"""A migration as a leader plans it: the ordinary topics are the parents of everything (pip-475 §2.4). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics.layout import PlannedSegment, SegmentLayout, TopicName, migrated_layout


@dataclass(frozen=True, slots=True)
class PlannedMigration:
    """What is sealed, what is made, and what comes of it.

    Args:
        parent_ids: segments that are the ordinary topics.
        children: segments it makes, in ring order.
        after: the layout once it is done.
    """

    parent_ids: tuple[int, ...]
    children: tuple[PlannedSegment, ...]
    after: SegmentLayout


def plan_migration(
    topic: TopicName, partitions: int, *, bucket_budget: int = 1, attempts_before: int = 0
) -> PlannedMigration:
    """Plan the migration of a topic with so many partitions, 0 where it is not partitioned.

    No id is used again that an attempt before used (R9).
    """
    topics = max(1, partitions)
    after = migrated_layout(
        topic, partitions, bucket_budget=bucket_budget, first_child_id=topics * (1 + attempts_before)
    )
    children = tuple(PlannedSegment(child.segment_id, child.hash_range, child.buckets) for child in after.active)
    return PlannedMigration(tuple(segment.segment_id for segment in after.sealed), children, after)
