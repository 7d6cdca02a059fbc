"""Pulsar brokers in memory: topics, seals that may come undone, cursors, and clients that create what is missing.

Every method is one request that takes effect at once, as one call of the admin API does; who asks for several
things asks several times, and anything may happen in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from scalable_topics_operator.operations.errors import BackendUnavailable, ClientsAttached, LogFenced, TopicMissing
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import (
    Claim,
    CursorLook,
    MessagePosition,
    Position,
    SchemaVersion,
    SegmentLook,
    SegmentRecord,
)
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from tests.simulation.model_clock import ModelClock

_HANGING = "hanging"
INTERNAL_CURSORS = frozenset({"__compaction"})


@dataclass(slots=True)
class ModelCursor:
    """One cursor: what it has acknowledged, and whether an application depends on it (R16)."""

    mark_delete: Position
    durable: bool = True
    consumers: int = 0
    names: set[str] = field(default_factory=set)

    def attach(self, name: str) -> None:
        """A consumer connects."""
        self.names.add(name)
        self.consumers = len(self.names)

    def detach(self, name: str) -> None:
        """A consumer leaves."""
        self.names.discard(name)
        self.consumers = len(self.names)


@dataclass(slots=True)
class ModelPartitions:
    """What a partitioned topic has under its own name."""

    count: int
    claim: Claim | None = None
    migrated_from: MigratedFrom | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ModelTopic:
    """One topic as its broker keeps it."""

    name: str
    ledger_id: int
    record: SegmentRecord | None = None
    claim: Claim | None = None
    migrated_from: MigratedFrom | None = None
    properties: dict[str, str] = field(default_factory=dict)
    entries: list[Position] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    senders: list[tuple[str, int]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    last_entry_id: int = -1
    terminated: bool = False
    looks_since_terminate: int = 0
    reopens_after_looks: int | None = None
    reopened_unseen: bool = False
    pending_adds: int = 0
    producers: set[str] = field(default_factory=set)
    attached_at_seal: set[str] = field(default_factory=set)
    cursors: dict[str, ModelCursor] = field(default_factory=dict)
    policies: SegmentPolicies | None = None
    protected: bool = False
    permissions: dict[str, frozenset[str]] = field(default_factory=dict)
    schemas: tuple[SchemaVersion, ...] = ()

    @property
    def last_confirmed(self) -> Position:
        """Its last entry as internalStats tells it: -1 in a ledger that holds none yet."""
        return Position(self.ledger_id, self.last_entry_id)

    def last_sequence_id(self, producer: str) -> int:
        """Of the last entry stored under a producer's name; -1 for none."""
        return max((number for sender, number in self.senders if sender == producer), default=-1)

    def backlog(self, subscription: str) -> int:
        """Entries a subscription has not acknowledged."""
        return len(self.entries) - bisect_right(self.entries, self.cursors[subscription].mark_delete)

    def counts(self, subscription: str) -> bool:
        """Whether an application depends on the cursor (R16)."""
        return self.cursors[subscription].durable and subscription not in INTERNAL_CURSORS

    @property
    def counting(self) -> frozenset[str]:
        """Names of the cursors that count."""
        return frozenset(name for name in self.cursors if self.counts(name))

    @property
    def undrained(self) -> frozenset[str]:
        """Counting subscriptions with entries left."""
        return frozenset(name for name in self.counting if self.backlog(name))


class ModelBroker:
    """All topics of a Pulsar cluster.

    Args:
        auto_create: whether making a subscription, or a client that connects, creates a missing topic.
        clock: dates what is written; nothing is dated without one.
    """

    def __init__(self, *, auto_create: bool = True, clock: ModelClock | None = None) -> None:
        self._clock = clock
        self.topics: dict[str, ModelTopic] = {}
        self.partitioned: dict[str, ModelPartitions] = {}
        self.was_ordinary = False
        self.auto_create = auto_create
        self.retention_minutes = 0
        self._ledgers = 0
        self._reopens: dict[str, list[int]] = {}
        self._hangs: dict[str, int] = {}
        self.fenced: set[str] = set()
        self.unfit = ""

    # What the admin API offers

    def topic(self, name: str) -> ModelTopic:
        """A topic. Raises TopicMissing."""
        found = self.topics.get(name)
        if found is None:
            raise TopicMissing(f"{name}: topic not found")
        return found

    def create(self, name: str, *, record: SegmentRecord | None = None, claim: Claim | None = None) -> bool:
        """Create a topic with what it says of itself; False if there is one. The only atomic step there is."""
        if name in self.topics:
            return False
        self.topics[name] = ModelTopic(name, self._next_ledger(), record, claim)
        return True

    def named(self, name: str) -> ModelTopic | ModelPartitions:
        """What carries the properties of a name. Raises TopicMissing."""
        return self.partitioned.get(name) or self.topic(name)

    def make_ordinary(self, name: str, partitions: int) -> list[str]:
        """Make an ordinary topic, partitioned or not (0); answers the names of what holds its messages."""
        self.was_ordinary = True
        if not partitions:
            self.create(name)
            return [name]
        self.partitioned[name] = ModelPartitions(partitions)
        return self.make_partitions(name)

    def make_partitions(self, name: str) -> list[str]:
        """Make the partitions that are missing; answers the names of all."""
        shared = self.partitioned.get(name)
        if shared is None:
            raise TopicMissing(f"{name}: topic not found")
        names = [f"{name}-partition-{number}" for number in range(shared.count)]
        for one in names:
            self.create(one)
        return names

    def truncate(self, name: str) -> None:
        """Drop all but the last ledger; cursors move on."""
        topic = self.topic(name)
        kept = [number for number, entry in enumerate(topic.entries) if entry.ledger_id == topic.ledger_id]
        first = kept[0] if kept else len(topic.entries)
        for cursor in topic.cursors.values():
            if first:
                cursor.mark_delete = max(cursor.mark_delete, topic.entries[first - 1])
        del topic.entries[:first], topic.times_ms[:first], topic.senders[:first]

    def delete(self, name: str, *, force: bool) -> None:
        """Delete a topic, with its partitions if it has some. Raises ClientsAttached unless `force`, TopicMissing."""
        shared = self.partitioned.get(name)
        if shared is not None:
            partitions = (f"{name}-partition-{number}" for number in range(shared.count))
            for one in [one for one in partitions if one in self.topics]:
                self.delete(one, force=force)
            del self.partitioned[name]
            return
        topic = self.topic(name)
        clients = len(topic.producers) + sum(cursor.consumers for cursor in topic.cursors.values())
        if clients and not force:
            raise ClientsAttached(f"{name}: {clients} clients are connected")
        del self.topics[name]

    def terminate(self, name: str) -> Position:
        """Seal a topic; says the position it claims, whether the seal then holds or not (hazard A1-26680)."""
        topic = self.topic(name)
        if name in self.fenced:
            raise LogFenced(f"terminate {name}: Attempted to use a fenced managed ledger (HTTP 500)")
        topic.terminated = True
        topic.attached_at_seal |= topic.producers
        topic.producers.clear()
        topic.looks_since_terminate = 0
        topic.reopened_unseen = False
        topic.pending_adds += self._hangs.pop(name, 0)
        armed = self._reopens.get(name)
        topic.reopens_after_looks = armed.pop(0) if armed else None
        claimed = topic.last_confirmed
        self._maybe_reopen(topic)
        return claimed

    def look(self, name: str) -> SegmentLook:
        """The statistics of a topic."""
        topic = self.topic(name)
        seen = SegmentLook(
            terminated=topic.terminated,
            last_confirmed=topic.last_confirmed,
            pending_adds=topic.pending_adds,
            entries=len(topic.entries),
            producers=frozenset(topic.producers),
            cursors={
                subscription: CursorLook(
                    topic.counts(subscription),
                    cursor.mark_delete,
                    topic.backlog(subscription),
                    cursor.consumers,
                    frozenset(cursor.names),
                )
                for subscription, cursor in topic.cursors.items()
            },
        )
        topic.looks_since_terminate += 1
        self._maybe_reopen(topic)
        return seen

    def unload(self, name: str) -> None:
        """Close and load a topic: writes that hung are found stored (hazard A1-26678), and its log is usable again."""
        topic = self.topic(name)
        self.fenced.discard(name)
        hung, topic.pending_adds = topic.pending_adds, 0
        for _ in range(hung):
            self._append(topic, _HANGING)

    def publish(self, name: str, message: str) -> None:
        """Append a message with the version of the topic's schema. That goes with the topic, so nothing is added once
        somebody has deleted it, made again by a client or not (measured). Raises TopicMissing, BackendUnavailable.
        """
        topic = self.topic(name)
        if not topic.schemas:
            raise BackendUnavailable(f"publish {name}: there is no such version of its schema")
        topic.messages.append(message)

    def create_subscription(self, name: str, subscription: str, *, latest: bool) -> None:
        """Make a durable cursor; creates a missing topic where auto-creation is on (measured)."""
        topic = self.topics.get(name)
        if topic is None:
            self._auto_create(name)
            topic = self.topic(name)
        if subscription not in topic.cursors:
            start = topic.last_confirmed if latest else self._before_first(topic)
            topic.cursors[subscription] = ModelCursor(start)

    def delete_subscription(self, name: str, subscription: str, *, force: bool) -> None:
        """Delete a cursor; quiet when there is none. Raises ClientsAttached unless `force`, TopicMissing."""
        topic = self.topic(name)
        cursor = topic.cursors.get(subscription)
        if cursor is not None and cursor.consumers and not force:
            raise ClientsAttached(f"{name}: {cursor.consumers} consumers of {subscription} are connected")
        topic.cursors.pop(subscription, None)

    def set_policies(self, name: str, policies: SegmentPolicies) -> None:
        """Set topic policies, and the protection of idle topics; they show once the brokers have read them."""
        topic = self.topic(name)

        def show() -> None:
            topic.policies, topic.protected = policies, True

        self.read_policies_later(show)

    def read_policies_later(self, show: Callable[[], None]) -> None:
        """Brokers read changed policies from a topic of their own: at once here, and some time later elsewhere."""
        show()

    def skip_all(self, name: str, subscription: str) -> bool:
        """Move a cursor behind the last entry; False if it or the topic is gone."""
        topic = self.topics.get(name)
        if topic is None or subscription not in topic.cursors:
            return False
        topic.cursors[subscription].mark_delete = topic.entries[-1] if topic.entries else topic.last_confirmed
        return True

    def move_behind(self, name: str, subscription: str, position: MessagePosition) -> bool:
        """Move a cursor behind a message."""
        topic = self.topics.get(name)
        if topic is None or subscription not in topic.cursors:
            return False
        before = bisect_right(topic.entries, Position(position.ledger_id, position.entry_id))
        topic.cursors[subscription].mark_delete = topic.entries[before - 1] if before else self._before_first(topic)
        return True

    def seek(self, name: str, subscription: str, to_ms: int | None) -> bool:
        """Move a cursor before the first entry of that time or later, or before all of them (None)."""
        topic = self.topics.get(name)
        if topic is None or subscription not in topic.cursors:
            return False
        before = 0 if to_ms is None else bisect_left(topic.times_ms, to_ms)
        topic.cursors[subscription].mark_delete = topic.entries[before - 1] if before else self._before_first(topic)
        return True

    # What clients do

    def attach(self, name: str, producer: str) -> bool:
        """Connect a producer; False when the topic is sealed or missing."""
        topic = self.topics.get(name)
        if topic is None or topic.terminated:
            return False
        topic.producers.add(producer)
        return True

    def produce(self, name: str, producer: str = "somebody") -> bool:
        """Write one entry; False when the topic is sealed or missing."""
        topic = self.topics.get(name)
        if topic is None or topic.terminated:
            return False
        self._append(topic, producer)
        return True

    def acknowledge(self, name: str, subscription: str, entries: int | None = None) -> int:
        """Acknowledge the next entries (all when None) of a subscription; answers how many there were."""
        topic = self.topics.get(name)
        if topic is None or subscription not in topic.cursors:
            return 0
        cursor = topic.cursors[subscription]
        left = topic.backlog(subscription)
        taken = left if entries is None else min(entries, left)
        if taken:
            cursor.mark_delete = topic.entries[len(topic.entries) - left + taken - 1]
        return taken

    def connect(self, name: str) -> bool:
        """A producer connects; a missing topic is made where auto-creation is on (hazard A1-25719)."""
        if name not in self.topics:
            if not self.auto_create:
                return False
            self._auto_create(name)
        return True

    # What goes wrong by itself

    def arm_reopening(self, name: str, looks: int) -> None:
        """Let the next seal of a topic come undone after that many looks, 0 is at once; and one more each time."""
        self._reopens.setdefault(name, []).append(looks)

    def arm_hanging_adds(self, name: str, writes: int) -> None:
        """Let that many writes hang at the next seal of a topic."""
        self._hangs[name] = writes

    def reopen(self, name: str) -> None:
        """Undo a seal that was verified."""
        topic = self.topics[name]
        topic.terminated = False
        topic.reopened_unseen = True
        self.roll_over(name)

    def roll_over(self, name: str) -> None:
        """Start a new, still empty ledger."""
        topic = self.topics[name]
        topic.ledger_id, topic.last_entry_id = self._next_ledger(), -1

    def _maybe_reopen(self, topic: ModelTopic) -> None:
        if topic.reopens_after_looks is not None and topic.looks_since_terminate >= topic.reopens_after_looks:
            topic.reopens_after_looks = None
            seen_twice = topic.looks_since_terminate >= 2
            self.reopen(topic.name)
            topic.reopened_unseen = seen_twice

    def _auto_create(self, name: str) -> None:
        if not self.auto_create:
            raise TopicMissing(f"{name}: topic not found")
        if not self.create(name):
            raise BackendUnavailable(f"{name}: created meanwhile")

    def _append(self, topic: ModelTopic, producer: str) -> None:
        topic.last_entry_id += 1
        topic.entries.append(topic.last_confirmed)
        topic.times_ms.append(self._clock.now_ms() if self._clock else 0)
        topic.senders.append((producer, topic.last_sequence_id(producer) + 1))

    def _before_first(self, topic: ModelTopic) -> Position:
        first = topic.entries[0] if topic.entries else topic.last_confirmed
        return Position(first.ledger_id, -1)

    def _next_ledger(self) -> int:
        self._ledgers += 1
        return self._ledgers
