"""Frames of a consumer session (docs/sessions.md): what the gateway sends, read; what a client sends, made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from scalable_topics.layout import WHOLE, HashRange, LayoutError, Part, SegmentState, to_buckets_json, whole_of
from scalable_topics.layout.json_fields import as_int, as_list, as_member, as_object, as_text, parse_json, required
from scalable_topics.sdk.errors import ClientError

_MOST_QUOTED = 500
WHOLE_ENTRY = 2**31 - 1
"""A place within a batch that is behind all others."""


class ConsumerKind(StrEnum):
    """What a coordinated consumer is."""

    STREAM = "Stream"
    CHECKPOINT = "Checkpoint"


@dataclass(frozen=True, slots=True, order=True)
class AssignmentVersion:
    """Orders the assignments of one subscription."""

    term: int
    epoch: int
    counter: int


@dataclass(frozen=True, slots=True)
class Floor:
    """Up to where an entry bucket is not to be delivered again, although the segment's cursor stands before that (R22).

    Args:
        bucket: index of the bucket within the segment.
        ledger_id: ledger of the last message that was received of it.
        entry_id: entry within the ledger.
        batch_index: place within the entry's batch; WHOLE_ENTRY for all of the entry.
    """

    bucket: int
    ledger_id: int
    entry_id: int
    batch_index: int


@dataclass(frozen=True, slots=True)
class AssignedSegment:
    """A segment that a consumer may be attached to, or one of its entry buckets.

    Args:
        segment_id: id, unique within the topic.
        hash_range: the part of the ring it covers.
        topic: full name of the topic that holds its messages.
        state: Active or Sealed.
        bucket: index of the entry bucket that is meant; WHOLE for the whole segment.
        bucket_count: how many equal entry buckets it has.
        end: ledger and entry of the last entry of a sealed segment; None if it is not said.
        start: ledger and entry up to which the group had committed it when it was assigned; said to checkpoint
            consumers, None if it is not said.
        floors: of the buckets that are meant, as far as they have one; said to checkpoint consumers.
        is_ordinary: it is a partition of a topic that is not scalable yet: attached to beside others (R25).
        from_latest: a new subscription starts at its end.
    """

    segment_id: int
    hash_range: HashRange
    topic: str
    state: SegmentState = SegmentState.ACTIVE
    bucket: int = WHOLE
    bucket_count: int = 1
    end: tuple[int, int] | None = None
    start: tuple[int, int] | None = None
    floors: tuple[Floor, ...] = ()
    is_ordinary: bool = False
    from_latest: bool = False

    @property
    def part(self) -> Part:
        """What is meant of it."""
        return Part(self.segment_id, self.bucket)

    @property
    def is_shared(self) -> bool:
        """Whether others may read other buckets of it at the same time."""
        return self.bucket != WHOLE

    @property
    def is_sealed(self) -> bool:
        """Whether nothing more will be written to it."""
        return self.state is SegmentState.SEALED


@dataclass(frozen=True, slots=True)
class Registered:
    """The leader knows the consumer.

    Args:
        grace_seconds: how long it stays a member without a session.
        handover_seconds: how long it may take to give a segment back.
        record: within which versions compare.
    """

    grace_seconds: float
    handover_seconds: float
    record: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Everything the consumer may be attached to from now on.

    Args:
        version: orders it among others.
        segments: each whole one once, and each entry bucket by itself.
    """

    version: AssignmentVersion
    segments: tuple[AssignedSegment, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """The consumer is no member any more."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The session is over.

    Args:
        status: as of HTTP.
        reason: for people.
        is_final: an error for the application; otherwise the consumer registers again.
    """

    status: int
    reason: str
    is_final: bool


Frame = Registered | Assignment | Left | Refused


def parse_frame(data: str) -> Frame | None:
    """Read a frame; None for one of a type that this release does not know.

    Raises:
        ClientError: not JSON, or a field is missing or wrong.
    """
    try:
        body = as_object(parse_json(data), "a frame")
        match as_text(required(body, "type", "a frame"), "type"):
            case "registered":
                record = as_text(body.get("record", ""), "record")
                return Registered(_seconds(body, "graceMs"), _seconds(body, "handoverMs"), record)
            case "assignment":
                segments = as_list(required(body, "segments", "an assignment"), "segments")
                return Assignment(_version(body), tuple(part for segment in segments for part in _parts(segment)))
            case "left":
                return Left()
            case "refused":
                return Refused(
                    as_int(body.get("status", 0), "status"),
                    as_text(body.get("reason", "no reason is given"), "reason"),
                    body.get("final") is True,
                )
            case _:
                return None
    except (ValueError, LayoutError) as error:
        raise ClientError(f"cannot read what the gateway sent: {error}"[:_MOST_QUOTED]) from None


def register_frame(
    consumer: str, incarnation: str, kind: ConsumerKind, initial_position: str, *, resume: bool, holds: Iterable[Part]
) -> dict[str, Any]:
    """The first frame of a session."""
    held = tuple(holds)
    return {
        "type": "register",
        "consumer": consumer,
        "incarnation": incarnation,
        "resume": resume,
        "kind": kind.value,
        "initialPosition": initial_position,
        "sharesSegments": True,
        "holds": list(whole_of(held)),
        "holdsBuckets": to_buckets_json(held),
    }


def released_frame(part: Part) -> dict[str, Any]:
    """It has detached from a segment, or from an entry bucket."""
    return {"type": "released", "segments": list(whole_of([part])), "buckets": to_buckets_json([part])}


def drained_frame(parts: Iterable[Part]) -> dict[str, Any]:
    """Everything in these, of sealed segments, is acknowledged, as far as it knows."""
    drained = tuple(parts)
    return {"type": "drained", "segments": list(whole_of(drained)), "buckets": to_buckets_json(drained)}


def leave_frame() -> dict[str, Any]:
    """It has detached from everything and goes for good."""
    return {"type": "leave"}


def _seconds(body: Mapping[str, Any], name: str) -> float:
    return as_int(required(body, name, "a frame"), name) / 1000


def _version(body: Mapping[str, Any]) -> AssignmentVersion:
    version = as_object(required(body, "version", "an assignment"), "version")
    return AssignmentVersion(
        *(as_int(required(version, key, "a version"), key) for key in ("term", "epoch", "counter"))
    )


def _parts(value: object) -> list[AssignedSegment]:
    where = "a segment"
    source = as_object(value, where)
    whole = AssignedSegment(
        segment_id=as_int(required(source, "id", where), "id"),
        hash_range=HashRange.parse_descriptor(as_text(required(source, "range", where), "range")),
        topic=as_text(required(source, "topic", where), "topic"),
        state=as_member(SegmentState, required(source, "state", where), "state"),
        bucket_count=as_int(source.get("bucketCount", 1), "bucketCount"),
        end=_position(source, "end"),
        start=_position(source, "start"),
        floors=tuple(_floor(floor) for floor in as_list(source.get("floors", []), "floors")),
    )
    buckets = [as_int(bucket, "buckets") for bucket in as_list(source.get("buckets", []), "buckets")]
    if not all(0 <= bucket < whole.bucket_count for bucket in buckets):
        raise LayoutError(f"segment {whole.segment_id} has {whole.bucket_count} buckets, not all of {buckets}")
    if not buckets:
        return [whole]
    return [
        replace(whole, bucket=bucket, floors=tuple(floor for floor in whole.floors if floor.bucket == bucket))
        for bucket in buckets
    ]


def _floor(value: object) -> Floor:
    where = "a floor"
    source = as_object(value, where)
    ledger, entry, *rest = as_text(required(source, "position", where), "position").split(":")
    batch_index = int(rest[0]) if rest else WHOLE_ENTRY
    return Floor(as_int(required(source, "bucket", where), "bucket"), int(ledger), int(entry), batch_index)


def _position(source: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    if source.get(name) is None:
        return None
    text = as_text(source[name], name)
    ledger, _, entry = text.partition(":")
    return int(ledger), int(entry)
