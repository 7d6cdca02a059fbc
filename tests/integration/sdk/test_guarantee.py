"""The guarantees under steady traffic with a change every two seconds: nothing lost, duplicated or out of order."""

from __future__ import annotations

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import HashRange
from scalable_topics.sdk import Client
from tests.integration.sdk.conftest import MakeLeader
from tests.support.guarantee import Load, run_guarantee
from tests.support.guarantee_plan import PlannedChange, fresh_seed, plan_changes, plan_segment_change

SECONDS = 20.0
EVERY_SECONDS = 2.0
MOST_ACTIVE = 6


@pytest.mark.parametrize("announced", [True, False])
async def test_R13_R15_R20_nothing_is_lost_duplicated_or_disordered(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess, announced: bool
) -> None:
    """Hazard C49. Brokers deduplicate. Announced, and unannounced, when every producer is refused amid its sends."""
    seed = fresh_seed()
    leader = await lead(segments=2, bucket_budget=2, subscriptions=["guarantee"], deduplication=True)

    async def change(planned: PlannedChange) -> None:
        shape = plan_segment_change(leader.layout, planned, most_active=MOST_ACTIVE)
        assert shape is not None
        await leader.change(shape, announced=announced)

    async def segments() -> dict[int, tuple[str, HashRange]]:
        return {
            segment_id: (leader.segment_topic(segment_id), segment.hash_range)
            for segment_id, segment in leader.layout.segments.items()
        }

    plan = plan_changes(seed, seconds=SECONDS, every_seconds=EVERY_SECONDS)
    report = await run_guarantee(
        client,
        str(leader.topic),
        seed=seed,
        seconds=SECONDS,
        plan=plan,
        change=change,
        segments=segments,
        service_url=pulsar.service_url,
        token=pulsar.superuser_token,
        load=Load(producers=3, consumers=2, messages_per_second=300),
    )
    print(report)
    assert len(report.changes) == len(plan) >= 8
    assert not report.findings, str(report)
    assert report.failures == [], str(report)
    assert report.sent == report.acknowledged > 3 * 300 * SECONDS / 3
