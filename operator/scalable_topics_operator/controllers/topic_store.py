"""A topic's state, committed as one compare-and-swap write of its status (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.controllers.topic_status import TopicFacts, with_state
from scalable_topics_operator.operations.journal import Action, OperationKind, Result
from scalable_topics_operator.operations.topic_state import TopicState, read_state
from scalable_topics_operator.telemetry.metrics import Metrics


class StatusTopicStore:
    """Implements `TopicStore` over a ScalableTopic's status.

    Args:
        store: the object's status.
        facts: what the status tells besides the record.
        metrics: counts finished operations.

    Raises LayoutError when the recorded layout breaks an invariant: nothing may act on it.
    """

    def __init__(self, store: StatusStore, facts: TopicFacts, metrics: Metrics) -> None:
        self._store = store
        self.facts = facts
        self._metrics = metrics
        self._state = read_state(store.status)

    @property
    def state(self) -> TopicState:
        """The state as of the last read or commit."""
        return self._state

    @property
    def status(self) -> Mapping[str, Any]:
        """The whole status as of the last read or write."""
        return self._store.status

    @property
    def body(self) -> Body:
        """The whole object as of the last read or write."""
        return self._store.body

    async def commit(self, state: TopicState) -> None:
        """Make `state` the record. Raises StaleStatus when somebody else wrote the status, KubeError."""
        await self._store.write(with_state(self._store.status, state, self.facts, timestamp_now()))
        finished_before = {action.id for action in self._state.actions}
        for action in state.actions:
            if action.id not in finished_before:
                self._metrics.operations.labels(action.kind, action.result.value).inc()
                if _has_rebucketed(action, state.layout):
                    self._metrics.scaling.rolled_over(self.facts.topic)
        self._state = state

    async def write_status(self, status: Mapping[str, Any]) -> bool:
        """Write parts of the status that operations do not own; answers whether that was needed."""
        return await self._store.write(status)


def _has_rebucketed(action: Action, layout: SegmentLayout | None) -> bool:
    """Whether it gave a segment another bucket count; a segment that was lost is replaced by one with the same."""
    if layout is None or action.kind != OperationKind.REBUCKET or action.result is not Result.SUCCEEDED:
        return False
    counts = {layout.segments[one].buckets for one in (*action.parents, *action.children) if one in layout.segments}
    # Brokers may have pruned what it was before.
    return len(counts) > 1 or not layout.segments.keys() >= {*action.parents, *action.children}
