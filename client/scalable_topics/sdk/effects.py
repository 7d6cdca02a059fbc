"""What a `SendPlan` wants done, and how attempts at sends can fail. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from scalable_topics.sdk.segment_lane import SegmentLane, Send


class Outcome(Enum):
    """How one send ended, if not well."""

    REFUSED = "the topic is terminated"
    REJECTED = "definitely not stored, and never will be"
    UNKNOWN = "may or may not be stored"


@dataclass(frozen=True, slots=True)
class OpenProducer:
    """Open a Pulsar producer for the lane under `lane.producer_name`."""

    lane: SegmentLane
    generation: int


@dataclass(frozen=True, slots=True)
class CloseProducer:
    """Close this Pulsar producer; what it still holds has been decided, or will be from the tail."""

    lane: SegmentLane
    producer: Any


@dataclass(frozen=True, slots=True)
class FlushProducer:
    """Send the lane's batch now."""

    lane: SegmentLane


@dataclass(frozen=True, slots=True)
class HandOver:
    """Hand the lane's queue to its producer: `lane.take`, while `lane.may_take`."""

    lane: SegmentLane


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Call `retry` for the lane after a delay that grows with `failures`."""

    lane: SegmentLane
    failures: int


@dataclass(frozen=True, slots=True)
class ReadTail:
    """Find the last sequence id stored under the lane's producer name, then call `tail_read`."""

    lane: SegmentLane
    inquiry: int


@dataclass(frozen=True, slots=True)
class Stored:
    """This send was found stored, without its position being known."""

    send: Send


@dataclass(frozen=True, slots=True)
class Undecidable:
    """Whether this send is stored cannot be found out."""

    send: Send


@dataclass(frozen=True, slots=True)
class Forgotten:
    """This send was never stored and is not sent again, since the application has been told its time is over."""

    send: Send


Effect: TypeAlias = (
    OpenProducer | CloseProducer | FlushProducer | HandOver | RetryLater | ReadTail | Stored | Undecidable | Forgotten
)
