"""R27: what segment policies become, and when a topic already has them."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.backends.admin.topic_policy_api import TopicPolicy
from scalable_topics_operator.backends.classic.policies import managed_names, shows, wanted_policies
from scalable_topics_operator.backends.classic.protection import protects
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

VALUES: dict[str, Any] = {
    field.name: {"int | None": 7, "str | None": "FULL", "bool | None": False}[str(field.type)]
    for field in dataclasses.fields(SegmentPolicies)
}


@given(st.sets(st.sampled_from(sorted(VALUES))))
def test_every_policy_that_is_set_is_managed_and_nothing_else(names: set[str]) -> None:
    policies = SegmentPolicies(**{name: VALUES[name] for name in names})
    assert managed_names(policies) == names
    assert bool(wanted_policies(policies)) == bool(names)


def test_nothing_set_is_nothing_written() -> None:
    assert wanted_policies(SegmentPolicies()) == {}


def test_policies_in_the_form_of_the_admin_api() -> None:
    """Hazard A6-25959."""
    assert wanted_policies(
        SegmentPolicies(
            message_ttl_seconds=60,
            retention_minutes=10,
            retention_megabytes=5,
            backlog_quota_bytes=1000,
            backlog_quota_action="producer_exception",
            publish_messages_per_second=5,
            dispatch_bytes_per_second=6,
            schema_compatibility_strategy="FULL",
            deduplication=False,
        )
    ) == {
        TopicPolicy.MESSAGE_TTL: 60,
        TopicPolicy.RETENTION: {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
        TopicPolicy.BACKLOG_QUOTA: {"limitSize": 1000, "limitTime": -1, "policy": "producer_exception"},
        TopicPolicy.PUBLISH_RATE: {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1},
        TopicPolicy.DISPATCH_RATE: {
            "dispatchThrottlingRateInMsg": -1,
            "dispatchThrottlingRateInByte": 6,
            "relativeToPublishRate": False,
            "ratePeriodInSecond": 1,
        },
        TopicPolicy.SCHEMA_COMPATIBILITY: "FULL",
        TopicPolicy.DEDUPLICATION: False,
    }


@pytest.mark.parametrize(
    ("minutes", "megabytes", "expected"),
    [(10, None, (10, -1)), (None, 5, (-1, 5)), (0, None, (0, 0)), (None, 0, (0, 0)), (-1, None, (-1, -1))],
)
def test_one_retention_limit_alone_leaves_the_other_without_bound(
    minutes: int | None, megabytes: int | None, expected: tuple[int, int]
) -> None:
    """Brokers refuse 0 beside a limit (measured)."""
    wanted = wanted_policies(SegmentPolicies(retention_minutes=minutes, retention_megabytes=megabytes))
    value = wanted[TopicPolicy.RETENTION]
    assert (value["retentionTimeInMinutes"], value["retentionSizeInMB"]) == expected


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ({"limit": 1, "limitSize": 1, "policy": "x"}, {"limitSize": 1, "policy": "x"}, True),
        ({"limitSize": 2, "policy": "x"}, {"limitSize": 1, "policy": "x"}, False),
        (None, {"limitSize": 1}, False),
        (60, 60, True),
        (None, 60, False),
        (False, 0, False),
        (1, True, False),
        (False, False, True),
        ("FULL", "FULL", True),
    ],
)
def test_a_policy_is_compared_by_what_was_asked_for(found: Any, wanted: Any, same: bool) -> None:
    assert shows(found, wanted) is same


@pytest.mark.parametrize(
    ("policy", "protected"),
    [
        (None, False),
        ({}, False),
        ({"deleteWhileInactive": True}, False),
        ({"deleteWhileInactive": False}, True),
    ],
)
def test_r27_only_an_explicit_no_protects(policy: Any, protected: bool) -> None:
    assert protects(policy) is protected
