"""SegmentOperations of one topic: the queue they make, and what becomes of each (R10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from scalable_topics.layout import LayoutError, LayoutStateError, SegmentChange, SegmentLayout
from scalable_topics_operator.api.segment_operation import SegmentOperation, SegmentOperationSpec
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.cluster.segment_operations import FINISHED
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.conditions import Standing, apply_standing
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.operations.errors import BackendRefused, RequestRefused, Unsupported
from scalable_topics_operator.operations.journal import Action, Operation, Request, Result
from scalable_topics_operator.operations.topic_state import TopicState

BY_TOPIC = "operations-by-topic"
DRY_RUN = "dry run: nothing was changed"
_FAILURES = {"Migrate": "NotMigrated"}


def topic_of_operation(body: Body) -> str | None:
    """Index function: `namespace/name` of the topic of an unfinished SegmentOperation."""
    if (body.get("status") or {}).get("phase") in FINISHED:
        return None
    return f"{body['metadata']['namespace']}/{body['spec']['scalableTopic']}"


@dataclass(frozen=True, slots=True)
class QueuedOperation:
    """One unfinished SegmentOperation."""

    key: ObjectKey
    body: Body

    @property
    def request(self) -> Request:
        """How the journal names it."""
        return Request("SegmentOperation", self.key.name, self.body["metadata"]["uid"])


class OperationQueue:
    """Carries out a topic's SegmentOperations one after the other, oldest first.

    Args:
        kube: the API server.
        cache: objects as last seen.
        events: tells people.
        on_finished: called with the key of each SegmentOperation that has ended; the cache knows of it by then,
            so that no watch event tells of it any more.
    """

    def __init__(
        self, kube: KubeClient, cache: ObjectCache, events: EventRecorder, on_finished: Callable[[ObjectKey], None]
    ) -> None:
        self._kube = kube
        self.cache = cache
        self._events = events
        self._on_finished = on_finished

    def pending(self, topic: ObjectKey) -> list[QueuedOperation]:
        """The topic's unfinished SegmentOperations, oldest first."""
        found = [
            QueuedOperation(key, body)
            for key, body in self.cache.find(BY_TOPIC, f"{topic.namespace}/{topic.name}")
            if not body["metadata"].get("deletionTimestamp")
        ]
        return sorted(found, key=lambda entry: (entry.body["metadata"]["creationTimestamp"], entry.key.name))

    def migrations(self, topic: ObjectKey) -> list[QueuedOperation]:
        """Those of them that ask for a migration, which have nothing to wait for while there is no layout."""
        return [entry for entry in self.pending(topic) if entry.body["spec"]["type"] == "Migrate"]

    async def settle(self, topic: ObjectKey, state: TopicState) -> None:
        """Write what the topic's journal and history say of each pending SegmentOperation."""
        for entry in self.pending(topic):
            ended = [action for action in state.actions if action.request == entry.request]
            if ended and ended[-1].result is not Result.ROLLED_BACK:
                await self._finish(entry, ended[-1])
            elif state.operation is not None and state.operation.request == entry.request:
                await self.show_running(entry, state.operation)

    async def start_next(
        self, topic: ObjectKey, start: Callable[[QueuedOperation, SegmentOperationSpec], Awaitable[None]]
    ) -> bool:
        """Start the oldest pending SegmentOperation; False when there is none.

        Requests that `start` says cannot be carried out end as Failed here. Raises BackendUnavailable, NotYet where one
        must wait.
        """
        pending = self.pending(topic)
        if not pending:
            return False
        entry = pending[0]
        try:
            await start(entry, SegmentOperation.model_validate(entry.body).spec)
        except RequestRefused as refused:
            await self.fail(entry, str(refused), refused.reason)
        except LayoutError as error:
            await self.fail(
                entry, str(error), "NotPossible" if isinstance(error, LayoutStateError) else "InvalidRequest"
            )
        except BackendRefused as error:
            await self.fail(entry, str(error), "Unsupported" if isinstance(error, Unsupported) else "BrokerRefused")
        except ValidationError as error:
            await self.fail(entry, error.errors()[0]["msg"], "InvalidRequest")
        return True

    async def show_waiting(self, topic: ObjectKey, why: str) -> None:
        """Tell on every pending SegmentOperation why it waits."""
        for entry in self.pending(topic):
            status = (entry.body.get("status") or {}).get("phase", "Pending")
            if status == "Pending":
                await self._write(entry, "Pending", Standing.working("Waiting", why), {"message": why})

    async def show_running(self, entry: QueuedOperation, operation: Operation) -> None:
        """Tell that an operation is under way."""
        await self._write(
            entry,
            "Running",
            Standing.working(operation.kind.value, f"step {operation.step.value}"),
            {
                "step": operation.step.value,
                "operationId": operation.id,
                "startedAt": operation.started_at,
                "message": None,
            },
        )

    async def _finish(self, entry: QueuedOperation, action: Action) -> None:
        if action.result is Result.FAILED:
            reason = _FAILURES.get(action.kind, "CursorsNotMoved" if action.subscription else "BrokerRefused")
            await self.fail(entry, action.message, reason, {"operationId": action.id, "step": None})
            return
        await self.succeed(
            entry,
            _outcome(action),
            {
                "operationId": action.id,
                "step": None,
                "children": list(action.children) or None,
                "epoch": action.epoch,
            },
        )

    async def show_plan(
        self, entry: QueuedOperation, layout: SegmentLayout, change: SegmentChange, subscriptions: Iterable[str]
    ) -> None:
        """End a dry run with what would be done."""
        parents = [layout.segment(parent) for parent in change.parent_ids]
        planned = {
            "parents": [{"id": parent.segment_id, "range": parent.hash_range.descriptor} for parent in parents],
            "children": [
                {"id": child.segment_id, "range": child.hash_range.descriptor, "buckets": child.buckets}
                for child in change.children
            ],
            "subscriptions": sorted(subscriptions),
        }
        await self.succeed(entry, DRY_RUN, {"plan": planned})

    async def succeed(self, entry: QueuedOperation, message: str, more: Mapping[str, Any]) -> None:
        """End a SegmentOperation well."""
        await self._events.normal(entry.body, "Succeeded", message)
        await self._write(
            entry,
            "Succeeded",
            Standing.healthy(message),
            {"message": message, "completedAt": timestamp_now(), **more},
        )

    async def fail(
        self, entry: QueuedOperation, message: str, reason: str, more: Mapping[str, Any] | None = None
    ) -> None:
        """End a SegmentOperation that could not be carried out."""
        await self._events.warning(entry.body, "Failed", message)
        await self._write(
            entry,
            "Failed",
            Standing.stuck("Failed", message),
            {"message": message, "reason": reason, "completedAt": timestamp_now(), **(more or {})},
        )

    async def _write(self, entry: QueuedOperation, phase: str, standing: Standing, more: Mapping[str, Any]) -> None:
        body = self.cache.get(entry.key) or entry.body
        store = StatusStore(self._kube, SEGMENT_OPERATIONS, body, self._observe)
        generation = body["metadata"]["generation"]
        status = {**store.status, **more, "phase": phase, "observedGeneration": generation}
        status["conditions"] = apply_standing(
            status.get("conditions", ()), standing, generation=generation, now=timestamp_now()
        )
        try:
            await store.write({name: value for name, value in status.items() if value is not None})
        except KubeNotFound:
            # Deleted while it ran: the operation itself goes on in the topic's journal.
            self.cache.remove(entry.key, body["metadata"]["uid"])
            return
        if phase in FINISHED:
            self._on_finished(entry.key)

    def _observe(self, written: Body) -> None:
        self.cache.observe(SEGMENT_OPERATIONS, written)


def _outcome(action: Action) -> str:
    if action.subscription:
        return f"the cursors of subscription {action.subscription} were moved"
    if action.children:
        return f"segments {list(action.parents)} were replaced by {list(action.children)}"
    return f"segments {list(action.parents)} left the layout"
