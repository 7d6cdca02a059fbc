"""What a commit of a topic's record counts (pip-486)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.controllers.topic_status import TopicFacts
from scalable_topics_operator.controllers.topic_store import StatusTopicStore
from scalable_topics_operator.operations.journal import Action, Request, Result
from scalable_topics_operator.operations.topic_state import TopicState
from scalable_topics_operator.telemetry.metrics import Metrics

TOPIC = "topic://t/n/a"


class Status:
    """The status of an object that nobody else writes."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self.body: dict[str, Any] = {}

    async def write(self, status: dict[str, Any]) -> bool:
        self.status = status
        return True


def action(kind: str, result: Result = Result.SUCCEEDED) -> Action:
    return Action("id-1", kind, "2026-11-27T10:00:00Z", 1, (0,), (1,), result, Request("AutoScale", "a", "u"))


ONE = SegmentLayout.initial(1, bucket_budget=4)


@pytest.mark.parametrize(
    ("layout", "ended", "counted"),
    [
        (ONE.rebucket(0, 8, now_ms=1), action("Rebucket"), 1.0),
        # Brokers prune within a minute what it was before.
        (ONE.rebucket(0, 8, now_ms=1).prune([0]), action("Rebucket"), 1.0),
        # A segment whose topic was lost: nothing was asked of its buckets.
        (ONE.reserve(ONE.plan_rollover(0)).apply(ONE.plan_rollover(0), now_ms=1), action("Rebucket"), None),
        (ONE, action("Rebucket", Result.ROLLED_BACK), None),
        (ONE.split(0, now_ms=1), action("Split"), None),
    ],
)
async def test_rollovers_to_another_bucket_count_are_counted_once(
    layout: SegmentLayout, ended: Action, counted: float | None
) -> None:
    metrics, status = Metrics(), Status()
    store = StatusTopicStore(status, TopicFacts("u", 1, TOPIC, "Classic", "c"), metrics)  # type: ignore[arg-type]
    state = TopicState(layout=layout, actions=(ended,))
    for _ in range(2):
        await store.commit(state)

    def shown() -> float | None:
        return metrics.registry.get_sample_value("scalable_topics_rebucket_rollovers_total", {"topic": TOPIC})

    assert shown() == counted
    metrics.scaling.forget(TOPIC)
    assert shown() is None
