"""An ordinary topic surveyed before it is migrated (pip-475 §2.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalable_topics.layout import CLIENT_PROPERTY, READER_PREFIX, TopicName, legacy_topics
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.topic_policy_api import OTHER_POLICIES, TopicPolicy
from scalable_topics_operator.backends.claim_properties import user_properties
from scalable_topics_operator.backends.classic.cursors import counts
from scalable_topics_operator.backends.classic.look import is_terminated
from scalable_topics_operator.backends.classic.policies import policies_from
from scalable_topics_operator.backends.readable import readable
from scalable_topics_operator.operations.errors import TopicMissing
from scalable_topics_operator.operations.legacy_survey import (
    QUEUE,
    STREAM,
    UNKNOWN,
    LegacyClient,
    LegacySubscription,
    LegacySurvey,
    LegacyTopic,
)

_COMPACTION = "__compaction"
_KINDS = {"Exclusive": STREAM, "Failover": STREAM, "Shared": QUEUE, "Key_Shared": QUEUE}


async def survey(admin: PulsarAdmin, topic: TopicName, mark: str = CLIENT_PROPERTY) -> LegacySurvey | None:
    """Everything about the ordinary topic of that name; None if there is none. Raises NamespaceMissing.

    Args:
        admin: the cluster.
        topic: its name.
        mark: property of clients that know the scalable topics it is to become one of.
    """
    name = topic.persistent
    partitions = await admin.topics.partitions(name)
    if partitions is None:
        return None
    try:
        properties, schemas, policies, others, clusters, threshold, *topics = await asyncio.gather(
            admin.topics.properties(name),
            admin.schemas.versions(name),
            _policies(admin, name),
            _other_policies(admin, name),
            admin.topic_policies.replication_clusters(name),
            admin.topic_policies.compaction_threshold_bytes(name),
            *(_topic(admin, one, mark) for one in legacy_topics(topic, partitions)),
        )
    except TopicMissing:
        return None
    return LegacySurvey(
        partitions=partitions,
        topics=tuple(one for one in topics if one is not None),
        properties=user_properties(properties),
        policies=policies_from(policies),
        other_policies=others,
        schemas=len(schemas),
        clusters=clusters,
        compaction_threshold_bytes=threshold,
    )


async def legacy_clients(
    admin: PulsarAdmin, topics: Sequence[str], mark: str = CLIENT_PROPERTY
) -> tuple[LegacyClient, ...]:
    """Who is attached to these topics and does not say by `mark` that it knows scalable topics."""

    async def attached(topic: str) -> list[LegacyClient]:
        try:
            return clients_from(topic, await admin.topics.stats(topic, precise_backlog=False), mark)
        except TopicMissing:
            return []

    return tuple(client for found in await asyncio.gather(*map(attached, topics)) for client in found)


async def _topic(admin: PulsarAdmin, topic: str, mark: str) -> LegacyTopic | None:
    try:
        stats, internal_stats = await asyncio.gather(admin.topics.stats(topic), admin.topics.internal_stats(topic))
    except TopicMissing:
        # Brokers make a partition when it is used first.
        return None
    return topic_from(topic, stats, internal_stats, mark)


async def _policies(admin: PulsarAdmin, name: str) -> dict[TopicPolicy, Any]:
    carried = [policy for policy in TopicPolicy if policy is not TopicPolicy.INACTIVE_TOPIC]
    found = await asyncio.gather(*(admin.topic_policies.get(name, policy) for policy in carried))
    return dict(zip(carried, found, strict=True))


async def _other_policies(admin: PulsarAdmin, name: str) -> tuple[str, ...]:
    found = await asyncio.gather(*(admin.topic_policies.is_set(name, policy) for policy in OTHER_POLICIES))
    return tuple(policy for policy, is_set in zip(OTHER_POLICIES, found, strict=True) if is_set)


def topic_from(
    topic: str, stats: Mapping[str, Any], internal_stats: Mapping[str, Any], mark: str = CLIENT_PROPERTY
) -> LegacyTopic:
    """One topic, from `stats` with precise backlogs and `internalStats`. Raises BackendUnavailable. Pure."""
    with readable(f"statistics of {topic}"):
        return LegacyTopic(
            topic=topic,
            entries=int(internal_stats["numberOfEntries"]),
            storage_bytes=int(internal_stats["totalSize"]),
            subscriptions={
                name: LegacySubscription(
                    counts=counts(name, entry),
                    kind=_KINDS.get(str(entry.get("type")), UNKNOWN),
                    backlog=int(entry["msgBacklog"]),
                )
                for name, entry in stats["subscriptions"].items()
            },
            clients=tuple(clients_from(topic, stats, mark)),
            open_transactions=int(stats.get("ongoingTxnCount") or 0),
            is_compacted=_COMPACTION in stats["subscriptions"],
            is_terminated=is_terminated(internal_stats),
        )


def clients_from(topic: str, stats: Mapping[str, Any], mark: str = CLIENT_PROPERTY) -> list[LegacyClient]:
    """Clients attached to one topic that do not know scalable topics, by its own `stats`: those added up over
    partitions leave out what clients say of themselves (hazard A6-25875). Raises BackendUnavailable. Pure.
    """
    with readable(f"statistics of {topic}"):
        found = [_client("Producer", topic, one, one["producerName"]) for one in _unmarked(stats["publishers"], mark)]
        for name, subscription in stats["subscriptions"].items():
            if not name.startswith(READER_PREFIX):
                found += [
                    _client("Consumer", topic, one, one.get("consumerName"), name)
                    for one in _unmarked(subscription["consumers"], mark)
                ]
        return found


def _unmarked(clients: Iterable[Mapping[str, Any]], mark: str) -> list[Mapping[str, Any]]:
    return [client for client in clients if mark not in (client.get("metadata") or {})]


def _client(role: str, topic: str, found: Mapping[str, Any], name: Any, subscription: str = "") -> LegacyClient:
    return LegacyClient(
        role,
        topic,
        str(name or ""),
        str(found.get("address") or ""),
        str(found.get("clientVersion") or ""),
        subscription,
    )
