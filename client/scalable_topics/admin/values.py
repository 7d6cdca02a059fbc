"""What the gateway tells of topics, subscriptions and segments, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from scalable_topics.admin.policy import AutoScalePolicy
from scalable_topics.layout import HashRange, SegmentLayout, TopicName


class SubscriptionType(StrEnum):
    """Ordered (STREAM, CHECKPOINT) or shared (QUEUE)."""

    STREAM = "STREAM"
    QUEUE = "QUEUE"
    CHECKPOINT = "CHECKPOINT"


class InitialPosition(StrEnum):
    """Where a new subscription starts."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """The record of a topic (pip-468 ScalableTopicMetadata).

    Args:
        topic: its name.
        layout: its segments.
        properties: what was said of it when it was made.
        auto_scale_policy: its own override (pip-483); None if it has none.
    """

    topic: TopicName
    layout: SegmentLayout
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    auto_scale_policy: AutoScalePolicy | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", MappingProxyType(dict(self.properties)))


@dataclass(frozen=True, slots=True)
class Rates:
    """Load as Pulsar's statistics name it, each a second.

    Args:
        msg_rate_in: messages stored.
        byte_rate_in: bytes stored.
        msg_rate_out: messages delivered.
        byte_rate_out: bytes delivered.
    """

    msg_rate_in: float
    byte_rate_in: float
    msg_rate_out: float
    byte_rate_out: float


@dataclass(frozen=True, slots=True)
class SegmentStats:
    """One active segment.

    Args:
        segment_id: its id.
        name: full name of its topic at the brokers.
        hash_range: the part of the ring it covers.
        entry_buckets: how many it has.
        load: None while it is not known.
    """

    segment_id: int
    name: str
    hash_range: HashRange
    entry_buckets: int
    load: Rates | None


@dataclass(frozen=True, slots=True)
class TopicStats:
    """Load of a topic as of its leader's last sample.

    Args:
        topic: its name.
        epoch: of its layout.
        segments: the active ones, by id.
        total: sum of the loads that are known.
        backlog: messages not acknowledged, by subscription.
        sealed_segments: how many there still are.
        useful_parallelism: consumers of one subscription that have something to do at the same time.
        max_backlog: largest backlog of a subscription.
        load_age_seconds: age of the sample; None while there is none.
        raw: the whole answer, further fields included.
    """

    topic: TopicName
    epoch: int
    segments: tuple[SegmentStats, ...]
    total: Rates
    backlog: Mapping[str, int] = field(hash=False)
    sealed_segments: int
    useful_parallelism: int
    max_backlog: int
    load_age_seconds: float | None
    raw: Mapping[str, Any] = field(repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule of the auto-scaler found.

    Args:
        rule: its name.
        fired: whether it asks for something.
        code: of its reason.
        why: the same with its numbers, for people.
    """

    rule: str
    fired: bool
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The last automatic decision (pip-483).

    Args:
        topic: what it is about.
        observed_at: when it was made, ISO 8601.
        code: of the decision.
        action: what is done, with `kind` and `segments`; None if nothing.
        findings: of every rule, in their order.
        raw: the whole answer: load, consumers and clocks, too.
    """

    topic: TopicName
    observed_at: str
    code: str
    action: Mapping[str, Any] | None = field(hash=False)
    findings: tuple[Finding, ...]
    raw: Mapping[str, Any] = field(repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class AssignmentVersion:
    """Which of two assignments is the later one: compared in this order.

    Args:
        term: of the leader.
        epoch: of the layout.
        counter: within the two.
    """

    term: int
    epoch: int
    counter: int


@dataclass(frozen=True, slots=True)
class AssignedSegment:
    """What one consumer reads of one segment.

    Args:
        segment_id: the segment.
        buckets: its entry buckets; empty for all.
    """

    segment_id: int
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AssignedConsumer:
    """One consumer of an ordered subscription.

    Args:
        name: as it registered.
        registered_at: since when, ISO 8601.
        segments: what it reads.
        releasing: segments that it is to let go of.
        releasing_buckets: entry buckets that it is to let go of.
    """

    name: str
    registered_at: str
    segments: tuple[AssignedSegment, ...]
    releasing: tuple[int, ...]
    releasing_buckets: tuple[AssignedSegment, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who reads what of an ordered subscription.

    Args:
        version: of the assignment; None before the first one.
        drained: sealed segments that have been read to their end.
        consumers: those that are registered.
    """

    version: AssignmentVersion | None
    drained: tuple[int, ...]
    consumers: tuple[AssignedConsumer, ...]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription that is declared or was asked for.

    Args:
        name: its name.
        type: ordered or shared.
        phase: where it stands, like `Active`.
        initial_position: where it started.
        out_of_scope: segments that were sealed before it started at the latest message.
        declared_by: `spec`, `object` or `request`.
        assignment: who reads what; None for shared ones.
    """

    name: str
    type: SubscriptionType
    phase: str
    initial_position: InitialPosition
    out_of_scope: tuple[int, ...]
    declared_by: str
    assignment: Assignment | None = None


@dataclass(frozen=True, slots=True)
class SegmentCursor:
    """The cursor of a subscription on one segment.

    Args:
        backlog: entries not acknowledged.
        mark_delete: last position up to which all is acknowledged, `ledger:entry`.
        consumers: how many are attached.
        counts: whether it keeps messages from being deleted.
    """

    backlog: int
    mark_delete: str
    consumers: int
    counts: bool
