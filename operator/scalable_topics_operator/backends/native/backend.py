"""Implements `ScalableBackend` over the admin API of Pulsar 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalable_topics.layout import Segment, TopicName, segment_descriptor
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.claim_properties import claim_properties
from scalable_topics_operator.backends.native.look import read_look
from scalable_topics_operator.backends.native.record import read_topic
from scalable_topics_operator.operations.context import concurrently
from scalable_topics_operator.operations.errors import AccessDenied, NameTaken
from scalable_topics_operator.operations.native.protocols import NativeLook, NativeTopic
from scalable_topics_operator.operations.protocols import Claim

V5_MARK = "__pulsar.v5.managed"
"""Property of every producer and consumer of a client that knows the brokers' scalable topics."""


class NativeBackend:
    """Scalable topics of one Pulsar cluster whose brokers own their layouts.

    Args:
        admin: the cluster, with the rights of a namespace's admin.
        superuser: the same with those of a superuser, which calls about single segments need (measured).
    """

    kind = "Native"

    def __init__(self, admin: PulsarAdmin, superuser: PulsarAdmin) -> None:
        self._admin = admin
        self._superuser = superuser

    async def read(self, topic: TopicName) -> NativeTopic | None:
        """The brokers' record; see `ScalableBackend.read`."""
        record = await self._admin.scalable.layout(topic)
        return read_topic(topic, record) if record is not None else None

    async def look(self, topic: TopicName) -> NativeLook:
        """The topic as its brokers show it; see `ScalableBackend.look`."""
        return read_look(await self._admin.scalable.stats(topic))

    async def require_creatable(self, topic: TopicName) -> None:
        """Make sure that nothing else has the name; see `ScalableBackend.require_creatable`."""
        # Raises NamespaceMissing, which the call that creates does not.
        partitions = await self._admin.topics.partitions(topic.persistent)
        await self._admin.namespaces.permissions(topic.pulsar_namespace)
        if partitions is not None:
            shape = f"a partitioned topic ({partitions} partitions)" if partitions else "an ordinary topic"
            raise NameTaken(
                f"the name belongs to {shape}; to turn it into a scalable topic without losing data set "
                "spec.migrateFrom or create a SegmentOperation of type Migrate, else choose another name"
            )

    async def create(self, topic: TopicName, segments: int, claim: Claim, properties: Mapping[str, str]) -> bool:
        """Make a topic; see `ScalableBackend.create`."""
        return await self._admin.scalable.create(topic, segments, claim_properties(claim, properties))

    async def split(self, topic: TopicName, segment_id: int) -> None:
        """Split a segment."""
        await self._admin.scalable.split(topic, segment_id)

    async def merge(self, topic: TopicName, first_id: int, second_id: int) -> None:
        """Merge two segments."""
        await self._admin.scalable.merge(topic, first_id, second_id)

    async def rebucket(self, topic: TopicName, segment_id: int, buckets: int) -> None:
        """Roll a segment over to another number of entry buckets."""
        await self._admin.scalable.rebucket(topic, segment_id, buckets)

    async def migrate(self, topic: TopicName, *, force: bool) -> None:
        """Make the ordinary topic of that name scalable."""
        await self._admin.scalable.migrate(topic, force=force)

    async def create_subscription(self, topic: TopicName, name: str, *, ordered: bool = False) -> None:
        """Make a subscription; see `ScalableBackend.create_subscription`."""
        await self._admin.scalable.create_subscription(topic, name, "STREAM" if ordered else "QUEUE")

    async def delete_subscription(self, topic: TopicName, name: str) -> None:
        """Delete a subscription."""
        await self._admin.scalable.delete_subscription(topic, name)

    async def seek(self, topic: TopicName, name: str, to_ms: int) -> None:
        """Move a subscription to a time."""
        await self._admin.scalable.seek(topic, name, to_ms)

    async def skip_all(self, topic: TopicName, name: str) -> None:
        """Move a subscription behind everything."""
        await self._admin.scalable.skip_all(topic, name)

    async def set_override(self, topic: TopicName, override: Mapping[str, Any] | None) -> None:
        """Store or take away the topic's own auto-scale policy."""
        if override is None:
            await self._admin.scalable.remove_auto_scale_policy(topic)
        else:
            await self._admin.scalable.set_auto_scale_policy(topic, override)

    async def namespace_override(self, pulsar_namespace: str) -> Mapping[str, Any] | None:
        """The auto-scale policy stored with a Pulsar namespace."""
        return await self._admin.namespaces.auto_scale_policy(pulsar_namespace)

    async def set_namespace_override(self, pulsar_namespace: str, override: Mapping[str, Any] | None) -> None:
        """Store it, or take it away."""
        await self._admin.namespaces.set_auto_scale_policy(pulsar_namespace, override)

    async def permissions(self, topic: TopicName) -> Mapping[str, frozenset[str]]:
        """Grants on the topic itself."""
        return await self._admin.scalable.permissions(topic)

    async def grant(self, topic: TopicName, role: str, actions: frozenset[str]) -> None:
        """Set a role's grants on the topic itself."""
        await self._admin.scalable.grant(topic, role, actions)

    async def revoke(self, topic: TopicName, role: str) -> None:
        """Take a role's grants on the topic itself away."""
        await self._admin.scalable.revoke(topic, role)

    async def delete(self, topic: TopicName, segments: Sequence[Segment]) -> None:
        """Delete the topic and what may be left of its segments; see `ScalableBackend.delete`."""
        await self._admin.scalable.delete(topic)
        try:
            await concurrently(
                self._superuser.scalable.delete_segment(
                    topic, segment_descriptor(segment.hash_range, segment.segment_id)
                )
                for segment in segments
                if not segment.is_legacy
            )
        except AccessDenied:
            # The brokers have deleted them already, as a rule; only what a failure of theirs left would stay.
            return
