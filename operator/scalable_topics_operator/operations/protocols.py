"""What operations need of the outside: the messaging system behind one protocol (DESIGN §3).

Nothing here does I/O. `backends` implements `TopicBackend`; `controllers` hand an implementation to the
operations, which therefore run unchanged over a real broker and over a model of one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scalable_topics.layout import HashRange, Segment, TopicName
from scalable_topics_operator.operations.legacy_survey import LegacyClient, LegacySurvey
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.segment_policies import SegmentPolicies


@dataclass(frozen=True, slots=True)
class Claim:
    """Who owns a scalable topic's name on a Pulsar cluster (R1).

    Args:
        installation_id: the operator installation that made the claim (R4).
        kubernetes_uid: uid of the Kubernetes cluster (its kube-system namespace).
        resource_uid: uid of the ScalableTopic object.
        resource_namespace: Kubernetes namespace of that object.
        resource_name: name of that object.
        backend: `Classic` or `Native` (R2).
        released: True once the object was deleted with `deletionPolicy: Retain`.
    """

    installation_id: str
    kubernetes_uid: str
    resource_uid: str
    resource_namespace: str
    resource_name: str
    backend: str
    released: bool = False

    def shares_installation(self, other: Claim) -> bool:
        """Whether both are of one operator installation, in one Kubernetes cluster."""
        return (self.installation_id, self.kubernetes_uid) == (other.installation_id, other.kubernetes_uid)


@dataclass(frozen=True, slots=True)
class NameState:
    """What exists under a scalable topic's plain name.

    Args:
        exists: a topic (partitioned or not) of that name exists.
        partitions: its partition count; 0 when it is not partitioned or does not exist.
        claim: the claim its properties carry, if any.
        terminated: whether it is sealed, as a claim must be; not told of a partitioned one.
        migrated_from: what its properties say that it was before it was migrated, if they do.
    """

    exists: bool
    partitions: int = 0
    claim: Claim | None = None
    terminated: bool = False
    migrated_from: MigratedFrom | None = None


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """What a segment topic says of itself; written once, in the create call (R11).

    Args:
        segment_id: id, unique within the topic for ever.
        hash_range: the part of the ring it covers.
        parent_ids: segments it replaces; empty for initial ones.
        buckets: its entry buckets, 1..1024.
        merge_depth: merges in its ancestry.
        created_at_epoch: layout epoch that made it readable.
        created_at_ms: wall clock at creation, milliseconds since 1970.
        created_by: `Create`, `Split`, `Merge`, `Rebucket` or `Migrate`.
        operation_id: the journaled operation that made it.
        sibling_ids: all segments made by the same operation, itself included.
        next_segment_id: first id not yet reserved when the operation was journaled.
        claim: the claim under which it was made.
    """

    segment_id: int
    hash_range: HashRange
    parent_ids: tuple[int, ...]
    buckets: int
    merge_depth: int
    created_at_epoch: int
    created_at_ms: int
    created_by: str
    operation_id: str
    sibling_ids: tuple[int, ...]
    next_segment_id: int
    claim: Claim


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One schema version of a topic (R28): `type` as the admin API names it, `schema` text, properties."""

    type: str
    schema: str
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What children take over from their parents: topic-level grants (R26) and schemas in order (R28).

    Args:
        permissions: role -> actions granted on the topic itself, without what the namespace grants.
        schemas: all versions, oldest first.
    """

    permissions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    schemas: tuple[SchemaVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentSetup:
    """All that a new segment topic carries besides its record.

    Args:
        subscriptions: cursors to make at earliest.
        inheritance: grants and schemas to give it.
        policies: topic policies to set.
    """

    subscriptions: frozenset[str] = frozenset()
    inheritance: Inheritance = field(default_factory=Inheritance)
    policies: SegmentPolicies = field(default_factory=SegmentPolicies)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a segment's log: `ledger:entry`, entry -1 before the first entry of a ledger."""

    ledger_id: int
    entry_id: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the `ledger:entry` form. Raises ValueError for anything else."""
        ledger, _, entry = text.partition(":")
        return cls(int(ledger), int(entry))

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


class MessagePosition(NamedTuple):
    """A message in a segment's log; later ones compare greater.

    Args:
        ledger_id: its ledger.
        entry_id: its entry, -1 before the first entry of the ledger.
        batch_index: its place within the entry's batch; -1 for all of the entry.
    """

    ledger_id: int
    entry_id: int
    batch_index: int = -1


@dataclass(frozen=True, slots=True)
class CursorLook:
    """One cursor of a segment as the broker shows it.

    Args:
        counts: durable and not internal (R16).
        mark_delete: everything up to here is acknowledged.
        backlog: entries after it, as the broker counts precisely.
        consumers: consumers attached.
        consumer_names: their names.
    """

    counts: bool
    mark_delete: Position
    backlog: int
    consumers: int
    consumer_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SegmentLook:
    """A segment topic as its broker shows it now.

    Args:
        terminated: whether the broker says it accepts no more entries.
        last_confirmed: its last entry.
        pending_adds: writes neither acknowledged nor failed (hazard A1-26678).
        entries: entries it holds.
        producers: names of the producers attached.
        cursors: by subscription name.
        first_ledger_id: oldest ledger that is kept; what was in older ones is gone.
        open_transactions: transactions that have written to it and are neither committed nor aborted.
    """

    terminated: bool
    last_confirmed: Position
    pending_adds: int
    entries: int
    producers: frozenset[str]
    cursors: Mapping[str, CursorLook]
    first_ledger_id: int = 0
    open_transactions: int = 0

    @property
    def consumers(self) -> int:
        """Consumers attached over all cursors, readers included."""
        return sum(cursor.consumers for cursor in self.cursors.values())

    @property
    def counting(self) -> frozenset[str]:
        """Names of the cursors that count (R16)."""
        return frozenset(name for name, cursor in self.cursors.items() if cursor.counts)


@dataclass(frozen=True, slots=True)
class TailEntry:
    """One entry of a segment's log.

    Args:
        producer: name of the producer that sent it.
        last_sequence_id: sequence id of its last message; a batch carries that of its first.
    """

    producer: str
    last_sequence_id: int


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """A topic whose name parses as a segment of a scalable topic."""

    segment_id: int
    hash_range: HashRange
    topic: str


class Readers(Protocol):
    """The consumers of a topic's ordered subscriptions (R18, R21)."""

    def have_let_go(self, subscription: str) -> bool:
        """Whether none of them reads a segment; they let go while the journal says that their cursors are moved."""


class TopicBackend(Protocol):
    """One Pulsar cluster, seen as the keeper of scalable topics.

    Every method is safe to repeat. All raise `BackendError` subclasses and nothing else for what the
    broker or the network does: `BackendUnavailable` when asking again may help, else `BackendRefused`.
    Segments are named by full topic names (`segment_topic`).
    """

    @property
    def kind(self) -> str:
        """`Classic` or `Native` (R2)."""

    def segment_topic(self, topic: TopicName, segment: Segment) -> str:
        """Full name of a segment's topic: its own if the record carries one, else the derived name."""

    async def require_fit(self, topic: TopicName, *, more_topics: int) -> None:
        """Make sure that the topic's Pulsar namespace can hold so many more of its topics (R24). Raises Unsupported.

        What may not be read of the namespace is taken to be as it should.
        """

    async def read_name(self, topic: TopicName) -> NameState:
        """What exists under the plain name. Raises NamespaceMissing."""

    async def take_claim(self, topic: TopicName, claim: Claim, *, properties: Mapping[str, str] | None = None) -> None:
        """Create, seal and protect the base-name topic carrying `claim` and the user's properties (R1).

        Raises NameTaken if a topic of that name exists with another claim or none, NamespaceMissing.
        """

    async def rewrite_claim(
        self,
        topic: TopicName,
        claim: Claim,
        *,
        properties: Mapping[str, str] | None = None,
        seal: bool = True,
    ) -> None:
        """Replace the claim on an existing base-name topic, and protect it if it is not yet.

        Args:
            topic: the scalable topic.
            claim: what to write.
            properties: the user's properties to bring it to; None leaves them.
            seal: also seal it; False while a migration has not reached its seal.

        Raises TopicMissing.
        """

    async def delete_claim(self, topic: TopicName, *, force: bool = False) -> None:
        """Delete the base-name topic, with all its partitions; quiet when it is gone. Raises ClientsAttached unless
        `force`.
        """

    async def survey(self, topic: TopicName) -> LegacySurvey | None:
        """What the ordinary topic of that name holds and uses; None if there is none. Raises NamespaceMissing."""

    async def legacy_clients(self, legacy_topics: Sequence[str]) -> tuple[LegacyClient, ...]:
        """Who is attached to ordinary topics and does not know scalable topics."""

    async def take_over(self, topic: TopicName, claim: Claim, source: MigratedFrom) -> None:
        """Claim an ordinary topic that is being migrated, and protect it; its partitions are all there then.

        It is not sealed. Raises NameTaken for another's claim, TopicMissing.
        """

    async def let_go(self, topic: TopicName) -> None:
        """Take claim and marks off an ordinary topic again; quiet when it is gone."""

    async def truncate(self, legacy_topic: str) -> None:
        """Drop what every subscription has acknowledged or not, but for the last ledger; quiet when it is gone."""

    async def publish_layout(self, topic: TopicName, message: str) -> None:
        """Append a message to the layout topic, making the topic if it is missing (R20)."""

    async def make_layout_topic(self, topic: TopicName) -> bool:
        """Make the layout topic if it is not there; answers whether it was not."""

    async def expect_layout(self, topic: TopicName) -> None:
        """A layout is published in a moment: do ahead what can be done. Never raises, and changes nothing."""

    async def published_layout(self, topic: TopicName) -> str | None:
        """The latest message of the layout topic; None if there is none."""

    async def delete_layout_topic(self, topic: TopicName) -> None:
        """Delete the layout topic with whoever reads it; quiet when it is gone."""

    def tail_entries(self, segment_topic: str, count: int) -> AsyncIterator[TailEntry]:
        """Entries of a sealed segment from its end backwards, `count` at most. Raises TopicMissing."""

    async def topic_properties(self, topic: TopicName) -> Mapping[str, str]:
        """The user's properties stored with the claim. Raises TopicMissing."""

    async def create_segment(self, topic: TopicName, record: SegmentRecord, setup: SegmentSetup) -> None:
        """Create a segment topic with its record, protection, policies, grants, schemas and cursors, and read all
        of it back. An existing topic with the same operation id is completed. Raises NameTaken for another one.
        """

    async def list_segments(self, topic: TopicName, *, max_age_seconds: float = 0.0) -> Sequence[FoundSegment]:
        """All topics whose name parses as a segment of `topic`, from a listing at most `max_age_seconds` old."""

    async def list_topics(self, pulsar_namespace: str) -> Collection[TopicName]:
        """The scalable topics of which there are segments in a Pulsar namespace. Raises NamespaceMissing."""

    async def read_record(self, segment_topic: str) -> SegmentRecord | None:
        """The record a segment topic carries; None if it carries none. Raises TopicMissing."""

    async def look(self, segment_topic: str) -> SegmentLook:
        """The segment as its broker shows it. Raises TopicMissing."""

    async def producers(self, segment_topic: str) -> frozenset[str]:
        """Names of the producers attached: that part of `look`, for asking often. Raises TopicMissing."""

    async def terminate(self, segment_topic: str) -> Position:
        """Ask the broker to seal the segment; says the position it claims. The seal must still be verified (R14)."""

    async def unload(self, segment_topic: str) -> None:
        """Make the broker close and load the topic again: the repair of a stuck seal (R14)."""

    async def delete_segment(self, segment_topic: str, *, force: bool = False) -> None:
        """Delete a segment topic; quiet when it is gone. Raises ClientsAttached unless `force`."""

    async def inheritance(self, topic: TopicName, segment_topics: Sequence[str]) -> Inheritance:
        """Topic-level grants (union) and schemas of the given segments (of the first that has any)."""

    async def ensure_cursors(self, segment_topic: str, subscriptions: Iterable[str], *, latest: bool = False) -> None:
        """Make the named cursors where they are missing, at earliest (or latest), and check that they are there."""

    async def delete_cursor(self, segment_topic: str, subscription: str, *, force: bool = False) -> None:
        """Delete one cursor; quiet when it or the topic is gone. Raises ClientsAttached unless `force`."""

    async def skip_all(self, segment_topic: str, subscription: str) -> bool:
        """Move one cursor behind the last entry; False if it or the topic is gone."""

    async def seek(self, segment_topic: str, subscription: str, to_ms: int | None) -> bool:
        """Move one cursor before the first message published at that time or later, in milliseconds since 1970; before
        the first entry if None. Disconnects its consumers. False if it or the topic is gone.
        """

    async def move_behind(self, segment_topic: str, subscription: str, position: MessagePosition) -> bool:
        """Move one cursor behind a message, to the first that is kept where that one is gone. Disconnects its
        consumers. False if it or the topic is gone.
        """

    async def apply_policies(
        self, segment_topic: str, policies: SegmentPolicies, *, managed_before: frozenset[str]
    ) -> frozenset[str]:
        """Bring a segment's topic policies to `policies`, writing only what differs.

        Policies that are None in `policies` but named in `managed_before` are removed (hazard C7). Also restores
        the protection against inactive-topic deletion. Answers the names of the policies managed now.
        """

    async def grant(
        self, segment_topic: str, permissions: Mapping[str, frozenset[str]], *, exactly: Collection[str] = ()
    ) -> None:
        """Make sure the grants exist on the topic and read them back (R26).

        Roles in `exactly` lose what else the topic grants them (hazard C7). Raises AccessDenied.
        """

    async def revoke(self, segment_topic: str, roles: Iterable[str]) -> None:
        """Take away the topic-level grants of roles; quiet where there are none (hazard C7)."""

    async def kept_minutes(self, segment_topic: str) -> int:
        """How long everything acknowledged stays at least, -1 for ever; 0 where only so much of it stays.

        Raises TopicMissing.
        """

    async def retention_minutes(self, segment_topic: str) -> int:
        """Retention time that applies to the segment: topic, else namespace, else broker; negative = for ever."""
