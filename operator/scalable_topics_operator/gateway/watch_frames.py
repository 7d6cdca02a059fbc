"""What watch sessions are sent, as frames that are made once for all of a topic's watchers (docs/sessions.md). Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.controllers.connections import CLASSIC
from scalable_topics_operator.controllers.segment_names import segment_topic
from scalable_topics_operator.operations.layout_message import content_of, layout_message
from scalable_topics_operator.operations.topic_state import TopicState

_POSITION_BYTES = 12

DELETED = b'{"type":"deleted"}'


@dataclass(frozen=True, slots=True)
class LayoutFrame:
    """A topic's full state.

    Args:
        position: tells two states apart, and by the same text on every replica; it orders nothing.
        frame: as it is sent.
        epoch: of the layout.
        term: in the layout's message.
        active: topics of the active segments, by their ids.
    """

    position: str
    frame: bytes
    epoch: int
    term: int
    active: Mapping[int, str]


def layout_frame(
    topic: TopicName,
    state: TopicState,
    leader: Peer | None,
    *,
    hold_ms: int,
    least_term: int = 0,
    backend: str = CLASSIC,
) -> LayoutFrame | None:
    """The frame of a state; None while there is no layout.

    On Classic the message in it is what the topic's leader publishes, to the letter but for two numbers. The term is
    the present leader's, while the layout topic keeps that of the leader who told it first, since a new one with
    nothing to tell publishes nothing. The step, where nothing is announced, may be one that an operation has reserved
    that prepares itself, of which nothing is published. Nobody's layout depends on either. On Native nothing is
    published, and segments are named as brokers name them.

    Args:
        topic: the scalable topic.
        state: as committed.
        leader: of the topic; None while nobody is known to lead it.
        hold_ms: how long producers hold after an announcement, in milliseconds.
        least_term: of the frame before, below which the term does not fall while there is no leader.
        backend: who owns the layout, and so names the segments (R2).
    """
    if state.layout is None:
        return None
    journaled = state.operation.term if state.operation is not None else 0
    term = max(leader.term if leader is not None else 0, journaled, least_term)
    name = partial(segment_topic, backend)
    message = layout_message(topic, state, term=term, hold_ms=hold_ms, segment_topic=name)
    told = {"identity": leader.identity, "address": leader.address} if leader is not None else None
    position = _position(message, told)
    head = f'{{"type":"layout","position":"{position}","layout":{message},"leader":{_compact(told)}}}'
    active = {segment.segment_id: name(topic, segment) for segment in state.layout.active}
    return LayoutFrame(position, head.encode(), state.layout.epoch, term, active)


def unchanged_frame(position: str) -> bytes:
    """The frame that says that nothing has changed since a position."""
    return _compact({"type": "unchanged", "position": position}).encode()


def owners_frame(epoch: int, owners: Mapping[int, str]) -> bytes:
    """The frame that tells which brokers serve the active segments of a layout, by the segments' ids."""
    told = {str(segment_id): owners[segment_id] for segment_id in sorted(owners)}
    return _compact({"type": "owners", "epoch": epoch, "owners": told}).encode()


def _position(message: str, leader: Mapping[str, str] | None) -> str:
    """A hash of what the frame tells.

    A step tells something only of an announcement: that it is made again. Else it grows with what leaders journal and
    clients need not know.
    """
    content: dict[str, Any] = content_of(message)
    if "announcement" not in content:
        del content["step"]
    told = _compact([content, leader]).encode()
    return hashlib.blake2b(told, digest_size=_POSITION_BYTES).hexdigest()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
