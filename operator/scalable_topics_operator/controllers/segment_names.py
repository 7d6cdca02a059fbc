"""Full names of segments' topics, whoever owns the layout."""

from __future__ import annotations

from scalable_topics.layout import Segment, TopicName, native_segment_name
from scalable_topics_operator.backends.classic import names
from scalable_topics_operator.controllers.connections import NATIVE


def segment_topic(backend: str, topic: TopicName, segment: Segment) -> str:
    """The name under which brokers have a segment: its own where it wraps an ordinary topic, else the derived one."""
    if backend == NATIVE:
        return segment.topic or native_segment_name(topic, segment.hash_range, segment.segment_id)
    return names.segment_topic(topic, segment)
