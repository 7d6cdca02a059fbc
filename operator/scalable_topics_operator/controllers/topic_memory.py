"""What the process remembers of topics between reconciles."""

from __future__ import annotations

from dataclasses import dataclass, field

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.auto_scaler import ScaleMemory
from scalable_topics_operator.operations.context import Published
from scalable_topics_operator.telemetry.metrics import Metrics


@dataclass(slots=True)
class TopicMemory:
    """What the process remembers of a topic between reconciles; losing it costs reads, nothing else.

    Args:
        uid: of the object.
        opened_here: journals opened by this process (R8).
        published: what clients were told last (R20).
        drift_due: monotonic time of the next drift check; 0.0 for at once.
        drift_patience: how often that may still be put off while there is other work to do.
        prune_due: monotonic time of the next look for prunable segments.
        clients_due: monotonic time of the next look at clients and settings of a topic whose layout the brokers own.
        shown: the topic that the metrics show for it, if any.
        segments_shown: topic and connection that the metrics of its segments show for it, if any.
        next_segment_id: the highest one it has recorded; a record with a lower one, or the first that this process
            sees, may have come from a backup (R11).
        scale: of decisions on its segments.
    """

    uid: str
    opened_here: set[str] = field(default_factory=set)
    published: Published = field(default_factory=Published)
    drift_due: float = 0.0
    drift_patience: int = 0
    prune_due: float = 0.0
    clients_due: float = 0.0
    shown: str = ""
    segments_shown: tuple[str, str] | None = None
    next_segment_id: int | None = None
    scale: ScaleMemory = field(default_factory=ScaleMemory)

    def may_be_outdated(self, next_segment_id: int) -> bool:
        """Whether a record that would give out this id next may be older than the segments (R11)."""
        return self.next_segment_id is None or next_segment_id < self.next_segment_id


class TopicMemories:
    """Memories by topic.

    Args:
        metrics: whose series of a topic go with its memory.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._memories: dict[ObjectKey, TopicMemory] = {}

    def __len__(self) -> int:
        """How many topics this process works on."""
        return len(self._memories)

    def is_new(self, key: ObjectKey, body: Body) -> bool:
        """Whether nothing is remembered of this very object."""
        memory = self._memories.get(key)
        return memory is None or memory.uid != body["metadata"]["uid"]

    def of(self, key: ObjectKey, body: Body) -> TopicMemory:
        """The memory of an object, made if there is none."""
        if self.is_new(key, body):
            self.forget(key)
            self._memories[key] = TopicMemory(body["metadata"]["uid"])
        return self._memories[key]

    def get(self, key: ObjectKey) -> TopicMemory | None:
        """What is remembered of a topic; None of one that this process does not work on."""
        return self._memories.get(key)

    def decide_soon(self, key: ObjectKey) -> None:
        """Something that decisions on a topic depend on has changed."""
        if (memory := self._memories.get(key)) is not None:
            memory.scale.due = 0.0

    def observe_soon(self, key: ObjectKey) -> None:
        """Record and brokers are to be compared when the topic is looked at next."""
        if (memory := self._memories.get(key)) is not None:
            memory.drift_due = 0.0

    def stop_looking(self, key: ObjectKey) -> None:
        """Nobody looks at a topic's segments for now: what the last looks found may be over, and is shown no more."""
        memory = self._memories.get(key)
        if memory is not None and memory.segments_shown is not None:
            self._metrics.segments.hide_looks(*memory.segments_shown)

    def forget(self, key: ObjectKey) -> None:
        """Drop what is remembered of a topic: it is gone, or another replica works on it from now on."""
        memory = self._memories.pop(key, None)
        if memory is not None and memory.shown:
            self._metrics.forget_layout(memory.shown)
            self._metrics.scaling.forget(memory.shown)
        if memory is not None and memory.segments_shown is not None:
            self._metrics.segments.forget(*memory.segments_shown)
