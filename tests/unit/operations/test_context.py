"""What operations are handed: shares of the totals, times, and calls made side by side."""

from __future__ import annotations

import asyncio
from dataclasses import fields

import pytest

from scalable_topics_operator.operations.context import (
    TopicIntent,
    TotalPolicies,
    concurrently,
    format_timestamp,
)
from scalable_topics_operator.operations.errors import AccessDenied, BackendUnavailable
from scalable_topics_operator.operations.segment_policies import SegmentPolicies


@pytest.mark.parametrize(
    ("total", "active", "share"),
    [
        pytest.param(None, 4, None, id="not ours to set"),
        pytest.param(1000, 1, 1000, id="one segment has it all"),
        pytest.param(1000, 4, 250, id="equal shares"),
        pytest.param(1000, 3, 334, id="rounded up"),
        pytest.param(2, 100, 1, id="never 0 by division"),
        pytest.param(0, 4, 0, id="0 stays 0"),
        pytest.param(-1, 4, -1, id="no bound stays no bound"),
        pytest.param(10, 0, 10, id="no segment yet"),
    ],
)
@pytest.mark.parametrize("name", [field.name for field in fields(TotalPolicies)])
def test_r27_totals_are_divided_by_active_segments(
    name: str, total: int | None, active: int, share: int | None
) -> None:
    intent = TopicIntent(total=TotalPolicies(**{name: total}))
    assert getattr(intent.policies_for(active), name) == share


def test_r27_other_policies_are_each_segments_own() -> None:
    own = SegmentPolicies(
        message_ttl_seconds=60,
        retention_minutes=5,
        backlog_quota_action="producer_exception",
        schema_compatibility_strategy="FULL",
        deduplication=True,
    )
    intent = TopicIntent(per_segment=own, total=TotalPolicies(backlog_quota_bytes=100))
    for active in (1, 7):
        policies = intent.policies_for(active)
        assert policies.message_ttl_seconds == 60
        assert policies.retention_minutes == 5
        assert policies.backlog_quota_action == "producer_exception"
        assert policies.schema_compatibility_strategy == "FULL"
        assert policies.deduplication is True


def test_timestamps_are_utc_with_seconds() -> None:
    assert format_timestamp(0) == "1970-01-01T00:00:00Z"
    assert format_timestamp(1_800_000_000_999) == "2027-01-15T08:00:00Z"


async def test_calls_run_side_by_side_and_in_order() -> None:
    started: list[int] = []

    async def call(number: int) -> int:
        started.append(number)
        await asyncio.sleep(0)
        assert len(started) == 3, "all are under way before one ends"
        return number

    assert await concurrently(call(number) for number in range(3)) == [0, 1, 2]


async def test_one_failure_leaves_no_call_running() -> None:
    """Hazard A1-26434b."""
    ended: list[str] = []

    async def slow() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append("slow")

    async def unavailable() -> None:
        raise BackendUnavailable("no answer")

    with pytest.raises(BackendUnavailable):
        await concurrently([unavailable(), slow()])
    assert ended == ["slow"]


async def test_a_refusal_is_told_before_an_outage() -> None:
    async def unavailable() -> None:
        raise BackendUnavailable("no answer")

    async def denied() -> None:
        raise AccessDenied("a right is missing")

    with pytest.raises(AccessDenied):
        await concurrently([unavailable(), denied()])


async def test_nothing_to_do_is_done() -> None:
    assert await concurrently([]) == []
