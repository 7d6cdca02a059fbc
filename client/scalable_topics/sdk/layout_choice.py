"""Which layout is followed: the operator's, or the one that models an ordinary topic (docs/contract.md, R25). Pure."""

from __future__ import annotations

import uuid

from scalable_topics.layout import TopicName, incarnation_of, synthetic_layout
from scalable_topics.sdk.layout_message import FollowedSegment, LayoutMessage, Routing


class LayoutChoice:
    """Decides for one topic. Whatever it answers supersedes what it answered before.

    Args:
        topic: the topic.
        may_be_ordinary: whether an ordinary topic will do while there is no scalable one.

    Attributes:
        is_scalable: a layout of a scalable topic has been seen: the ordinary topic is never used again.
    """

    def __init__(self, topic: TopicName, *, may_be_ordinary: bool) -> None:
        self.is_scalable = False
        self._topic = topic
        self._may_be_ordinary = may_be_ordinary
        self._published: LayoutMessage | None = None
        self._uid = uuid.uuid4().hex
        self._made = 0
        self._partitions: int | None = None
        self._is_own = False
        self._is_announced = False

    @property
    def wants_count(self) -> bool:
        """Whether it matters how many partitions the ordinary topic has."""
        return self._may_be_ordinary and not self.is_scalable

    def published(self, message: LayoutMessage) -> LayoutMessage | None:
        """The layout topic has this message; answers what is followed from now on, None for what is followed already or
        cannot be told before the partitions are counted.
        """
        if not message.supersedes(self._published):
            return None
        if message.routing is Routing.MODULO and not self.wants_count:
            return None
        self._published = message
        self._is_own = False
        self._is_announced = message.announcement is not None
        if message.routing is Routing.RANGES:
            self.is_scalable = True
            return message
        return self._make() if message.announcement is None else message

    def nothing_published(self) -> LayoutMessage | None:
        """There is no layout topic, or nothing on it; answers as `published`. A migration that was announced has been
        called off then, and what said so has been missed. Should that be wrong, producers do no more than after a hold.
        """
        if not self._is_announced or not self.wants_count:
            return None
        self._is_announced = False
        return self._make()

    def counted(self, partitions: int) -> LayoutMessage | None:
        """The ordinary topic has so many partitions, 0 where it is not partitioned, and there is no layout topic, or
        nothing on it that says otherwise; answers what is followed from now on, None for what is followed already.
        """
        if self._partitions is None or 0 < self._partitions < partitions:
            # Partitions are only ever added. What is attached to a topic without any keeps it (R25).
            self._partitions = partitions
            self._is_own = False
        if self.is_scalable or self._is_own or self._is_announced:
            return None
        return self._make()

    def _make(self) -> LayoutMessage | None:
        if self._partitions is None:
            return None
        self._is_own = True
        incarnation = incarnation_of(self._uid, self._made)
        self._made += 1
        layout = synthetic_layout(self._topic, self._partitions)
        segments = {
            segment.segment_id: FollowedSegment(segment.segment_id, segment.hash_range, segment.topic or "")
            for segment in layout.active
        }
        return LayoutMessage(str(self._topic), incarnation, layout.epoch, 0, 0, segments, routing=Routing.MODULO)
