"""`TopicBackend` over brokers in memory: as many requests, in the same order, as the Classic backend sends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from scalable_topics.layout import (
    Segment,
    TopicName,
    classic_segment_name,
    layout_topic_name,
    legacy_topics,
    parse_classic_segment_name,
)
from scalable_topics_operator.operations.errors import (
    BackendError,
    BackendUnavailable,
    NameTaken,
    TopicMissing,
    Unsupported,
)
from scalable_topics_operator.operations.legacy_survey import (
    UNKNOWN,
    LegacyClient,
    LegacySubscription,
    LegacySurvey,
    LegacyTopic,
)
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import (
    Claim,
    FoundSegment,
    Inheritance,
    MessagePosition,
    NameState,
    Position,
    SchemaVersion,
    SegmentLook,
    SegmentRecord,
    SegmentSetup,
    TailEntry,
)
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from tests.simulation.faults import Nature
from tests.simulation.model_broker import ModelBroker, ModelTopic
from tests.simulation.model_clock import ModelClock

T = TypeVar("T")
_POLICY_LOOKS = 6
OLD = "old-"
"""How the names of producers begin that do not know scalable topics."""
_POLICY_LOOK_SECONDS = 0.5


class Way(Protocol):
    """How a process reaches the brokers."""

    async def call(self, verb: str, target: str, nature: Nature, effect: Callable[[], T]) -> T:
        """Send one request and wait for its reply. Raises what the request raises, BackendUnavailable."""


class ModelBackend:
    """One process's view of the brokers.

    Args:
        broker: the brokers.
        line: carries the requests of the process.
        clock: ages listings.
    """

    def __init__(self, broker: ModelBroker, line: Way, clock: ModelClock) -> None:
        self._broker = broker
        self._line = line
        self._clock = clock
        self._layouts_made: set[str] = set()
        self._listed: tuple[float, Sequence[str]] = (float("-inf"), ())

    @property
    def kind(self) -> str:
        return "Classic"

    def segment_topic(self, topic: TopicName, segment: Segment) -> str:
        return segment.topic or classic_segment_name(topic, segment.hash_range, segment.segment_id)

    # The claim

    async def require_fit(self, topic: TopicName, *, more_topics: int) -> None:
        def require() -> None:
            if self._broker.unfit:
                raise Unsupported(self._broker.unfit)

        await self._read("fitness", topic.pulsar_namespace, require)

    async def read_name(self, topic: TopicName) -> NameState:
        def read() -> NameState:
            shared = self._broker.partitioned.get(topic.persistent)
            if shared is not None:
                return NameState(True, shared.count, shared.claim, migrated_from=shared.migrated_from)
            found = self._broker.topics.get(topic.persistent)
            if found is None:
                return NameState(exists=False)
            return NameState(True, 0, found.claim, found.terminated, found.migrated_from)

        return await self._read("name", topic.persistent, read)

    async def take_claim(self, topic: TopicName, claim: Claim, *, properties: Mapping[str, str] | None = None) -> None:
        name = topic.persistent
        created = await self._write("create_claim", name, lambda: self._create_claim(name, claim, properties))
        if not created:
            state = await self.read_name(topic)
            if not state.exists:
                raise BackendUnavailable(f"claim {name}: what was in the way is gone")
            if state.claim != claim:
                raise NameTaken(f"claim {name}: taken by {state.claim}")
        await self._seal_claim(topic, claim)

    async def rewrite_claim(
        self,
        topic: TopicName,
        claim: Claim,
        *,
        properties: Mapping[str, str] | None = None,
        seal: bool = True,
    ) -> None:
        name = topic.persistent

        def rewrite() -> None:
            found = self._broker.named(name)
            found.claim = claim
            if properties is not None:
                found.properties = dict(properties)

        await self._write("rewrite_claim", name, rewrite)
        if seal:
            await self._seal_claim(topic, claim)

    async def delete_claim(self, topic: TopicName, *, force: bool = False) -> None:
        await self._delete(topic.persistent, force=force)

    async def topic_properties(self, topic: TopicName) -> Mapping[str, str]:
        return await self._read("properties", topic.persistent, lambda: self._broker.named(topic.persistent).properties)

    # Ordinary topics

    async def survey(self, topic: TopicName) -> LegacySurvey | None:
        name = topic.persistent

        def read() -> LegacySurvey | None:
            if name not in self._broker.partitioned and name not in self._broker.topics:
                return None
            shared = self._broker.partitioned.get(name)
            count = shared.count if shared is not None else 0
            topics = [self._broker.topics[one] for one in legacy_topics(topic, count) if one in self._broker.topics]
            return LegacySurvey(
                count, tuple(map(_surveyed, topics)), properties=dict(self._broker.named(name).properties)
            )

        return await self._read("survey", name, read)

    async def legacy_clients(self, legacy_topics: Sequence[str]) -> tuple[LegacyClient, ...]:
        def read() -> tuple[LegacyClient, ...]:
            found = [self._broker.topics[name] for name in legacy_topics if name in self._broker.topics]
            return tuple(client for one in found for client in _surveyed(one).clients)

        return await self._read("legacy_clients", legacy_topics[0], read)

    async def take_over(self, topic: TopicName, claim: Claim, source: MigratedFrom) -> None:
        name = topic.persistent
        found = await self._read("properties", name, lambda: self._broker.named(name))
        if found.claim is not None and found.claim.resource_uid != claim.resource_uid and not found.claim.released:
            raise NameTaken(f"claim {name}: taken by {found.claim}")

        def write() -> None:
            named = self._broker.named(name)
            named.claim, named.migrated_from = claim, source

        await self._write("take_over", name, write)
        if source.partitions:
            await self._write("make_partitions", name, lambda: self._broker.make_partitions(name))
        if (await self.read_name(topic)).claim != claim:
            raise NameTaken(f"claim {name}: somebody else has claimed that name")

    async def let_go(self, topic: TopicName) -> None:
        def write() -> None:
            named = self._broker.named(topic.persistent)
            named.claim = named.migrated_from = None

        try:
            await self._write("let_go", topic.persistent, write)
        except TopicMissing:
            return

    async def truncate(self, legacy_topic: str) -> None:
        try:
            await self._write("truncate", legacy_topic, lambda: self._broker.truncate(legacy_topic))
        except TopicMissing:
            return

    def _create_claim(self, name: str, claim: Claim, properties: Mapping[str, str] | None) -> bool:
        if not self._broker.create(name, claim=claim):
            return False
        self._broker.topic(name).properties = dict(properties or {})
        return True

    async def _seal_claim(self, topic: TopicName, claim: Claim) -> None:
        name = topic.persistent
        shared = self._broker.partitioned.get(name)
        try:
            if shared is not None:
                for one in legacy_topics(topic, shared.count):
                    await self._write("seal_claim", one, lambda partition=one: self._broker.terminate(partition))  # type: ignore[misc]
                return
            await self._write("seal_claim", name, lambda: self._broker.terminate(name))
        except TopicMissing:
            raise BackendUnavailable(f"claim {name}: it vanished meanwhile") from None
        state = await self.read_name(topic)
        if state.claim != claim or not state.terminated:
            raise BackendUnavailable(f"claim {name}: it does not read back")

    # The layout topic

    async def publish_layout(self, topic: TopicName, message: str) -> None:
        try:
            await self._publish(topic, message)
        except TopicMissing:
            await self._publish(topic, message)

    async def _publish(self, topic: TopicName, message: str) -> None:
        name = layout_topic_name(topic)
        await self.make_layout_topic(topic)
        try:
            await self._write("publish", name, lambda: self._broker.publish(name, message))
        except BackendError:
            self._layouts_made.discard(name)
            raise

    async def make_layout_topic(self, topic: TopicName) -> bool:
        name = layout_topic_name(topic)
        if name in self._layouts_made:
            return False
        created = await self._write("create_layout", name, lambda: self._broker.create(name))
        await self._write("protect_layout", name, lambda: self._set_up_layout(name))
        self._layouts_made.add(name)
        return created

    async def expect_layout(self, topic: TopicName) -> None:
        return

    async def published_layout(self, topic: TopicName) -> str | None:
        name = layout_topic_name(topic)

        def read() -> str | None:
            found = self._broker.topics.get(name)
            return found.messages[-1] if found is not None and found.messages else None

        message = await self._read("published", name, read)
        if message is None:
            self._layouts_made.discard(name)
        return message

    async def delete_layout_topic(self, topic: TopicName) -> None:
        await self._delete(layout_topic_name(topic), force=True)
        self._layouts_made.discard(layout_topic_name(topic))

    async def tail_entries(self, segment_topic: str, count: int) -> AsyncIterator[TailEntry]:
        senders = await self._read("tail", segment_topic, lambda: list(self._broker.topic(segment_topic).senders))
        for number in range(len(senders) - 1, max(-1, len(senders) - 1 - count), -1):
            producer, sequence_id = await self._read("entry", segment_topic, lambda at=number: senders[at])  # type: ignore[misc]
            yield TailEntry(producer, sequence_id)

    def _set_up_layout(self, name: str) -> None:
        """Its protection, its retention and, last, its schema, without which nothing can be published."""
        self._broker.topic(name).schemas = (SchemaVersion("STRING", ""),)

    # Segments

    async def create_segment(self, topic: TopicName, record: SegmentRecord, setup: SegmentSetup) -> None:
        name = classic_segment_name(topic, record.hash_range, record.segment_id)
        if not await self._write("create", name, lambda: self._broker.create(name, record=record)):
            await self._check_same(name, record)
        try:
            await self._write("set_up", name, lambda: self._set_up(name, setup))
            await self._see_policies(name, setup.policies)
            await self.ensure_cursors(name, setup.subscriptions)
            await self._check_same(name, record)
        except TopicMissing:
            raise BackendUnavailable(f"create {name}: it vanished meanwhile") from None

    async def list_topics(self, pulsar_namespace: str) -> Collection[TopicName]:
        names = await self._read("list", pulsar_namespace, lambda: sorted(self._broker.topics))
        parsed = (parse_classic_segment_name(name) for name in names)
        return {found[0] for found in parsed if found is not None and found[0].pulsar_namespace == pulsar_namespace}

    async def list_segments(self, topic: TopicName, *, max_age_seconds: float = 0.0) -> Sequence[FoundSegment]:
        listed_at, names = self._listed
        if listed_at < self._clock.seconds - max_age_seconds or max_age_seconds == 0:
            names = await self._read("list", topic.persistent, lambda: sorted(self._broker.topics))
            self._listed = (self._clock.seconds, names)
        found = []
        for name in names:
            parsed = parse_classic_segment_name(name)
            if parsed is not None and parsed[0] == topic:
                found.append(FoundSegment(parsed[2], parsed[1], name))
        return found

    async def read_record(self, segment_topic: str) -> SegmentRecord | None:
        return await self._read("record", segment_topic, lambda: self._broker.topic(segment_topic).record)

    async def look(self, segment_topic: str) -> SegmentLook:
        return await self._read("look", segment_topic, lambda: self._broker.look(segment_topic))

    async def producers(self, segment_topic: str) -> frozenset[str]:
        return await self._read("producers", segment_topic, lambda: self._broker.look(segment_topic).producers)

    async def terminate(self, segment_topic: str) -> Position:
        return await self._write("terminate", segment_topic, lambda: self._broker.terminate(segment_topic))

    async def unload(self, segment_topic: str) -> None:
        await self._write("unload", segment_topic, lambda: self._broker.unload(segment_topic))

    async def delete_segment(self, segment_topic: str, *, force: bool = False) -> None:
        await self._delete(segment_topic, force=force)

    async def inheritance(self, topic: TopicName, segment_topics: Sequence[str]) -> Inheritance:
        def read() -> Inheritance:
            topics = [self._broker.topics[name] for name in segment_topics if name in self._broker.topics]
            permissions: dict[str, frozenset[str]] = {}
            for found in topics:
                for role, actions in found.permissions.items():
                    permissions[role] = permissions.get(role, frozenset()) | actions
            return Inheritance(permissions, next((found.schemas for found in topics if found.schemas), ()))

        return await self._read("inheritance", topic.persistent, read)

    # Cursors

    async def ensure_cursors(self, segment_topic: str, subscriptions: Iterable[str], *, latest: bool = False) -> None:
        wanted = frozenset(subscriptions)
        missing = wanted - await self._cursors(segment_topic)
        if not missing:
            return
        before = await self.read_record(segment_topic)
        for subscription in sorted(missing):
            await self._write(
                "subscribe",
                segment_topic,
                lambda name=subscription: self._broker.create_subscription(segment_topic, name, latest=latest),  # type: ignore[misc]
            )
        await self._refuse_resurrection(segment_topic, before)
        if wanted - await self._cursors(segment_topic):
            raise BackendUnavailable(f"{segment_topic}: cursors do not show")

    async def delete_cursor(self, segment_topic: str, subscription: str, *, force: bool = False) -> None:
        try:
            await self._write(
                "unsubscribe",
                segment_topic,
                lambda: self._broker.delete_subscription(segment_topic, subscription, force=force),
            )
        except TopicMissing:
            return

    async def skip_all(self, segment_topic: str, subscription: str) -> bool:
        return await self._write("skip_all", segment_topic, lambda: self._broker.skip_all(segment_topic, subscription))

    async def seek(self, segment_topic: str, subscription: str, to_ms: int | None) -> bool:
        return await self._write("seek", segment_topic, lambda: self._broker.seek(segment_topic, subscription, to_ms))

    async def move_behind(self, segment_topic: str, subscription: str, position: MessagePosition) -> bool:
        return await self._write(
            "move_behind", segment_topic, lambda: self._broker.move_behind(segment_topic, subscription, position)
        )

    # Settings

    async def apply_policies(
        self, segment_topic: str, policies: SegmentPolicies, *, managed_before: frozenset[str]
    ) -> frozenset[str]:
        found = await self._read("policies", segment_topic, lambda: self._broker.topic(segment_topic))
        if found.policies != policies or not found.protected:
            await self._write("set_policies", segment_topic, lambda: self._broker.set_policies(segment_topic, policies))
            await self._see_policies(segment_topic, policies)
        return managed_before

    async def grant(
        self, segment_topic: str, permissions: Mapping[str, frozenset[str]], *, exactly: Collection[str] = ()
    ) -> None:
        def grant() -> None:
            found = self._broker.topic(segment_topic)
            for role, actions in permissions.items():
                kept = frozenset() if role in exactly else found.permissions.get(role, frozenset())
                found.permissions[role] = kept | actions

        await self._write("grant", segment_topic, grant)

    async def revoke(self, segment_topic: str, roles: Iterable[str]) -> None:
        def revoke() -> None:
            for role in roles:
                self._broker.topic(segment_topic).permissions.pop(role, None)

        await self._write("revoke", segment_topic, revoke)

    async def retention_minutes(self, segment_topic: str) -> int:
        def read() -> int:
            policies = self._broker.topic(segment_topic).policies
            own = policies.retention_minutes if policies else None
            return self._broker.retention_minutes if own is None else own

        return await self._read("retention", segment_topic, read)

    async def kept_minutes(self, segment_topic: str) -> int:
        return await self.retention_minutes(segment_topic)

    # How requests are sent

    async def _read(self, verb: str, target: str, effect: Callable[[], T]) -> T:
        return await self._line.call(verb, target, Nature.READ, effect)

    async def _write(self, verb: str, target: str, effect: Callable[[], T]) -> T:
        return await self._line.call(verb, target, Nature.WRITE, effect)

    async def _delete(self, name: str, *, force: bool) -> None:
        try:
            await self._write("delete", name, lambda: self._broker.delete(name, force=force))
        except TopicMissing:
            return

    async def _cursors(self, name: str) -> frozenset[str]:
        return await self._read("cursors", name, lambda: frozenset(self._broker.topic(name).cursors))

    async def _check_same(self, name: str, record: SegmentRecord) -> None:
        found = await self.read_record(name)
        if found is None or found.operation_id != record.operation_id:
            raise NameTaken(f"create {name}: made by {found.operation_id if found else 'a client'}")

    async def _refuse_resurrection(self, name: str, before: SegmentRecord | None) -> None:
        if before is None or await self.read_record(name) is not None:
            return
        if not (await self.look(name)).entries:
            await self._delete(name, force=False)
        raise TopicMissing(f"{name} was deleted while its cursors were made")

    def _set_up(self, name: str, setup: SegmentSetup) -> None:
        found = self._broker.topic(name)
        found.schemas = found.schemas or setup.inheritance.schemas
        for role, actions in setup.inheritance.permissions.items():
            found.permissions[role] = found.permissions.get(role, frozenset()) | actions
        self._broker.set_policies(name, setup.policies)

    async def _see_policies(self, name: str, policies: SegmentPolicies) -> None:
        """Wait until policies show (R27)."""
        for _ in range(_POLICY_LOOKS):
            found = await self._read("policies", name, lambda: self._broker.topic(name))
            if found.policies == policies and found.protected:
                return
            await self._clock.sleep(_POLICY_LOOK_SECONDS)
        raise BackendUnavailable(f"{name}: its policies do not show yet")


def _surveyed(topic: ModelTopic) -> LegacyTopic:
    """An ordinary topic as its statistics tell it; clients whose name begins so do not know scalable topics."""
    clients = [
        LegacyClient("Producer", topic.name, name, "127.0.0.1", "1") for name in topic.producers if name.startswith(OLD)
    ]
    return LegacyTopic(
        topic.name,
        len(topic.entries),
        0,
        {name: LegacySubscription(topic.counts(name), UNKNOWN, topic.backlog(name)) for name in sorted(topic.cursors)},
        tuple(clients),
        is_terminated=topic.terminated,
    )
