"""A topic's state, committed as one compare-and-swap write of its status (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.controllers.topic_status import TopicFacts, with_state
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
        self._state = state

    async def write_status(self, status: Mapping[str, Any]) -> bool:
        """Write parts of the status that operations do not own; answers whether that was needed."""
        return await self._store.write(status)
