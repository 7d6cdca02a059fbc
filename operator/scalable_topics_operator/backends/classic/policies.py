"""Brings a segment's topic policies to what it shall carry, writing only differences (R27; hazard C7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.topic_policy_api import TopicPolicy
from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

T = TypeVar("T")

_FIELDS: Mapping[TopicPolicy, tuple[str, ...]] = {
    TopicPolicy.MESSAGE_TTL: ("message_ttl_seconds",),
    TopicPolicy.RETENTION: ("retention_minutes", "retention_megabytes"),
    TopicPolicy.BACKLOG_QUOTA: ("backlog_quota_bytes", "backlog_quota_action"),
    TopicPolicy.PUBLISH_RATE: ("publish_messages_per_second", "publish_bytes_per_second"),
    TopicPolicy.DISPATCH_RATE: ("dispatch_messages_per_second", "dispatch_bytes_per_second"),
    TopicPolicy.SCHEMA_COMPATIBILITY: ("schema_compatibility_strategy",),
    TopicPolicy.DEDUPLICATION: ("deduplication",),
}

_UNLIMITED_QUOTA_BYTES = -1


def managed_names(policies: SegmentPolicies) -> frozenset[str]:
    """Names of the fields that are set, as `managed_before` takes them. Pure."""
    names = (name for fields in _FIELDS.values() for name in fields)
    return frozenset(name for name in names if getattr(policies, name) is not None)


def wanted_policies(policies: SegmentPolicies) -> dict[TopicPolicy, Any]:
    """The JSON values of the topic policies that `policies` sets. Pure."""
    wanted: dict[TopicPolicy, Any] = {
        TopicPolicy.MESSAGE_TTL: policies.message_ttl_seconds,
        TopicPolicy.RETENTION: _retention(policies),
        TopicPolicy.BACKLOG_QUOTA: _backlog_quota(policies),
        TopicPolicy.PUBLISH_RATE: _publish_rate(policies),
        TopicPolicy.DISPATCH_RATE: _dispatch_rate(policies),
        TopicPolicy.SCHEMA_COMPATIBILITY: policies.schema_compatibility_strategy,
        TopicPolicy.DEDUPLICATION: policies.deduplication,
    }
    return {policy: value for policy, value in wanted.items() if value is not None}


def policies_from(found: Mapping[TopicPolicy, Any]) -> SegmentPolicies:
    """What topic policies as read set; what cannot be read sets nothing. Pure."""

    def part(policy: TopicPolicy, key: str, kind: type[T]) -> T | None:
        document = found.get(policy)
        return _of_kind(document.get(key), kind) if isinstance(document, dict) else None

    quota_bytes = part(TopicPolicy.BACKLOG_QUOTA, "limitSize", int)
    return SegmentPolicies(
        message_ttl_seconds=_of_kind(found.get(TopicPolicy.MESSAGE_TTL), int),
        retention_minutes=part(TopicPolicy.RETENTION, "retentionTimeInMinutes", int),
        retention_megabytes=part(TopicPolicy.RETENTION, "retentionSizeInMB", int),
        backlog_quota_bytes=quota_bytes if quota_bytes is None or quota_bytes >= 0 else None,
        backlog_quota_action=part(TopicPolicy.BACKLOG_QUOTA, "policy", str),
        publish_messages_per_second=part(TopicPolicy.PUBLISH_RATE, "publishThrottlingRateInMsg", int),
        publish_bytes_per_second=part(TopicPolicy.PUBLISH_RATE, "publishThrottlingRateInByte", int),
        dispatch_messages_per_second=part(TopicPolicy.DISPATCH_RATE, "dispatchThrottlingRateInMsg", int),
        dispatch_bytes_per_second=part(TopicPolicy.DISPATCH_RATE, "dispatchThrottlingRateInByte", int),
        schema_compatibility_strategy=_of_kind(found.get(TopicPolicy.SCHEMA_COMPATIBILITY), str),
        deduplication=_of_kind(found.get(TopicPolicy.DEDUPLICATION), bool),
    )


def _of_kind(value: Any, kind: type[T]) -> T | None:
    """A value of exactly that kind, else None: to Python a truth value is a number, too."""
    return value if type(value) is kind else None


def shows(found: Any, wanted: Any) -> bool:
    """Whether a policy as read has every value of a policy as wanted; brokers add fields of their own. Pure."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(found.get(key) == value for key, value in wanted.items())
    return type(found) is type(wanted) and bool(found == wanted)


class PolicyWriter:
    """Writes topic policies one after the other, waiting until each shows.

    The broker keeps all policies of a topic in one record that a write replaces from its own, late, copy: two
    writes close together could undo each other.

    Args:
        admin: the cluster.
        settling: bound of the read-back.
    """

    def __init__(self, admin: PulsarAdmin, settling: Settling) -> None:
        self._policies = admin.topic_policies
        self._settling = settling

    async def apply(self, topic: str, policies: SegmentPolicies, *, managed_before: frozenset[str]) -> frozenset[str]:
        """Write what differs, remove what is no longer wanted but was managed, read all of it back.

        Answers the names managed now: those of the fields of `policies` that are set.
        """
        wanted = wanted_policies(policies)
        for policy, fields in _FIELDS.items():
            if policy in wanted or not managed_before.isdisjoint(fields):
                await self._bring(topic, policy, wanted.get(policy))
        return managed_names(policies)

    async def _bring(self, topic: str, policy: TopicPolicy, wanted: Any) -> None:
        def is_there(found: Any) -> bool:
            return found is None if wanted is None else shows(found, wanted)

        if is_there(await self._policies.get(topic, policy)):
            return
        if wanted is None:
            await self._policies.remove(topic, policy)
        else:
            await self._policies.set(topic, policy, wanted)
        await self._settling.until(
            f"policy {policy.value.write} of {topic}", lambda: self._policies.get(topic, policy), is_there
        )


def _retention(policies: SegmentPolicies) -> dict[str, int] | None:
    minutes, megabytes = policies.retention_minutes, policies.retention_megabytes
    if minutes is None and megabytes is None:
        return None
    # Brokers refuse 0 beside a limit; "the other is not bounded" is what one limit alone means.
    other = 0 if (minutes or megabytes or 0) == 0 else -1
    return {
        "retentionTimeInMinutes": other if minutes is None else minutes,
        "retentionSizeInMB": other if megabytes is None else megabytes,
    }


def _backlog_quota(policies: SegmentPolicies) -> dict[str, Any] | None:
    if policies.backlog_quota_bytes is None and policies.backlog_quota_action is None:
        return None
    limit = policies.backlog_quota_bytes
    return {
        "limitSize": _UNLIMITED_QUOTA_BYTES if limit is None else limit,
        "limitTime": -1,
        "policy": policies.backlog_quota_action or "producer_request_hold",
    }


def _publish_rate(policies: SegmentPolicies) -> dict[str, int] | None:
    messages, size = policies.publish_messages_per_second, policies.publish_bytes_per_second
    if messages is None and size is None:
        return None
    return {
        "publishThrottlingRateInMsg": -1 if messages is None else messages,
        "publishThrottlingRateInByte": -1 if size is None else size,
    }


def _dispatch_rate(policies: SegmentPolicies) -> dict[str, Any] | None:
    messages, size = policies.dispatch_messages_per_second, policies.dispatch_bytes_per_second
    if messages is None and size is None:
        return None
    return {
        "dispatchThrottlingRateInMsg": -1 if messages is None else messages,
        "dispatchThrottlingRateInByte": -1 if size is None else size,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    }
