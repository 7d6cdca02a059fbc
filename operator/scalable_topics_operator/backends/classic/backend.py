"""The Classic backend: every segment is an ordinary persistent topic (DESIGN §1, R2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence

from scalable_topics.layout import CLIENT_PROPERTY, Segment, TopicName, classic_segment_name
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.topic_policy_api import TopicPolicy
from scalable_topics_operator.backends.classic.claims import Claims
from scalable_topics_operator.backends.classic.cursors import ensure_cursors
from scalable_topics_operator.backends.classic.fitness import most_topics, why_too_many, why_unfit
from scalable_topics_operator.backends.classic.layout_topic import LayoutTopic
from scalable_topics_operator.backends.classic.legacy import legacy_clients, survey
from scalable_topics_operator.backends.classic.listing import SegmentListing
from scalable_topics_operator.backends.classic.look import look_from, producers_from
from scalable_topics_operator.backends.classic.names import policy_topic, segment_topic
from scalable_topics_operator.backends.classic.permissions import GrantKeeper
from scalable_topics_operator.backends.classic.policies import PolicyWriter
from scalable_topics_operator.backends.classic.protection import Protection, ProtectionScope
from scalable_topics_operator.backends.classic.schemas import first_schemas
from scalable_topics_operator.backends.classic.segment_record import record_of
from scalable_topics_operator.backends.classic.segments import SegmentMaker
from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.backends.classic.tail import tail_entries
from scalable_topics_operator.backends.readable import readable
from scalable_topics_operator.operations.errors import AccessDenied, NamespaceMissing, TopicMissing, Unsupported
from scalable_topics_operator.operations.legacy_survey import LegacyClient, LegacySurvey
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import (
    Claim,
    FoundSegment,
    Inheritance,
    MessagePosition,
    NameState,
    Position,
    SegmentLook,
    SegmentRecord,
    SegmentSetup,
    TailEntry,
)
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

KIND = "Classic"


class ClassicBackend:
    """Keeps scalable topics on brokers without scalable topics; implements `TopicBackend`.

    Args:
        admin: the cluster.
        protection: `Topic` or `Namespace`: where the guard against inactive-topic deletion is set (R27).
        settling: bound of read-backs.
        client_mark: property of clients that know scalable topics, by which those are told that do not (pip-475).
    """

    def __init__(
        self,
        admin: PulsarAdmin,
        *,
        protection: ProtectionScope | str = ProtectionScope.TOPIC,
        settling: Settling | None = None,
        client_mark: str = CLIENT_PROPERTY,
    ) -> None:
        self._admin = admin
        self._client_mark = client_mark
        settling = settling or Settling()
        self._protection = Protection(admin, ProtectionScope(protection), settling)
        self._policies = PolicyWriter(admin, settling)
        self._claims = Claims(admin, self._protection)
        self._grants = GrantKeeper(admin, settling)
        self._segments = SegmentMaker(admin, self._protection, self._policies, self._grants)
        self._listing = SegmentListing(admin)
        self._layouts = LayoutTopic(admin, self._protection, settling)

    @property
    def kind(self) -> str:
        """`Classic`."""
        return KIND

    def segment_topic(self, topic: TopicName, segment: Segment) -> str:
        """Full name of a segment's topic: its own if the record carries one, else the derived name."""
        return segment_topic(topic, segment)

    async def require_fit(self, topic: TopicName, *, more_topics: int) -> None:
        """Make sure that the namespace works with scalable topics and takes so many more (R24). Raises Unsupported."""
        namespace, asked = topic.pulsar_namespace, self._admin.namespaces
        try:
            # Each by itself: the document of all policies holds the grants of all topics, too.
            clusters, threshold_bytes, limit = await asyncio.gather(
                asked.replication_clusters(namespace),
                asked.compaction_threshold_bytes(namespace),
                asked.max_topics(namespace),
            )
        except AccessDenied:
            return
        why, most = why_unfit(namespace, clusters, threshold_bytes), most_topics(limit)
        if not why and most:
            why = why_too_many(namespace, most, len(await asked.topics(namespace)), more_topics)
        if why:
            raise Unsupported(why)

    async def read_name(self, topic: TopicName) -> NameState:
        """What exists under the plain name. Raises NamespaceMissing."""
        return await self._claims.read(topic)

    async def take_claim(self, topic: TopicName, claim: Claim, *, properties: Mapping[str, str] | None = None) -> None:
        """Create, seal and protect the base-name topic (R1). Raises NameTaken, NamespaceMissing."""
        await self._claims.take(topic, claim, properties)

    async def rewrite_claim(
        self,
        topic: TopicName,
        claim: Claim,
        *,
        properties: Mapping[str, str] | None = None,
        seal: bool = True,
    ) -> None:
        """Replace the claim on an existing base-name topic. Raises TopicMissing."""
        await self._claims.rewrite(topic, claim, properties, seal=seal)

    async def delete_claim(self, topic: TopicName, *, force: bool = False) -> None:
        """Delete the base-name topic with all its partitions; quiet when it is gone. Raises ClientsAttached."""
        await self._claims.delete(topic, force=force)

    async def survey(self, topic: TopicName) -> LegacySurvey | None:
        """What the ordinary topic of that name holds and uses; None if there is none. Raises NamespaceMissing."""
        return await survey(self._admin, topic, self._client_mark)

    async def legacy_clients(self, legacy_topics: Sequence[str]) -> tuple[LegacyClient, ...]:
        """Who is attached to ordinary topics and does not know scalable topics."""
        return await legacy_clients(self._admin, legacy_topics, self._client_mark)

    async def take_over(self, topic: TopicName, claim: Claim, source: MigratedFrom) -> None:
        """Claim an ordinary topic that is being migrated. Raises NameTaken, TopicMissing."""
        await self._claims.take_over(topic, claim, source)

    async def let_go(self, topic: TopicName) -> None:
        """Take claim and marks off an ordinary topic again; quiet when it is gone."""
        await self._claims.let_go(topic)

    async def truncate(self, legacy_topic: str) -> None:
        """Drop all but the last ledger of a migrated topic; quiet when it is gone."""
        try:
            await self._admin.topics.truncate(legacy_topic)
        except TopicMissing:
            return

    async def publish_layout(self, topic: TopicName, message: str) -> None:
        """Append a message to the layout topic, making the topic if it is missing (R20)."""
        await self._layouts.publish(topic, message)

    async def make_layout_topic(self, topic: TopicName) -> bool:
        """Make the layout topic if it is not there; answers whether it was not."""
        return await self._layouts.make(topic)

    async def expect_layout(self, topic: TopicName) -> None:
        """A layout is published in a moment: do ahead what can be done. Never raises, and changes nothing."""
        await self._layouts.expect(topic)

    async def published_layout(self, topic: TopicName) -> str | None:
        """The latest message of the layout topic; None if there is none."""
        return await self._layouts.latest(topic)

    async def delete_layout_topic(self, topic: TopicName) -> None:
        """Delete the layout topic with whoever reads it; quiet when it is gone."""
        await self._layouts.delete(topic)

    def tail_entries(self, segment_topic: str, count: int) -> AsyncIterator[TailEntry]:
        """Entries of a sealed segment from its end backwards, `count` at most. Raises TopicMissing."""
        return tail_entries(self._admin, segment_topic, count)

    async def topic_properties(self, topic: TopicName) -> Mapping[str, str]:
        """The user's properties stored with the claim. Raises TopicMissing."""
        return await self._claims.user_properties(topic)

    async def create_segment(self, topic: TopicName, record: SegmentRecord, setup: SegmentSetup) -> None:
        """Create a segment topic complete, or complete it; all is read back. Raises NameTaken."""
        name = classic_segment_name(topic, record.hash_range, record.segment_id)
        await self._segments.create(name, record, setup)

    async def list_topics(self, pulsar_namespace: str) -> Collection[TopicName]:
        """See `TopicBackend`."""
        return await self._listing.topics(pulsar_namespace)

    async def list_segments(self, topic: TopicName, *, max_age_seconds: float = 0.0) -> Sequence[FoundSegment]:
        """All topics whose name parses as a segment of `topic`. Raises NamespaceMissing."""
        return await self._listing.segments(topic, max_age_seconds=max_age_seconds)

    async def read_record(self, segment_topic: str) -> SegmentRecord | None:
        """The record a segment topic carries; None if it carries none. Raises TopicMissing."""
        return record_of(await self._admin.topics.properties(segment_topic))

    async def look(self, segment_topic: str) -> SegmentLook:
        """The segment as its broker shows it; never creates it. Raises TopicMissing."""
        stats, internal_stats = await asyncio.gather(
            self._admin.topics.stats(segment_topic), self._admin.topics.internal_stats(segment_topic)
        )
        return look_from(segment_topic, stats, internal_stats)

    async def producers(self, segment_topic: str) -> frozenset[str]:
        """Names of the producers attached. Raises TopicMissing."""
        stats = await self._admin.topics.stats(segment_topic, precise_backlog=False)
        return producers_from(segment_topic, stats)

    async def terminate(self, segment_topic: str) -> Position:
        """Ask the broker to seal the segment; to be verified (R14). Raises TopicMissing."""
        return Position(*await self._admin.topics.terminate(segment_topic))

    async def unload(self, segment_topic: str) -> None:
        """Make the broker close and load the topic again (R14). Raises TopicMissing."""
        await self._admin.topics.unload(segment_topic)

    async def delete_segment(self, segment_topic: str, *, force: bool = False) -> None:
        """Delete a segment and its grants; quiet when gone. Raises ClientsAttached unless `force`."""
        await self._segments.delete(segment_topic, force=force)

    async def inheritance(self, topic: TopicName, segment_topics: Sequence[str]) -> Inheritance:
        """Topic-level grants (union) and schemas of the given segments (of the first that has any)."""
        permissions = await self._grants.union(segment_topics)
        return Inheritance(permissions, await first_schemas(self._admin, segment_topics))

    async def ensure_cursors(self, segment_topic: str, subscriptions: Iterable[str], *, latest: bool = False) -> None:
        """Make the missing cursors and check all; never re-creates a segment. Raises TopicMissing."""
        await ensure_cursors(self._admin, segment_topic, subscriptions, latest=latest)

    async def delete_cursor(self, segment_topic: str, subscription: str, *, force: bool = False) -> None:
        """Delete one cursor; quiet when it or the topic is gone. Raises ClientsAttached unless `force`."""
        try:
            await self._admin.topics.delete_subscription(segment_topic, subscription, force=force)
        except (TopicMissing, NamespaceMissing):
            return

    async def skip_all(self, segment_topic: str, subscription: str) -> bool:
        """Move one cursor behind the last entry; False if it or the topic is gone."""
        try:
            return await self._admin.topics.skip_all(segment_topic, subscription)
        except (TopicMissing, NamespaceMissing):
            return False

    async def seek(self, segment_topic: str, subscription: str, to_ms: int | None) -> bool:
        """Move one cursor to a time, or to the first entry; False if it or the topic is gone."""
        try:
            if to_ms is None:
                return await self._admin.topics.move_to_earliest(segment_topic, subscription)
            return await self._admin.topics.move_to_time(segment_topic, subscription, to_ms)
        except (TopicMissing, NamespaceMissing):
            return False

    async def move_behind(self, segment_topic: str, subscription: str, position: MessagePosition) -> bool:
        """Move one cursor behind a message; False if it or the topic is gone."""
        try:
            return await self._admin.topics.move_behind(segment_topic, subscription, position)
        except (TopicMissing, NamespaceMissing):
            return False

    async def apply_policies(
        self, segment_topic: str, policies: SegmentPolicies, *, managed_before: frozenset[str]
    ) -> frozenset[str]:
        """Write the policies that differ, remove formerly managed ones (hazard C7), restore protection."""
        await self._protection.ensure(segment_topic)
        return await self._policies.apply(segment_topic, policies, managed_before=managed_before)

    async def grant(
        self, segment_topic: str, permissions: Mapping[str, frozenset[str]], *, exactly: Collection[str] = ()
    ) -> None:
        """Make sure the grants exist on the topic and read them back (R26). Raises AccessDenied."""
        await self._grants.ensure(segment_topic, permissions, exactly=exactly)

    async def revoke(self, segment_topic: str, roles: Iterable[str]) -> None:
        """Take away the topic-level grants of roles; quiet where there are none (hazard C7)."""
        await self._grants.revoke(segment_topic, roles)

    async def kept_minutes(self, segment_topic: str) -> int:
        """How long everything acknowledged stays at least; negative = for ever. Raises TopicMissing."""
        minutes, megabytes = await self._retention(segment_topic)
        return minutes if megabytes < 0 else 0

    async def retention_minutes(self, segment_topic: str) -> int:
        """Retention time that applies to the segment; negative = for ever. Raises TopicMissing."""
        minutes, _ = await self._retention(segment_topic)
        return minutes

    async def _retention(self, segment_topic: str) -> tuple[int, int]:
        """Minutes and megabytes; 0 where nothing says."""
        found = await self._admin.topic_policies.get(policy_topic(segment_topic), TopicPolicy.RETENTION, applied=True)
        if not isinstance(found, dict):
            return 0, 0
        with readable(f"the retention of {segment_topic}"):
            return int(found["retentionTimeInMinutes"]), int(found["retentionSizeInMB"])
