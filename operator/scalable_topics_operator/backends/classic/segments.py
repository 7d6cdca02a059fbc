"""Creating and deleting segment topics (R11, R26-R28)."""

from __future__ import annotations

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.cursors import ensure_cursors
from scalable_topics_operator.backends.classic.permissions import GrantKeeper
from scalable_topics_operator.backends.classic.policies import PolicyWriter
from scalable_topics_operator.backends.classic.protection import Protection
from scalable_topics_operator.backends.classic.schemas import STRATEGY_FIELD, copy_schemas
from scalable_topics_operator.backends.classic.segment_record import record_of, record_properties
from scalable_topics_operator.operations.errors import BackendUnavailable, NameTaken, TopicMissing
from scalable_topics_operator.operations.protocols import SegmentRecord, SegmentSetup


class SegmentMaker:
    """Creates segment topics complete and deletes them without a trace.

    Args:
        admin: the cluster.
        protection: against inactive-topic deletion.
        policies: writes topic policies.
        grants: writes topic-level grants.
    """

    def __init__(self, admin: PulsarAdmin, protection: Protection, policies: PolicyWriter, grants: GrantKeeper) -> None:
        self._admin = admin
        self._protection = protection
        self._policies = policies
        self._grants = grants

    async def create(self, topic: str, record: SegmentRecord, setup: SegmentSetup) -> None:
        """Create the topic with its record, or complete one that the same operation made.

        Raises NameTaken for an existing topic of another operation or without a record.
        """
        await self._admin.topics.create(topic, record_properties(record))
        try:
            # "Created" is answered to several callers at once; the record that reads back tells who did.
            await self._check_same(topic, record)
            # Protected first: everything after it may take longer than a broker waits before it deletes.
            await self._protection.ensure(topic)
            await copy_schemas(self._admin, self._policies, topic, setup.inheritance.schemas)
            await self._policies.apply(topic, setup.policies, managed_before=frozenset({STRATEGY_FIELD}))
            await self._grants.ensure(topic, setup.inheritance.permissions)
            await ensure_cursors(self._admin, topic, setup.subscriptions)
            await self._check_same(topic, record)
        except TopicMissing as error:
            raise BackendUnavailable(f"create {topic}: it vanished meanwhile ({error})") from None

    async def _check_same(self, topic: str, record: SegmentRecord) -> None:
        found = record_of(await self._admin.topics.properties(topic))
        if found is None:
            raise NameTaken(f"create {topic}: a topic of that name exists and carries no segment record")
        if found.operation_id != record.operation_id:
            raise NameTaken(
                f"create {topic}: a topic of that name exists, made by operation {found.operation_id[:80]!r}"
            )

    async def delete(self, topic: str, *, force: bool) -> None:
        """Delete the topic; quiet when it is gone. Raises ClientsAttached unless `force`.

        The broker removes its grants, policies and schemas with it (measured).
        """
        await self._admin.topics.delete(topic, force=force)
