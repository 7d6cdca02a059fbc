"""Names of topics on the Classic backend. Pure."""

from __future__ import annotations

import re

from scalable_topics.layout import Segment, TopicName, classic_segment_name

_PARTITION = re.compile(r"-partition-[0-9]+$")


def segment_topic(topic: TopicName, segment: Segment) -> str:
    """Full name of a segment's topic: its own if the record carries one, else the derived name."""
    if segment.topic is not None:
        return segment.topic
    return classic_segment_name(topic, segment.hash_range, segment.segment_id)


def policy_topic(segment_topic: str) -> str:
    """The topic whose topic policies count for a segment's: brokers keep a partition's with the topic it is one of."""
    return _PARTITION.sub("", segment_topic)
