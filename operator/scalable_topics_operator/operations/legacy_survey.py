"""What an ordinary topic holds and uses, as far as its migration must know (pip-475 §2.4). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scalable_topics_operator.operations.segment_policies import SegmentPolicies

STREAM, QUEUE, UNKNOWN = "Stream", "Queue", "Unknown"


@dataclass(frozen=True, slots=True)
class LegacyClient:
    """A producer or consumer that is attached to an ordinary topic and does not know scalable topics.

    Args:
        role: `Producer` or `Consumer`.
        topic: the topic, or the partition, that it is attached to.
        name: its name.
        address: where it connects from.
        version: of its client library, as it says.
        subscription: of a consumer.
    """

    role: str
    topic: str
    name: str
    address: str
    version: str
    subscription: str = ""


@dataclass(frozen=True, slots=True)
class LegacySubscription:
    """A subscription of one ordinary topic.

    Args:
        counts: it is durable and no internal one (R16).
        kind: what its consumers take it for: `Stream` (Exclusive, Failover), `Queue` (Shared, Key_Shared), or `Unknown`
            while none is attached.
        backlog: entries that it has not acknowledged.
    """

    counts: bool
    kind: str
    backlog: int


@dataclass(frozen=True, slots=True)
class LegacyTopic:
    """One ordinary topic, which is a partition or all there is.

    Args:
        topic: full name.
        entries: entries it holds.
        storage_bytes: their size.
        subscriptions: by name.
        clients: attached clients that do not know scalable topics.
        open_transactions: transactions that are neither committed nor aborted.
        is_compacted: it has been compacted.
        is_terminated: it is sealed.
    """

    topic: str
    entries: int
    storage_bytes: int
    subscriptions: Mapping[str, LegacySubscription]
    clients: tuple[LegacyClient, ...] = ()
    open_transactions: int = 0
    is_compacted: bool = False
    is_terminated: bool = False


@dataclass(frozen=True, slots=True)
class LegacySurvey:
    """An ordinary topic as a whole.

    Args:
        partitions: its partition count; 0 if it is not partitioned.
        topics: its partitions in order, or the one there is; those that no broker has yet are left out.
        properties: its own.
        policies: topic policies it has that are carried over.
        other_policies: names of topic policies it has that are not.
        schemas: versions of its schema.
        clusters: clusters that a topic policy replicates it to, the local one included.
        compaction_threshold_bytes: at which a topic policy has it compacted; 0 for never.
    """

    partitions: int
    topics: tuple[LegacyTopic, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    policies: SegmentPolicies = field(default_factory=SegmentPolicies)
    other_policies: tuple[str, ...] = ()
    schemas: int = 0
    clusters: tuple[str, ...] = ()
    compaction_threshold_bytes: int = 0

    @property
    def clients(self) -> tuple[LegacyClient, ...]:
        """Attached clients that do not know scalable topics, on all of its topics."""
        return tuple(client for topic in self.topics for client in topic.clients)

    @property
    def backlogs(self) -> dict[str, int]:
        """By subscription that counts, the entries of all topics that it has not acknowledged."""
        found: dict[str, int] = {}
        for topic in self.topics:
            for name, entry in topic.subscriptions.items():
                if entry.counts:
                    found[name] = found.get(name, 0) + entry.backlog
        return dict(sorted(found.items()))

    @property
    def kinds(self) -> dict[str, str]:
        """By subscription that counts, what it is taken for; where partitions say different things, a queue."""
        said: dict[str, set[str]] = {}
        for topic in self.topics:
            for name, entry in topic.subscriptions.items():
                if entry.counts:
                    said.setdefault(name, set()).add(entry.kind)
        return {name: _one_kind(kinds) for name, kinds in sorted(said.items())}


def _one_kind(kinds: set[str]) -> str:
    return next((kind for kind in (QUEUE, STREAM) if kind in kinds), UNKNOWN)
