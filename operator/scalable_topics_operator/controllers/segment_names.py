"""Full names of segments' topics, whoever owns the layout."""

from __future__ import annotations

from scalable_topics.layout import Segment, TopicName, classic_segment_name, native_segment_name
from scalable_topics_operator.controllers.connections import NATIVE


def segment_topic(backend: str, topic: TopicName, segment: Segment) -> str:
    """The name under which brokers have a segment: its own where it wraps an ordinary topic, else the derived one."""
    if segment.topic is not None:
        return segment.topic
    make = native_segment_name if backend == NATIVE else classic_segment_name
    return make(topic, segment.hash_range, segment.segment_id)
