"""Creating and deleting segment topics (R11, R26-R28)."""

from __future__ import annotations

from scalable_topics_operator.backends.admin.paths import namespace_of
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.cursors import ensure_cursors
from scalable_topics_operator.backends.classic.permissions import ensure_grants
from scalable_topics_operator.backends.classic.policies import PolicyWriter
from scalable_topics_operator.backends.classic.protection import Protection
from scalable_topics_operator.backends.classic.schemas import ensure_schemas
from scalable_topics_operator.backends.classic.segment_record import record_of, record_properties
from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.operations.errors import BackendUnavailable, NameTaken, TopicMissing
from scalable_topics_operator.operations.protocols import SegmentRecord, SegmentSetup


class SegmentMaker:
    """Creates segment topics complete and deletes them without a trace.

    Args:
        admin: the cluster.
        protection: against inactive-topic deletion.
        policies: writes topic policies.
        settling: bound of read-backs.
    """

    def __init__(self, admin: PulsarAdmin, protection: Protection, policies: PolicyWriter, settling: Settling) -> None:
        self._admin = admin
        self._protection = protection
        self._policies = policies
        self._settling = settling

    async def create(self, topic: str, record: SegmentRecord, setup: SegmentSetup) -> None:
        """Create the topic with its record, or complete one that the same operation made.

        Raises NameTaken for an existing topic of another operation or without a record.
        """
        created = await self._admin.topics.create(topic, record_properties(record))
        if not created:
            await self._check_same(topic, record)
        try:
            # Protected first: everything after it may take longer than a broker waits before it deletes.
            await self._protection.ensure(topic)
            await ensure_schemas(self._admin, topic, setup.inheritance.schemas)
            await self._policies.apply(topic, setup.policies, managed_before=frozenset())
            await ensure_grants(self._admin, topic, setup.inheritance.permissions, self._settling)
            await ensure_cursors(self._admin, topic, setup.subscriptions)
            await self._check_same(topic, record)
        except TopicMissing as error:
            raise BackendUnavailable(f"create {topic}: it vanished meanwhile ({error})") from None

    async def _check_same(self, topic: str, record: SegmentRecord) -> None:
        found = record_of(await self._admin.topics.properties(topic))
        if found is None:
            raise NameTaken(f"create {topic}: a topic of that name exists and carries no segment record")
        if found != record:
            raise NameTaken(
                f"create {topic}: a topic of that name exists, made by operation {found.operation_id[:80]!r}"
            )

    async def delete(self, topic: str, *, force: bool) -> None:
        """Delete topic and grants; quiet when gone. Raises ClientsAttached unless `force`."""
        await self._admin.topics.delete(topic, force=force)
        await self._drop_grants(topic)

    async def _drop_grants(self, topic: str) -> None:
        grants = (await self._admin.namespaces.topic_grants(namespace_of(topic))).get(topic, {})
        for role in sorted(grants):
            await self._admin.topics.revoke(topic, role)
