"""Topic-level policies: one table says how each is read, set and removed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import topic_path
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.backends.admin.topic_api import texts_of

_BACKLOG_QUOTA_TYPE = "destination_storage"
_ADMIN = "tenant admin (topic policies)"


@dataclass(frozen=True, slots=True)
class _Shape:
    read: str
    write: str
    method: str = "POST"
    query: str | None = None


class TopicPolicy(Enum):
    """The topic policies the operator manages (R27); the value is how the admin API spells the call."""

    INACTIVE_TOPIC = _Shape("inactiveTopicPolicies", "inactiveTopicPolicies")
    MESSAGE_TTL = _Shape("messageTTL", "messageTTL", query="messageTTL")
    RETENTION = _Shape("retention", "retention")
    BACKLOG_QUOTA = _Shape("backlogQuotaMap", "backlogQuota")
    PUBLISH_RATE = _Shape("publishRate", "publishRate")
    DISPATCH_RATE = _Shape("dispatchRate", "dispatchRate")
    SCHEMA_COMPATIBILITY = _Shape("schemaCompatibilityStrategy", "schemaCompatibilityStrategy", method="PUT")
    DEDUPLICATION = _Shape("deduplicationEnabled", "deduplicationEnabled")


OTHER_POLICIES = (
    "delayedDelivery",
    "maxConsumers",
    "maxConsumersPerSubscription",
    "maxMessageSize",
    "maxProducers",
    "maxSubscriptionsPerTopic",
    "maxUnackedMessagesOnConsumer",
    "maxUnackedMessagesOnSubscription",
    "offloadPolicies",
    "persistence",
    "schemaValidationEnforced",
    "subscribeRate",
    "subscriptionDispatchRate",
    "subscriptionTypesEnabled",
)
"""Topic policies that the operator does not manage, as the admin API names them."""


class TopicPolicyApi:
    """Reads and writes the topic-level policies of one topic, named by its full `persistent://` name.

    A write is answered before all brokers see it: read back until it shows (R27).
    """

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def get(self, topic: str, policy: TopicPolicy, *, applied: bool = False) -> Any:
        """The policy as JSON; None when the topic sets none.

        Args:
            topic: full name.
            policy: which policy.
            applied: what applies to the topic by its own, its namespace's or the broker's setting.
        """
        shape = policy.value
        call = self._call("get", "GET", topic, shape.read, query={"applied": "true"} if applied else {})
        is_quota = policy is TopicPolicy.BACKLOG_QUOTA
        return (await self._http.send(call)).read(
            call.what, lambda found: (found or {}).get(_BACKLOG_QUOTA_TYPE) if is_quota else found
        )

    async def is_set(self, topic: str, name: str) -> bool:
        """Whether the topic sets one of `OTHER_POLICIES` itself."""
        call = self._call("get", "GET", topic, name)
        found = (await self._http.send(call)).json(call.what)
        return found is not None and found is not False and found != []

    async def replication_clusters(self, topic: str) -> tuple[str, ...]:
        """Clusters that the topic is replicated to by a policy of its own, the local one included; sorted."""
        call = self._call("get", "GET", topic, "replication")
        return tuple(sorted(texts_of(await self._http.send(call), call.what)))

    async def compaction_threshold_bytes(self, topic: str) -> int:
        """Backlog at which the topic is compacted by a policy of its own; 0 for never."""
        call = self._call("get", "GET", topic, "compactionThreshold")
        found = (await self._http.send(call)).json(call.what)
        return found if isinstance(found, int) and found > 0 else 0

    async def set(self, topic: str, policy: TopicPolicy, value: Any) -> None:
        """Set the policy to a JSON value."""
        shape = policy.value
        if shape.query is not None:
            call = self._call("set", shape.method, topic, shape.write, query={shape.query: str(value)})
        else:
            call = self._call("set", shape.method, topic, shape.write, body=value)
        await self._http.send(call)

    async def remove(self, topic: str, policy: TopicPolicy) -> None:
        """Remove the policy from the topic, so that the namespace's or the broker's applies again."""
        await self._http.send(self._call("remove", "DELETE", topic, policy.value.write))

    def _call(
        self,
        verb: str,
        method: str,
        topic: str,
        name: str,
        *,
        query: dict[str, str] | None = None,
        body: Any = None,
    ) -> Call:
        return Call(
            f"{verb}-{name}",
            method,
            topic_path(topic, name),
            topic,
            About.TOPIC,
            query=query or {},
            body=body,
            right=_ADMIN,
        )
