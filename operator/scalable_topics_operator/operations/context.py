"""What every operation is handed: the topic, its intent, where to commit and whom to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from scalable_topics.layout import TopicName, incarnation_of, parse_incarnation
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import Claim, Readers, TopicBackend
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from scalable_topics_operator.operations.topic_state import TopicState

T = TypeVar("T")
S = TypeVar("S")


class TopicStore(Protocol):
    """Where a topic's state is committed: one compare-and-swap a call."""

    @property
    def state(self) -> TopicState:
        """The state as of the last read or commit."""

    async def commit(self, state: TopicState) -> None:
        """Make `state` the record, or raise and leave the record as it was."""


class Clock(Protocol):
    """Time, so that tests can own it."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""

    def monotonic_seconds(self) -> float:
        """Never goes back; compares within one process only."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Report(Protocol):
    """Tells people of something: an Event on the object."""

    def __call__(self, reason: str, message: str, *, warning: bool = True) -> Awaitable[None]:
        """Post it."""


@dataclass(frozen=True, slots=True)
class DeclaredSubscription:
    """A subscription whose cursors are made and kept (R16, R18).

    Args:
        latest: a cursor made on an existing topic starts at its end instead of its beginning.
        delete_with_entry: removing the declaration deletes the cursors.
        by_object: no entry of `spec.subscriptions` declares it, but an object of its own.
    """

    latest: bool = False
    delete_with_entry: bool = False
    by_object: bool = False


@dataclass(frozen=True, slots=True)
class TotalPolicies:
    """Limits for the whole topic, divided by its active segments (R27); None means: not ours to set."""

    retention_megabytes: int | None = None
    backlog_quota_bytes: int | None = None
    publish_messages_per_second: int | None = None
    publish_bytes_per_second: int | None = None
    dispatch_messages_per_second: int | None = None
    dispatch_bytes_per_second: int | None = None


@dataclass(frozen=True, slots=True)
class TopicIntent:
    """What the object's spec asks for, as far as operations need to know.

    Args:
        initial_segments: segments at creation, 1..256.
        bucket_budget: entry buckets over the whole topic at creation, 1..1024.
        subscriptions: declared subscriptions by name.
        properties: the user's, kept with the claim.
        permissions: topic-level grants every segment gets, role -> actions (R26).
        per_segment: policies every segment carries as they are.
        total: policies divided by the number of active segments.
        adopt: a foreign claim may be taken over (R1).
        migrates: the name is an ordinary topic's, which is to be migrated.
    """

    initial_segments: int = 1
    bucket_budget: int = 4
    subscriptions: Mapping[str, DeclaredSubscription] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    permissions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    per_segment: SegmentPolicies = field(default_factory=SegmentPolicies)
    total: TotalPolicies = field(default_factory=TotalPolicies)
    adopt: bool = False
    migrates: bool = False

    def carrying(self, source: MigratedFrom | None) -> TopicIntent:
        """This, with what a migrated topic had before wherever it asks for nothing itself (R27)."""
        if source is None:
            return self
        had = source.policies

        def total(name: str) -> int | None:
            own: int | None = getattr(self.total, name)
            before: int | None = getattr(had, name)
            if own is not None or before is None or before <= 0:
                return own if own is not None else before
            return before * source.topic_count

        shared = {one.name for one in fields(TotalPolicies)}
        kept = {
            one.name: getattr(had, one.name)
            for one in fields(SegmentPolicies)
            if one.name not in shared and getattr(self.per_segment, one.name) is None
        }
        return replace(
            self,
            properties={**source.properties, **self.properties},
            per_segment=replace(self.per_segment, **kept),
            total=TotalPolicies(**{name: total(name) for name in shared}),
        )

    def policies_for(self, active_segments: int) -> SegmentPolicies:
        """What one of `active_segments` segments carries: its own policies and its share of the totals.

        A share is rounded up and never 0, so that a limit meant to let something through still does;
        -1 (no bound) stays -1.
        """

        def share(total: int | None) -> int | None:
            if total is None or total < 0:
                return total
            return max(1, -(-total // max(1, active_segments))) if total else 0

        return replace(
            self.per_segment,
            retention_megabytes=share(self.total.retention_megabytes),
            backlog_quota_bytes=share(self.total.backlog_quota_bytes),
            publish_messages_per_second=share(self.total.publish_messages_per_second),
            publish_bytes_per_second=share(self.total.publish_bytes_per_second),
            dispatch_messages_per_second=share(self.total.dispatch_messages_per_second),
            dispatch_bytes_per_second=share(self.total.dispatch_bytes_per_second),
        )


@dataclass(frozen=True, slots=True)
class OperationSettings:
    """Times and bounds of operations.

    Args:
        seal_look_seconds: pause between the two looks that verify a seal (R14) when nobody writes any more.
        restless_seal_look_seconds: the same when somebody does, or when an attempt has not held.
        seal_attempts: terminates tried before a seal is given back as unavailable.
        settle_window_seconds: how long a sealed segment stays readable for unknown sends (R15).
        force_delete_after_seconds: how long a delete waits for clients to leave (R19).
        hold_seconds: how long producers hold after an announcement before they go on alone (R13).
        hold_margin_seconds: the leader seals only as long before the end of the hold, else announces again.
        publishers_wait_seconds: how long it waits for announced producers to leave.
        publishers_look_seconds: between two looks whether they left.
        settle_entries: entries of a sealed tail read at most for producers in doubt (R15).
        max_records: layout records at most; automatic operations stop at 80 % of it (R29).
        release_wait_seconds: how long consumers may take to let go before cursors are moved (R18).
        migration_enabled: whether ordinary topics are migrated at all.
        notice_seconds: how long a migration waits for producers to find the layout topic before it is announced: longer
            than between two of their looks.
    """

    seal_look_seconds: float = 0.005
    restless_seal_look_seconds: float = 0.1
    seal_attempts: int = 8
    settle_window_seconds: float = 600.0
    force_delete_after_seconds: float = 300.0
    hold_seconds: float = 10.0
    hold_margin_seconds: float = 2.0
    publishers_wait_seconds: float = 2.0
    publishers_look_seconds: float = 0.01
    settle_entries: int = 2000
    max_records: int = 512
    release_wait_seconds: float = 60.0
    migration_enabled: bool = True
    notice_seconds: float = 16.0


@dataclass(frozen=True, slots=True)
class Announced:
    """An announcement this process sent, or tried to send (R13).

    Args:
        operation_id: whose seal it announces.
        number: the operation's count of announcements.
        sent_at_seconds: monotonic time before it was sent; no client can have seen it earlier.
    """

    operation_id: str
    number: int
    sent_at_seconds: float


@dataclass(slots=True)
class Published:
    """What a process knows of the layout topic; losing it costs a read and an announcement, nothing else.

    Args:
        message: the latest message; None while that is not known.
        behind: clients could not be told of what is committed.
        announced: the last announcement.
    """

    message: str | None = None
    behind: bool = False
    announced: Announced | None = None

    @property
    def is_known(self) -> bool:
        """Whether nothing is left to be told or to be looked up."""
        return self.message is not None and not self.behind


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicContext:
    """One topic, and what an operation on it may touch whoever owns its layout.

    Args:
        topic: its name.
        store: where its state is committed.
        declared: what its spec asks for.
        claim: what our claim on its name says.
        clock: time.
        settings: times and bounds.
        report: tells people.
        term: leadership term written into journals opened now (R5).
    """

    topic: TopicName
    store: TopicStore
    declared: TopicIntent
    claim: Claim
    clock: Clock
    settings: OperationSettings
    report: Report
    term: int

    @property
    def intent(self) -> TopicIntent:
        """What its spec asks for, and what a migrated topic keeps of what it had before."""
        return self.declared.carrying(self.store.state.source)

    @property
    def subscriptions(self) -> Mapping[str, DeclaredSubscription]:
        """Declared subscriptions, and those that somebody asked for besides (R16, R32)."""
        recorded = self.store.state.subscriptions
        kept = {name: DeclaredSubscription(entry.latest) for name, entry in recorded.items() if entry.is_kept}
        return {**kept, **self.declared.subscriptions}

    def new_incarnation(self) -> str:
        """For a layout that does not follow from one that clients know: above all that they may know (R12).

        They may know more than the status and the layout topic tell: a migration that is called off leaves none behind,
        and a status may be lost.
        """
        known = self.store.state.incarnation
        above = parse_incarnation(known)[1] + 1 if known else 0
        return incarnation_of(self.claim.resource_uid, max(self.clock.now_ms(), above))

    def timestamp(self) -> str:
        """Now, as RFC 3339 with seconds."""
        return format_timestamp(self.clock.now_ms())


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationContext(TopicContext):
    """One topic whose layout the operator owns (Classic).

    Args:
        backend: the Pulsar cluster.
        published: what clients were told last (R20).
        readers: consumers of its ordered subscriptions.
        opened_here: ids of journals opened by this process; any other open journal is a dead process's and
            is recovered (R8).
    """

    backend: TopicBackend
    published: Published
    readers: Readers
    opened_here: set[str]


def format_timestamp(ms: int) -> str:
    """Milliseconds since 1970 as RFC 3339 with seconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def concurrently(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run calls side by side and wait for all of them, so that none is left running when one fails.

    Raises what failed: a refusal before an unavailability, since that is the one a person must see.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if isinstance(error, BackendRefused)), errors[0])
    return [result for result in results if not isinstance(result, BaseException)]


async def alongside(side: Coroutine[Any, Any, S], main: Coroutine[Any, Any, T]) -> tuple[S, T]:
    """Run `side` while `main` runs, and wait for both; `side` is cancelled when `main` fails."""
    task = asyncio.create_task(side)
    try:
        done = await main
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    return await task, done
