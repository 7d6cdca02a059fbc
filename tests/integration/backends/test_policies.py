"""R27, hazard C7: topic policies of segments, and the protection against inactive-topic deletion."""

from typing import Any

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import BackendRefused, TopicMissing
from scalable_topics_operator.operations.protocols import SegmentSetup
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

from .conftest import CLAIM, record, segment_name
from .plain_http import PlainHttp, admin_for, eventually, topic_at

ALL = SegmentPolicies(
    message_ttl_seconds=600,
    retention_minutes=10,
    retention_megabytes=5,
    backlog_quota_bytes=1_000_000,
    backlog_quota_action="producer_exception",
    publish_messages_per_second=50,
    publish_bytes_per_second=5000,
    dispatch_messages_per_second=60,
    dispatch_bytes_per_second=6000,
    schema_compatibility_strategy="BACKWARD",
    deduplication=True,
)
READ_AS: dict[str, Any] = {
    "messageTTL": 600,
    "retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
    "publishRate": {"publishThrottlingRateInMsg": 50, "publishThrottlingRateInByte": 5000},
    "schemaCompatibilityStrategy": "BACKWARD",
    "deduplicationEnabled": True,
}
NONE: frozenset[str] = frozenset()


@pytest.fixture
async def segment(backend: ClassicBackend, topic: TopicName) -> str:
    """A segment without policies of its own."""
    await backend.create_segment(topic, record(), SegmentSetup())
    return segment_name(topic)


async def test_r27_policies_are_set_and_removed_again(backend: ClassicBackend, plain: PlainHttp, segment: str) -> None:
    managed = await backend.apply_policies(segment, ALL, managed_before=NONE)
    for policy, value in READ_AS.items():
        assert await plain.get(topic_at(segment, policy)) == value
    quota = (await plain.get(topic_at(segment, "backlogQuotaMap")))["destination_storage"]
    assert (quota["limitSize"], quota["policy"]) == (1_000_000, "producer_exception")
    rate = await plain.get(topic_at(segment, "dispatchRate"))
    assert (rate["dispatchThrottlingRateInMsg"], rate["dispatchThrottlingRateInByte"]) == (60, 6000)
    assert await backend.apply_policies(segment, SegmentPolicies(), managed_before=managed) == NONE
    for policy in (*READ_AS, "dispatchRate"):
        assert await plain.get(topic_at(segment, policy)) is None
    assert await plain.get(topic_at(segment, "backlogQuotaMap")) == {}


async def test_c7_only_what_we_managed_is_removed(backend: ClassicBackend, plain: PlainHttp, segment: str) -> None:
    await plain.do("POST", topic_at(segment, "retention"), {"retentionTimeInMinutes": 7, "retentionSizeInMB": 7})
    await plain.do("POST", topic_at(segment, "maxConsumers"), 3)
    managed = await backend.apply_policies(segment, SegmentPolicies(message_ttl_seconds=60), managed_before=NONE)
    assert managed == {"message_ttl_seconds"}
    await backend.apply_policies(segment, SegmentPolicies(), managed_before=managed)
    assert await plain.get(topic_at(segment, "messageTTL")) is None
    assert (await plain.get(topic_at(segment, "retention")))["retentionTimeInMinutes"] == 7
    assert await plain.get(topic_at(segment, "maxConsumers")) == 3


async def test_c24_nothing_is_written_where_nothing_differs(
    pulsar: PulsarAccess, backend: ClassicBackend, plain: PlainHttp, segment: str
) -> None:
    managed = await backend.apply_policies(segment, ALL, managed_before=NONE)
    observed: list[tuple[str, str, float]] = []
    async with admin_for(pulsar, pulsar.superuser_token, observed) as admin:
        watched = ClassicBackend(admin)
        await watched.apply_policies(segment, ALL, managed_before=managed)
        assert [operation for operation, _, _ in observed if not operation.startswith("get-")] == []
        await plain.do("POST", f"{topic_at(segment, 'messageTTL')}?messageTTL=5")
        await plain.do("DELETE", topic_at(segment, "deduplicationEnabled"))
        await watched.apply_policies(segment, ALL, managed_before=managed)
        written = [operation for operation, _, _ in observed if not operation.startswith("get-")]
    assert sorted(written) == ["set-deduplicationEnabled", "set-messageTTL"]
    assert await plain.get(topic_at(segment, "messageTTL")) == 600
    assert await plain.get(topic_at(segment, "deduplicationEnabled")) is True


async def test_r27_the_protection_is_restored_with_the_policies(
    backend: ClassicBackend, plain: PlainHttp, segment: str
) -> None:
    await plain.do("DELETE", topic_at(segment, "inactiveTopicPolicies"))
    await backend.apply_policies(segment, SegmentPolicies(), managed_before=NONE)
    assert (await plain.get(topic_at(segment, "inactiveTopicPolicies")))["deleteWhileInactive"] is False


async def test_r27_the_protection_can_be_one_policy_of_the_namespace(
    admin: PulsarAdmin, plain: PlainHttp, topic: TopicName
) -> None:
    backend = ClassicBackend(admin, protection="Namespace")
    await backend.take_claim(topic, CLAIM)
    await backend.create_segment(topic, record(), SegmentSetup())
    namespace_policy = await plain.get(f"namespaces/{topic.pulsar_namespace}/inactiveTopicPolicies")
    assert namespace_policy["deleteWhileInactive"] is False
    for name in (topic.persistent, segment_name(topic)):
        assert await plain.get(topic_at(name, "inactiveTopicPolicies")) is None
        applied = await plain.get(f"{topic_at(name, 'inactiveTopicPolicies')}?applied=true")
        assert applied["deleteWhileInactive"] is False


async def test_a_namespace_policy_that_protects_already_is_left_alone(
    admin: PulsarAdmin, plain: PlainHttp, topic: TopicName
) -> None:
    own = {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 77,
        "deleteWhileInactive": False,
    }
    await plain.do("POST", f"namespaces/{topic.pulsar_namespace}/inactiveTopicPolicies", own)
    await ClassicBackend(admin, protection="Namespace").take_claim(topic, CLAIM)
    assert await plain.get(f"namespaces/{topic.pulsar_namespace}/inactiveTopicPolicies") == own


async def test_r19_retention_is_that_of_topic_else_namespace_else_broker(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, segment: str
) -> None:
    assert await backend.retention_minutes(segment) == 0
    path = f"namespaces/{topic.pulsar_namespace}/retention"
    await plain.do("POST", path, {"retentionTimeInMinutes": 25, "retentionSizeInMB": -1})
    assert await eventually(lambda: backend.retention_minutes(segment), lambda minutes: minutes == 25, 10) == 25
    await backend.apply_policies(segment, SegmentPolicies(retention_minutes=-1), managed_before=NONE)
    assert await backend.retention_minutes(segment) == -1


@pytest.mark.parametrize(
    ("policies", "minutes"),
    [
        (SegmentPolicies(retention_minutes=30), 30),
        (SegmentPolicies(retention_minutes=-1), -1),
        (SegmentPolicies(retention_minutes=30, retention_megabytes=100), 0),
        (SegmentPolicies(retention_megabytes=100), 0),
    ],
)
async def test_r22_what_is_kept_by_its_size_is_kept_for_no_time(
    backend: ClassicBackend, segment: str, policies: SegmentPolicies, minutes: int
) -> None:
    assert await backend.kept_minutes(segment) == 0
    await backend.apply_policies(segment, policies, managed_before=NONE)
    assert await eventually(lambda: backend.kept_minutes(segment), lambda kept: kept == minutes, 10) == minutes


async def test_a_value_that_a_broker_refuses_is_refused_with_its_reason(backend: ClassicBackend, segment: str) -> None:
    nonsense = SegmentPolicies(retention_minutes=0, retention_megabytes=5)
    with pytest.raises(BackendRefused, match="Invalid retention policy"):
        await backend.apply_policies(segment, nonsense, managed_before=NONE)


async def test_policies_of_a_missing_segment_are_an_error(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    with pytest.raises(TopicMissing):
        await backend.apply_policies(segment_name(topic), ALL, managed_before=NONE)
    with pytest.raises(TopicMissing):
        await backend.retention_minutes(segment_name(topic))
    with pytest.raises(TopicMissing):
        await backend.kept_minutes(segment_name(topic))
    assert await plain.get(f"persistent/{topic.pulsar_namespace}") == []
