"""The sends of one producer on one segment, in order (docs/contract.md "Producing", R13, R15, R23). Pure.

A lane is what one Pulsar producer carries: the messages of one entry bucket of a segment, or its keyless ones. It
outlives that producer: it keeps every send whose outcome is not known, in the order of the application's calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from heapq import merge
from typing import Any, NamedTuple

from scalable_topics.layout import sticky_keys
from scalable_topics.sdk.batch_counts import BatchCounts
from scalable_topics.sdk.layout_message import FollowedSegment

KEYLESS = -1
"""In place of a bucket: the lane of messages without any key."""


NOT_HANDED_OVER = -1
"""In place of a sequence id: no Pulsar producer has the send."""


class LaneKey(NamedTuple):
    """Which lane: a segment, and an entry bucket of it or `KEYLESS`."""

    segment_id: int
    bucket: int


class Send:
    """One message on its way.

    Args:
        order: number of the application's call; rises.
        hash_value: hash of its routing key, 0..4294967295; None without any key.
        size_bytes: what it counts against the producer's memory bound.
        deadline: monotonic time at which the application is told that it did not succeed.
        travels_alone: never in a batch; pulsar-client sends such a message at once, past those in its batch.

    Attributes:
        lane: the lane that handed it to a Pulsar producer last.
        sequence_id: what its Pulsar producer calls it, or `NOT_HANDED_OVER`.
        attempt: how often it has been found unsent and is sent anew; tells late outcomes of earlier attempts.
        is_admitted: it counts against the producer's bounds.
        is_told: the application has been told an outcome: it is not sent (again) any more.
        error: that outcome, if it is not stored; None otherwise, and before.
        position: pulsar-client's message id, once the send is stored and it is known.
    """

    __slots__ = (
        "attempt",
        "deadline",
        "error",
        "hash_value",
        "is_admitted",
        "is_told",
        "lane",
        "order",
        "position",
        "sequence_id",
        "size_bytes",
        "travels_alone",
    )

    def __init__(
        self,
        order: int,
        hash_value: int | None,
        size_bytes: int = 0,
        deadline: float = 0.0,
        travels_alone: bool = False,
    ) -> None:
        self.order = order
        self.hash_value = hash_value
        self.size_bytes = size_bytes
        self.deadline = deadline
        self.travels_alone = travels_alone
        self.lane: SegmentLane | None = None
        self.sequence_id = NOT_HANDED_OVER
        self.attempt = 0
        self.is_admitted = False
        self.is_told = False
        self.error: Exception | None = None
        self.position: Any = None

    def wake(self) -> None:
        """Let those who wait for the outcome see it."""

    def drop_payload(self) -> None:
        """Let go of what takes memory; it is not built any more."""

    def __repr__(self) -> str:
        return f"Send({self.order})"


class Fate(Enum):
    """What is known of the segment behind a lane."""

    LIVE = "takes messages"
    REFUSED = "refused as terminated; waits for a later layout"
    DOUBTFUL = "lost its producer with outcomes unknown; the tail is being read"
    SEALED = "left the active segments with outcomes unknown"


class Connection(Enum):
    """Whether the lane has a Pulsar producer."""

    NONE = "none"
    OPENING = "opening"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a lane's undecided sends: those stored, and those never stored, each in order."""

    stored: tuple[Send, ...]
    unsent: tuple[Send, ...]


class SegmentLane:
    """One lane. `flows` tells whether a send may go straight to its producer; `refresh` keeps it true to the rest."""

    __slots__ = (
        "batches",
        "connection",
        "failures",
        "fate",
        "flows",
        "gated",
        "generation",
        "held",
        "inflight",
        "inquiry",
        "key",
        "last_acknowledged_id",
        "last_batched_id",
        "last_position",
        "next_sequence_id",
        "opened_at_ms",
        "producer",
        "producer_name",
        "queue",
        "rests",
        "segment",
        "sticky_keys",
    )

    def __init__(self, key: LaneKey, segment: FollowedSegment) -> None:
        self.key = key
        self.segment = segment
        self.sticky_keys = sticky_keys(segment.buckets)
        self.fate = Fate.LIVE
        self.connection = Connection.NONE
        self.held = False
        self.gated = False
        self.flows = False
        self.generation = 0
        self.producer_name = ""
        self.producer: Any = None
        self.next_sequence_id = 0
        self.queue: deque[Send] = deque()
        self.inflight: dict[int, Send] = {}
        self.last_position: Any = None
        self.last_acknowledged_id = NOT_HANDED_OVER
        self.opened_at_ms = 0
        self.last_batched_id = NOT_HANDED_OVER
        self.failures = 0
        self.rests = False
        self.inquiry = 0
        self.batches = BatchCounts()

    @property
    def is_keyed(self) -> bool:
        """Whether its messages have keys, so that their order counts."""
        return self.key.bucket != KEYLESS

    @property
    def is_held_up(self) -> bool:
        """Whether something other than an ordinary opening keeps its sends back."""
        return self.held or self.gated or self.fate is not Fate.LIVE or self.failures > 0

    def refresh(self) -> None:
        """Recompute `flows`."""
        self.flows = (
            self.connection is Connection.OPEN
            and self.fate is Fate.LIVE
            and not (self.held or self.gated or self.queue)
        )

    def begin_producer(self, name: str) -> int:
        """Start over with a producer of this name, which is unique for ever; answers its generation."""
        if self.inflight:
            raise RuntimeError(f"lane {self.key} has sends whose outcome is not known")
        self.connection = Connection.OPENING
        self.generation += 1
        self.producer_name = name
        self.next_sequence_id = 0
        self.last_batched_id = NOT_HANDED_OVER
        self.last_position = None
        self.last_acknowledged_id = NOT_HANDED_OVER
        self.refresh()
        return self.generation

    def admit(self, send: Send) -> bool:
        """Take a send; true if it is to be handed to the producer now, false if it waits in the queue."""
        if self.flows and not send.travels_alone:
            # As `_number`, without the call: this is every message's way in quiet times.
            sequence_id = self.last_batched_id = self.next_sequence_id
            self.next_sequence_id = sequence_id + 1
            self.inflight[sequence_id] = send
            send.sequence_id = sequence_id
            send.lane = self
            return True
        if self.flows and not self.may_be_batching:
            self._number(send)
            return True
        self.queue.append(send)
        self.flows = False
        return False

    def take(self, most: int) -> list[Send]:
        """Take up to `most` sends from the queue's head for handing to the producer."""
        taken: list[Send] = []
        while self.queue and len(taken) < most:
            if self.queue[0].travels_alone and self.may_be_batching:
                break
            send = self.queue.popleft()
            if not send.is_told:
                self._number(send)
                taken.append(send)
        self.refresh()
        return taken

    @property
    def may_be_batching(self) -> bool:
        """Whether a batch may wait in the producer, which a message that travels alone would overtake."""
        return self.last_batched_id in self.inflight

    @property
    def may_take(self) -> bool:
        """Whether queued sends may be handed to the producer now."""
        return self.connection is Connection.OPEN and self.fate is Fate.LIVE and not (self.held or self.gated)

    def empty_queue(self) -> list[Send]:
        """Take everything that waits, in order, to be routed anew."""
        waiting = [send for send in self.queue if not send.is_told]
        self.queue.clear()
        self.refresh()
        return waiting

    def requeue(self, sends: Iterable[Send]) -> None:
        """Put sends into the queue at their places in the application's order."""
        self.queue = deque(merge(sorted(sends, key=_by_order), self.queue, key=_by_order))
        self.refresh()

    def decide(self, last_sequence_id: int) -> Verdict:
        """Settle everything undecided: the last stored sequence id of this producer is known, -1 for none (R15)."""
        undecided = list(self.inflight.values())
        self.inflight.clear()
        stored = tuple(send for send in undecided if send.sequence_id <= last_sequence_id)
        unsent = tuple(send for send in undecided if send.sequence_id > last_sequence_id)
        for send in unsent:
            send.sequence_id = NOT_HANDED_OVER
            send.attempt += 1
        return Verdict(stored, unsent)

    def _number(self, send: Send) -> None:
        sequence_id = self.next_sequence_id
        send.sequence_id = sequence_id
        send.lane = self
        self.next_sequence_id = sequence_id + 1
        self.inflight[sequence_id] = send
        if not send.travels_alone:
            self.last_batched_id = sequence_id

    def __repr__(self) -> str:
        return (
            f"<lane {self.key.segment_id}/{self.key.bucket} {self.fate.name} {self.connection.name}"
            f"{' held' if self.held else ''}{' gated' if self.gated else ''}"
            f" queue {len(self.queue)} in flight {len(self.inflight)}>"
        )


def _by_order(send: Send) -> int:
    return send.order
