"""One consumer's side of the contract of consumer sessions (docs/sessions.md, R7, R21). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import Part
from scalable_topics.sdk.session_frames import (
    AssignedSegment,
    Assignment,
    ConsumerKind,
    Frame,
    Left,
    Refused,
    Registered,
    drained_frame,
    leave_frame,
    register_frame,
    released_frame,
)

# pulsar-client needs a moment for a broker that restarts or hands a topic on; nobody else gets the segment so fast.
UNSERVED_SECONDS = 3.0
# The rest is for detaching, so that the leader does not give up waiting.
_HANDOVER_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Send a frame in the session there is."""

    frame: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AttachTo:
    """Attach to these segments and buckets, as often as it takes."""

    segments: tuple[AssignedSegment, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A segment has changed that it is attached to, whole or to this bucket of it: it is sealed now, for instance."""

    segment: AssignedSegment


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Deliver nothing more of a part, let what was delivered be acknowledged, detach, then call `detached`.

    Args:
        part: the segment, or the entry bucket.
        within_seconds: how long acknowledgements may take.
    """

    part: Part
    within_seconds: float


@dataclass(frozen=True, slots=True)
class Drop:
    """Deliver nothing more of a part and detach at once, also in the middle of giving back; then call `detached`."""

    part: Part


@dataclass(frozen=True, slots=True)
class Fail:
    """The application is to be told that the consumer is of no use any more."""

    refusal: Refused


Effect = SendFrame | AttachTo | Update | GiveBack | Drop | Fail


@dataclass(slots=True)
class _Held:
    segment: AssignedSegment
    is_going: bool = False


class SessionState:
    """What a consumer holds, and what it says of that.

    A part is *held* from `AttachTo` until `detached`: as long as a broker might show the consumer there. Nothing is
    attached to that has a bucket in common with what is held: a segment that it reads whole and shall share is
    detached from first, and the other way round.

    Args:
        consumer: name of the consumer, unique within the subscription.
        incarnation: random, made once a consumer object.
        kind: what it is.
        initial_position: where a new subscription starts, `Earliest` or `Latest`.
    """

    def __init__(self, consumer: str, incarnation: str, kind: ConsumerKind, initial_position: str) -> None:
        self._consumer = consumer
        self._incarnation = incarnation
        self._kind = kind
        self._initial_position = initial_position
        self._held: dict[Part, _Held] = {}
        self._drained: set[Part] = set()
        self._newest: Assignment | None = None
        self._record: str | None = None
        self._is_open = False
        self._is_registered = False
        # Whether the newest assignment is known to hold in this session.
        self._is_confirmed = False
        self._resume = False
        self._grace_seconds: float | None = None
        self._handover_seconds = 0.0
        self._heard_at = 0.0
        self._unserved_since: dict[Part, float] = {}
        self._is_leaving = False
        self._is_over = False

    @property
    def holds(self) -> tuple[Part, ...]:
        """The segments and buckets it holds."""
        return tuple(sorted(self._held))

    @property
    def is_registered(self) -> bool:
        """Whether there is a session in which the leader knows it."""
        return self._is_registered

    @property
    def is_over(self) -> bool:
        """Whether there will be no session any more: it was refused for good, or it has left."""
        return self._is_over

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left to say: it is over, or there is no session to leave."""
        return self._is_over or (self._is_leaving and not self._is_open and not self._held)

    def opened(self) -> list[Effect]:
        """A connection to the gateway is there."""
        self._is_open = True
        return [
            SendFrame(
                register_frame(
                    self._consumer,
                    self._incarnation,
                    self._kind,
                    self._initial_position,
                    resume=self._resume,
                    holds=self._held,
                )
            )
        ]

    def lost(self) -> None:
        """The connection is gone."""
        self._is_open = self._is_registered = self._is_confirmed = False

    def heard(self, now: float) -> None:
        """The gateway has sent something.

        Args:
            now: seconds of a clock that only rises.
        """
        # A gateway that knows no leader is no contact with one.
        if self._is_registered:
            self._heard_at = now

    def received(self, frame: Frame) -> list[Effect]:
        """The gateway has sent a frame."""
        match frame:
            case Registered():
                self._is_registered = self._resume = True
                self._grace_seconds = frame.grace_seconds
                self._handover_seconds = frame.handover_seconds
                if self._record not in (None, frame.record):
                    # Made anew: versions begin anew, too.
                    self._newest = None
                self._record = frame.record
                return [SendFrame(drained_frame(self._drained))] if self._drained else []
            case Assignment():
                return self._assigned(frame)
            case Left():
                self._is_over = True
                return []
            case Refused():
                if not frame.is_final:
                    return []
                self._is_over = True
                return [Fail(frame), *self._drop(self._held)]

    def detached(self, part: Part) -> list[Effect]:
        """It is attached to a part no longer."""
        del self._held[part]
        self._drained.discard(part)
        self._unserved_since.pop(part, None)
        attach = self._attach(self._wanted().values()) if self._is_confirmed else []
        # It was never missed, if it is back at once.
        if part in self._held or not self._is_open:
            return attach
        if self._is_leaving:
            return [] if self._held else [SendFrame(leave_frame())]
        return [SendFrame(released_frame(part)), *attach]

    def drained(self, part: Part) -> list[Effect]:
        """Everything in a part of a sealed segment is acknowledged, as far as it knows."""
        if part not in self._held:
            return []
        # Said again in the next session: this one may be lost before the leader hears it.
        self._drained.add(part)
        return [SendFrame(drained_frame([part]))] if self._is_registered else []

    def passed(self, now: float, unserved: Collection[Part]) -> list[Effect]:
        """Time has passed; to be called about every second.

        Args:
            now: as for `heard`.
            unserved: what no broker serves it at this moment.
        """
        self._unserved_since = {part: self._unserved_since.get(part, now) for part in unserved}
        if self._is_registered or self._grace_seconds is None or now - self._heard_at < self._grace_seconds:
            return []
        return self._drop(
            part
            for part, since in self._unserved_since.items()
            if now - since >= UNSERVED_SECONDS and not self._held[part].is_going
        )

    def leave(self) -> list[Effect]:
        """The application needs it no longer."""
        if self._is_leaving:
            return []
        self._is_leaving = True
        if self._held:
            return self._drop(self._held)
        return [SendFrame(leave_frame())] if self._is_open else []

    def _assigned(self, assignment: Assignment) -> list[Effect]:
        is_stale = self._newest is not None and assignment.version < self._newest.version
        if is_stale or self._is_leaving or self._is_over:
            return []
        # One of the same version says that the consumer still has what it had: what it detached from while it was
        # without contact is attached to again.
        if self._newest is None or assignment.version > self._newest.version:
            self._newest = assignment
        self._is_confirmed = True
        wanted = self._wanted()
        effects: list[Effect] = []
        for part, held in self._held.items():
            segment = wanted.get(part)
            if held.is_going:
                continue
            if segment is None or _is_other(segment, held.segment):
                held.is_going = True
                effects.append(GiveBack(part, _HANDOVER_SHARE * self._handover_seconds))
            elif segment != held.segment:
                held.segment = segment
                effects.append(Update(segment))
        return effects + self._attach(wanted.values())

    def _wanted(self) -> dict[Part, AssignedSegment]:
        if self._newest is None or self._is_leaving or self._is_over:
            return {}
        return {segment.part: segment for segment in self._newest.segments}

    def _attach(self, segments: Iterable[AssignedSegment]) -> list[Effect]:
        """Attach to those that have no bucket in common with what is held."""
        attach = []
        held = defaultdict[int, list[Part]](list)
        for part in self._held:
            held[part.segment_id].append(part)
        for segment in segments:
            if not any(segment.part.conflicts_with(part) for part in held[segment.segment_id]):
                held[segment.segment_id].append(segment.part)
                self._held[segment.part] = _Held(segment)
                attach.append(segment)
        return [AttachTo(tuple(attach))] if attach else []

    def _drop(self, parts: Iterable[Part]) -> list[Effect]:
        going = list(parts)
        for part in going:
            self._held[part].is_going = True
        return [Drop(part) for part in going]


def _is_other(segment: AssignedSegment, held: AssignedSegment) -> bool:
    is_cut_otherwise = segment.is_shared and segment.bucket_count != held.bucket_count
    return segment.topic != held.topic or is_cut_otherwise
