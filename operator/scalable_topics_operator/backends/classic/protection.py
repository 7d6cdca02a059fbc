"""Keeps brokers from deleting idle segments and claims (R27)."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Any

from scalable_topics_operator.backends.admin.paths import namespace_of
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.topic_policy_api import TopicPolicy
from scalable_topics_operator.backends.classic.settling import Settling

_POLICY = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 100_000_000,
    "deleteWhileInactive": False,
}
_NAMESPACE_LOOK_SECONDS = 60.0


class ProtectionScope(StrEnum):
    """Where the protection against inactive-topic deletion is set."""

    TOPIC = "Topic"
    NAMESPACE = "Namespace"


class Protection:
    """Sets the protection against inactive-topic deletion and makes sure that it shows.

    Args:
        admin: the cluster.
        scope: on each topic, or once on its namespace.
        settling: bound of the read-back.
    """

    def __init__(self, admin: PulsarAdmin, scope: ProtectionScope, settling: Settling) -> None:
        self._admin = admin
        self._scope = scope
        self._settling = settling
        self._seen: dict[str, float] = {}

    async def ensure(self, topic: str) -> None:
        """Protect a topic, unless it is protected already."""
        if self._scope is ProtectionScope.NAMESPACE:
            await self._ensure_namespace(namespace_of(topic))
        else:
            await self._ensure_topic(topic)

    async def lift(self, topic: str) -> None:
        """Leave a topic to what its namespace says again, if it was protected by itself."""
        policies = self._admin.topic_policies
        # Another one is somebody's own.
        if self._scope is ProtectionScope.TOPIC and await policies.get(topic, TopicPolicy.INACTIVE_TOPIC) == _POLICY:
            await policies.remove(topic, TopicPolicy.INACTIVE_TOPIC)

    async def _ensure_topic(self, topic: str) -> None:
        policies = self._admin.topic_policies
        if protects(await policies.get(topic, TopicPolicy.INACTIVE_TOPIC)):
            return
        await policies.set(topic, TopicPolicy.INACTIVE_TOPIC, _POLICY)
        await self._settling.until(
            f"protection of {topic} against inactive-topic deletion",
            lambda: policies.get(topic, TopicPolicy.INACTIVE_TOPIC),
            protects,
        )

    async def _ensure_namespace(self, namespace: str) -> None:
        if time.monotonic() - self._seen.get(namespace, float("-inf")) < _NAMESPACE_LOOK_SECONDS:
            return
        namespaces = self._admin.namespaces
        if not protects(await namespaces.inactive_topic_policies(namespace)):
            await namespaces.set_inactive_topic_policies(namespace, _POLICY)
            await self._settling.until(
                f"protection of namespace {namespace} against inactive-topic deletion",
                lambda: namespaces.inactive_topic_policies(namespace),
                protects,
            )
        self._seen[namespace] = time.monotonic()


def protects(policy: Any) -> bool:
    """Whether an inactive-topic policy forbids the deletion."""
    return isinstance(policy, dict) and policy.get("deleteWhileInactive") is False
