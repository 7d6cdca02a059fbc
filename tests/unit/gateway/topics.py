"""A ScalableTopic in the states it goes through, as the cache holds it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scalable_topics.layout import SegmentLayout, TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Step
from scalable_topics_operator.operations.topic_state import TopicState, write_state

ORDERS = TopicName("acme", "shop", "orders")
KEY = ObjectKey(TOPICS.plural, "shop", "orders")
_MADE_AT_MS = 1_800_000_000_000


def topic_body(
    state: TopicState,
    version: int = 1,
    *,
    topic: TopicName = ORDERS,
    name: str = "orders",
    uid: str = "uid-1",
    connection: str = "pulsar",
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The object with a state in its status."""
    return {
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": uid,
            "generation": 1,
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"topic": str(topic), "connectionRef": {"name": connection}},
        "status": write_state(status or {}, state),
    }


def created(segments: int = 1, uid: str = "uid-1") -> TopicState:
    """A topic just made."""
    return TopicState(layout=SegmentLayout.initial(segments, created_at_ms=_MADE_AT_MS), incarnation=f"{uid}.0")


def splitting(before: TopicState, segment_id: int, step: Step, announcements: int = 1, term: int = 1) -> TopicState:
    """A split of a segment under way."""
    assert before.layout is not None
    change = before.layout.plan_split(segment_id)
    reserved = before.layout.reserve(change)
    operation = Operation(
        id=f"split-{segment_id}",
        kind=OperationKind.SPLIT,
        step=step,
        term=term,
        parents=change.parent_ids,
        children=change.children,
        subscriptions=(),
        started_at="2026-11-28T00:00:00Z",
        request=Request("SegmentOperation", "split-it", "uid-9"),
        next_segment_id=reserved.next_segment_id,
        announcements=announcements if step is not Step.CREATING else 0,
    )
    return replace(before, layout=reserved, operation=operation)


def split(before: TopicState, segment_id: int) -> TopicState:
    """After that split."""
    assert before.layout is not None
    change = before.layout.plan_split(segment_id)
    return replace(before, layout=before.layout.apply(change, now_ms=_MADE_AT_MS + 1), operation=None)
