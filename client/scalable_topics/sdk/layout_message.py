"""Messages of a layout topic (docs/contract.md, R12, R20): reading them and telling which wins. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scalable_topics.layout import MAX_BUCKETS, RING_SIZE, HashRange, LayoutError, SegmentState, parse_incarnation
from scalable_topics.layout.json_fields import as_int, as_list, as_member, as_object, as_text, parse_json, required
from scalable_topics.sdk.errors import LayoutMessageError, NativeTopicError

SUPPORTED_VERSION = 1
_NATIVE_SEGMENT = "segment://"

Settled = Mapping[int, Mapping[str, int]]
"""Of sealed segments: the last stored sequence id of each producer by its name, -1 for none."""


class Routing(StrEnum):
    """How a key finds its segment."""

    RANGES = "Ranges"
    MODULO = "Modulo"


@dataclass(frozen=True, slots=True)
class FollowedSegment:
    """A segment as clients see it.

    Args:
        segment_id: id, unique within the topic.
        hash_range: the part of the ring it covers.
        topic: full name of the topic that holds its messages.
        buckets: its entry buckets, 1..1024.
        state: Active or Sealed; of an announced child, Active.
        parents: ids of the segments it replaces.
    """

    segment_id: int
    hash_range: HashRange
    topic: str
    buckets: int = 1
    state: SegmentState = SegmentState.ACTIVE
    parents: tuple[int, ...] = ()

    @property
    def is_active(self) -> bool:
        """Whether it takes messages."""
        return self.state is SegmentState.ACTIVE


@dataclass(frozen=True, slots=True)
class Announcement:
    """An announced seal (R13).

    Args:
        operation: id of the change.
        parents: ids of the segments about to be sealed.
        children: the segments that take over.
        hold_seconds: how long a producer holds back, counted from when it saw the announcement.
    """

    operation: str
    parents: tuple[int, ...]
    children: tuple[FollowedSegment, ...]
    hold_seconds: float


@dataclass(frozen=True, slots=True)
class LayoutMessage:
    """What one message of a layout topic says.

    Args:
        topic: `topic://tenant/namespace/name`.
        incarnation: `uid.counter`.
        epoch: of the layout.
        step: orders messages of one epoch.
        term: leadership term of the publisher.
        segments: all segments of the layout by id.
        announcement: an announced seal, or None.
        settled: last stored sequence ids of sealed segments' producers.
        routing: Ranges where the active segments tile the ring. Modulo where they are the ordinary topics behind a
            topic that is not migrated yet, each with the whole ring (pip-475 "special segments").
    """

    topic: str
    incarnation: str
    epoch: int
    step: int
    term: int
    segments: Mapping[int, FollowedSegment]
    announcement: Announcement | None = None
    settled: Settled = field(default_factory=dict)
    routing: Routing = Routing.RANGES

    @property
    def active(self) -> tuple[FollowedSegment, ...]:
        """The active segments in ring order, those with the whole ring by id."""
        found = [segment for segment in self.segments.values() if segment.is_active]
        return tuple(sorted(found, key=lambda segment: (segment.hash_range, segment.segment_id)))

    def supersedes(self, other: LayoutMessage | None) -> bool:
        """Whether this message, later in the topic than `other`, is to be followed instead of it."""
        if other is None:
            return True
        uid, counter = parse_incarnation(self.incarnation)
        other_uid, other_counter = parse_incarnation(other.incarnation)
        if uid != other_uid:
            return True
        rank = (counter, self.epoch, self.step, self.term)
        return rank > (other_counter, other.epoch, other.step, other.term)

    def changes_layout(self, other: LayoutMessage | None) -> bool:
        """Whether this message, which supersedes `other`, tells of another layout and not just of an announcement.

        A topic that is migrated keeps epoch 0 (pip-475 §2.4); only its routing becomes another one.
        """
        return other is None or self._layout_key != other._layout_key

    @property
    def _layout_key(self) -> tuple[str, int, Routing]:
        return self.incarnation, self.epoch, self.routing


def parse_layout_message(data: bytes | str) -> LayoutMessage:
    """Read a message.

    Raises:
        LayoutMessageError: not JSON, a field is missing or wrong, the active segments do not tile the ring as their
            routing needs it, or the version or the routing is of a later release.
        NativeTopicError: its segments are the brokers' own.
    """
    try:
        body = as_object(parse_json(data), "a layout message")
        version = as_int(required(body, "version", "a layout message"), "version")
        if version > SUPPORTED_VERSION:
            raise LayoutMessageError(
                f"the layout of {body.get('topic')!r} has version {version} and this release of scalable-topics reads "
                f"{SUPPORTED_VERSION}; upgrade it"
            )
        return _message(body)
    except (ValueError, LayoutError) as error:
        raise LayoutMessageError(f"cannot read a layout message: {error}") from None


def _message(body: Mapping[str, Any]) -> LayoutMessage:
    where = "a layout message"
    segments = [_segment(item, "a segment") for item in as_list(required(body, "segments", where), "segments")]
    message = LayoutMessage(
        topic=as_text(required(body, "topic", where), "topic"),
        incarnation=as_text(required(body, "incarnation", where), "incarnation"),
        epoch=as_int(required(body, "epoch", where), "epoch"),
        step=as_int(required(body, "step", where), "step"),
        term=as_int(required(body, "term", where), "term"),
        segments={segment.segment_id: segment for segment in segments},
        announcement=None if body.get("announcement") is None else _announcement(body["announcement"]),
        settled={} if body.get("settled") is None else _settled(body["settled"]),
        routing=_routing(body),
    )
    parse_incarnation(message.incarnation)
    if any(segment.topic.startswith(_NATIVE_SEGMENT) for segment in segments):
        raise NativeTopicError(message.topic)
    if len(message.segments) != len(segments):
        raise LayoutMessageError(f"the layout of {message.topic} names a segment twice")
    if message.routing is Routing.MODULO:
        _check_whole_rings(message)
    else:
        _check_tiling(message)
    return message


def _routing(body: Mapping[str, Any]) -> Routing:
    named = body.get("routing")
    if named is None:
        return Routing.RANGES
    try:
        return Routing(named)
    except ValueError:
        raise LayoutMessageError(
            f"the layout of {body.get('topic')!r} routes by {named!r}, which this release of scalable-topics cannot; "
            "upgrade it"
        ) from None


def _segment(value: object, where: str) -> FollowedSegment:
    source = as_object(value, where)
    return FollowedSegment(
        segment_id=as_int(required(source, "id", where), "id"),
        hash_range=HashRange.parse_descriptor(as_text(required(source, "range", where), "range")),
        topic=as_text(required(source, "topic", where), "topic"),
        buckets=_buckets(required(source, "buckets", where)),
        state=as_member(SegmentState, source.get("state", SegmentState.ACTIVE), "state"),
        parents=tuple(as_int(item, "a parent") for item in as_list(source.get("parents", []), "parents")),
    )


def _buckets(value: object) -> int:
    buckets = as_int(value, "buckets")
    if not 1 <= buckets <= MAX_BUCKETS:
        raise LayoutMessageError(f"{buckets} entry buckets: a segment has 1 to {MAX_BUCKETS}")
    return buckets


def _announcement(value: object) -> Announcement:
    where = "the announcement"
    source = as_object(value, where)
    return Announcement(
        operation=as_text(required(source, "operation", where), "operation"),
        parents=tuple(as_int(item, "a parent") for item in as_list(required(source, "parents", where), "parents")),
        children=tuple(_segment(item, "a child") for item in as_list(required(source, "children", where), "children")),
        hold_seconds=as_int(required(source, "holdMs", where), "holdMs") / 1000,
    )


def _settled(value: object) -> Settled:
    settled = {}
    for segment_id, producers in as_object(value, "settled").items():
        names = as_object(producers, f"settled {segment_id}")
        settled[int(segment_id)] = {name: as_int(last, f"settled {name}") for name, last in names.items()}
    return settled


def _check_whole_rings(message: LayoutMessage) -> None:
    if not message.active:
        raise LayoutMessageError(f"the layout of {message.topic} has no active segment")
    for segment in message.active:
        if segment.hash_range != HashRange.full():
            raise LayoutMessageError(
                f"{message.topic} is routed by modulo, but its segment {segment.segment_id} has the range "
                f"{segment.hash_range} and not the whole ring"
            )


def _check_tiling(message: LayoutMessage) -> None:
    expected = 0
    for segment in message.active:
        if segment.hash_range.start != expected:
            raise LayoutMessageError(f"the active segments of {message.topic} do not tile the ring at {expected:04x}")
        expected = segment.hash_range.end + 1
    if expected != RING_SIZE:
        raise LayoutMessageError(f"the active segments of {message.topic} end at {expected - 1:04x}")
