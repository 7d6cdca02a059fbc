"""The operator's side of a migration for tests of the client library: what docs/contract.md says, step by step."""

from __future__ import annotations

import asyncio
import uuid
from typing import Self

from scalable_topics.layout import Segment, TopicName, layout_topic_name, synthetic_layout
from tests.support.planned_migration import plan_migration
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import Change, ScriptedLeader


class ScriptedMigration(ScriptedLeader):
    """Migrates one ordinary topic, and leads it from then on.

    Args:
        topic: its name.
        view: a superuser's view of the brokers.
        service_url: address for clients.
        token: of a role that may publish.
        partitions: how many it has, 0 where it is not partitioned.
    """

    def __init__(self, topic: TopicName, view: PulsarView, service_url: str, token: str, *, partitions: int) -> None:
        super().__init__(topic, view, service_url, token)
        self._partitions = partitions
        self._attempts = 0
        self.layout = synthetic_layout(topic, partitions)

    async def __aenter__(self) -> Self:
        self._connect()
        return self

    async def migrate(self) -> None:
        """From beginning to end."""
        change = await self.prepare_migration()
        await self.publish(change)
        await self.until_unused(change.planned.parent_ids, within_seconds=2.0)
        await self.finish(change)

    async def prepare_migration(self) -> Change:
        """Make the children with the cursors that the ordinary topics have, and the layout topic."""
        planned = plan_migration(self.topic, self._partitions, attempts_before=self._attempts)
        self._attempts += 1
        self.subscriptions = tuple(sorted(await self._cursors()))
        for child in planned.children:
            await self._create(Segment(child.segment_id, child.hash_range))
        await self._open_layout_topic()
        return Change(planned, uuid.uuid4().hex)

    async def finish(self, change: Change) -> None:
        """Seal the ordinary topics and publish the migrated layout."""
        await self.seal(change.planned.parent_ids)
        await self.commit(change)

    async def call_off(self, change: Change) -> None:
        """Call it off, and leave nothing behind."""
        await self.publish()
        await asyncio.to_thread(self._publisher.close)
        await self._view.delete_topic(layout_topic_name(self.topic), force=True)
        for child in change.planned.children:
            await self._view.delete_topic(self.child_topic(child), force=True)

    async def _cursors(self) -> set[str]:
        return {
            name
            for segment_id in self.layout.segments
            for name, found in (await self._view.stats(self.segment_topic(segment_id)))["subscriptions"].items()
            if found["durable"]
        }
