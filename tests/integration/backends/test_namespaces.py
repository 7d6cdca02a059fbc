"""What the admin client reads of a namespace, for the checks of R16, R19 and R24."""

from typing import Any

import pytest

from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.operations.errors import NamespaceMissing

from .plain_http import PlainHttp


async def test_a_namespace_that_sets_nothing_says_so(admin: PulsarAdmin, namespace: str) -> None:
    found = admin.namespaces
    assert await found.topics(namespace) == []
    assert await found.permissions(namespace) == {}
    assert await found.topic_grants(namespace) == {}
    assert await found.inactive_topic_policies(namespace) is None
    assert await found.retention_minutes(namespace) is None
    assert await found.subscription_expiration_minutes(namespace) is None
    assert await found.auto_topic_creation(namespace) is None
    assert await found.compaction_threshold_bytes(namespace) is None
    assert len(await found.replication_clusters(namespace)) == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "read", "expected"),
    [
        ("POST", "maxTopicsPerNamespace", 12, "max_topics", 12),
        ("PUT", "compactionThreshold", 1000, "compaction_threshold_bytes", 1000),
        ("POST", "subscriptionExpirationTime", 60, "subscription_expiration_minutes", 60),
        (
            "POST",
            "retention",
            {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
            "retention_minutes",
            -1,
        ),
        ("POST", "autoTopicCreation", {"allowAutoTopicCreation": False}, "auto_topic_creation", False),
        ("POST", "permissions/role", ["produce"], "permissions", {"role": frozenset({"produce"})}),
    ],
)
async def test_what_a_namespace_sets_is_read(
    admin: PulsarAdmin, plain: PlainHttp, namespace: str, method: str, path: str, body: Any, read: str, expected: Any
) -> None:
    await plain.do(method, f"namespaces/{namespace}/{path}", body)
    assert await getattr(admin.namespaces, read)(namespace) == expected


async def test_a_missing_namespace_is_an_error(admin: PulsarAdmin) -> None:
    for read in (admin.namespaces.topics, admin.namespaces.policies, admin.namespaces.retention_minutes):
        with pytest.raises(NamespaceMissing):
            await read("team/no-such-namespace")


async def test_the_cluster_is_described(admin: PulsarAdmin, namespace: str) -> None:
    (cluster,) = await admin.namespaces.replication_clusters(namespace)
    assert cluster in await admin.cluster.clusters()
    assert (await admin.cluster.cluster_data(cluster))["serviceUrl"].startswith("http")
    assert (await admin.cluster.runtime_configuration())["clusterName"] == cluster
    async for topic, _ in admin.cluster.topic_loads():
        assert topic.startswith("persistent://")
