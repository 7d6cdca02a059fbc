"""Names of topics on the Classic backend. Pure."""

from __future__ import annotations

from scalable_topics.layout import Segment, TopicName, classic_segment_name


def segment_topic(topic: TopicName, segment: Segment) -> str:
    """Full name of a segment's topic: its own if the record carries one, else the derived name."""
    if segment.topic is not None:
        return segment.topic
    return classic_segment_name(topic, segment.hash_range, segment.segment_id)
