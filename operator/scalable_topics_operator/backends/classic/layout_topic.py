"""The layout topic on the brokers: made, published to, read back, deleted (R20)."""

from __future__ import annotations

from scalable_topics.layout import TopicName, layout_topic_name
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.topic_policy_api import TopicPolicy
from scalable_topics_operator.backends.classic.protection import Protection
from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.operations.errors import BackendError, TopicMissing

# For ever, but little: the latest message is all that clients ever read.
_RETENTION = {"retentionTimeInMinutes": -1, "retentionSizeInMB": 10}
_MARK = {"scalable-topics.kind": "layout"}


class LayoutTopic:
    """Keeps the layout topics of scalable topics.

    Args:
        admin: the cluster.
        protection: against inactive-topic deletion.
        settling: bound of read-backs.
    """

    def __init__(self, admin: PulsarAdmin, protection: Protection, settling: Settling) -> None:
        self._admin = admin
        self._protection = protection
        self._settling = settling
        # By name, the version of the text schema.
        self._made: dict[str, int] = {}

    async def publish(self, topic: TopicName, message: str) -> None:
        """Append a message, making the topic first if it is not known to be there."""
        name = layout_topic_name(topic)
        try:
            await self._publish(name, message)
        except TopicMissing:
            # Somebody has deleted it, which is no reason to refuse what is told.
            await self._publish(name, message)

    async def make(self, topic: TopicName) -> bool:
        """Make the topic if it is not there; answers whether it was not."""
        name = layout_topic_name(topic)
        return await self._make(name) if name not in self._made else False

    async def expect(self, topic: TopicName) -> None:
        """Do ahead what a `publish` that follows at once can be spared."""
        await self._admin.messages.expect_publishing(layout_topic_name(topic))

    async def latest(self, topic: TopicName) -> str | None:
        """The latest message; None if there is none."""
        name = layout_topic_name(topic)
        latest = await self._admin.messages.latest(name)
        if latest is None:
            self._made.pop(name, None)
        return latest

    async def delete(self, topic: TopicName) -> None:
        """Delete the topic, its readers notwithstanding; quiet when it is gone."""
        name = layout_topic_name(topic)
        await self._admin.topics.delete(name, force=True)
        self._made.pop(name, None)

    async def _publish(self, name: str, message: str) -> None:
        if name not in self._made:
            await self._make(name)
        try:
            await self._admin.messages.publish(name, message, self._made[name])
        except BackendError:
            # Somebody may have deleted the topic, and with it the schema: made sure of before the next attempt.
            self._made.pop(name, None)
            raise

    async def _make(self, name: str) -> bool:
        created = await self._admin.topics.create(name, _MARK)
        if not created and await self._admin.topics.partitions(name):
            # A Reader that looked for it made it so, where brokers make topics with partitions by themselves.
            await self._admin.topics.delete_partitions(name, force=True)
            await self._admin.topics.create(name, _MARK)
        await self._protection.ensure(name)
        policies = self._admin.topic_policies
        if await policies.get(name, TopicPolicy.RETENTION) != _RETENTION:
            await policies.set(name, TopicPolicy.RETENTION, _RETENTION)
            await self._settling.until(
                f"retention of {name}",
                lambda: policies.get(name, TopicPolicy.RETENTION),
                lambda found: found == _RETENTION,
            )
        self._made[name] = await self._admin.schemas.post(name, "STRING", "", {})
        return created
