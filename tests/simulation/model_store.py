"""ScalableTopic objects in memory, and `TopicStore` over one of them: each commit is a compare-and-swap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.requests import CursorRequest, PruneRequest, ReshapeRequest
from scalable_topics_operator.operations.subscriptions import SubscriptionWish
from scalable_topics_operator.operations.topic_state import TopicState, read_state, write_state
from tests.simulation.faults import Nature
from tests.simulation.line import Line


@dataclass(frozen=True, slots=True)
class SegmentOperation:
    """A user's request for one operation."""

    name: str
    wants: ReshapeRequest | PruneRequest | CursorRequest


@dataclass(slots=True)
class TopicObject:
    """One ScalableTopic object as the API server keeps it.

    Args:
        uid: of the object.
        topic: the scalable topic it declares.
        installation: the operator installation that looks after it.
        intent: its spec.
        desired: `spec.segments.desired`.
        retain: `deletionPolicy` is Retain.
        deleting: it has a deletionTimestamp.
        gone: its finalizer was taken away.
        status: its status; all that a new process knows.
        version: its resourceVersion.
        operations: its unfinished SegmentOperations, oldest first.
        wishes: what is asked of subscriptions besides, until it is recorded.
        outcomes: what became of the others.
        standing: why it is not worked on.
        reports: what its last drift check found lost.
        history: the statuses before each commit, oldest first.
    """

    uid: str
    topic: TopicName
    installation: str
    intent: TopicIntent
    desired: int | None = None
    retain: bool = True
    deleting: bool = False
    gone: bool = False
    status: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    operations: list[SegmentOperation] = field(default_factory=list)
    wishes: list[SubscriptionWish] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)
    standing: str = ""
    reports: tuple[tuple[str, str], ...] = ()
    history: list[Mapping[str, Any]] = field(default_factory=list)
    _read: tuple[int, TopicState] | None = None

    def forget_what_was_read(self) -> None:
        """Drop the record as read, which cannot be copied."""
        self._read = None

    @property
    def state(self) -> TopicState:
        """The record, as a process reads it."""
        if self._read is None or self._read[0] != self.version:
            self._read = (self.version, read_state(self.status))
        return self._read[1]


class CommitWatch(Protocol):
    """Told of each commit as it takes effect."""

    def committed(self, body: TopicObject, before: TopicState, after: TopicState, intent: TopicIntent) -> None:
        """Judge it."""


class ModelStore:
    """Implements `TopicStore` for one reconcile.

    Args:
        body: the object, read now.
        line: carries the commits of one process.
        watch: told of what takes effect.
    """

    def __init__(self, body: TopicObject, line: Line, watch: CommitWatch) -> None:
        self._body = body
        self._line = line
        self._watch = watch
        self._status = body.status
        self._version = body.version
        self._intent = body.intent
        self._state = body.state

    @property
    def state(self) -> TopicState:
        """The state as of the last read or commit."""
        return self._state

    async def commit(self, state: TopicState) -> None:
        """Make `state` the record. Raises StaleStatus, KubeUnavailable."""
        status = json.loads(json.dumps(write_state(self._status, state)))
        expected = self._version

        def effect() -> None:
            if self._body.gone or self._body.version != expected:
                raise StaleStatus(f"{self._body.uid} is at version {self._body.version}, not {expected}")
            before = self._body.state
            self._body.history.append(self._body.status)
            self._body.status = status
            self._body.version += 1
            self._watch.committed(self._body, before, self._body.state, self._intent)

        await self._line.call("commit", _label(state), Nature.COMMIT, effect)
        self._status = status
        self._version = expected + 1
        self._state = state


def _label(state: TopicState) -> str:
    epoch = state.layout.epoch if state.layout else "none"
    if state.operation is not None:
        return f"epoch={epoch},{state.operation.kind}={state.operation.step}"
    return f"epoch={epoch},last={state.actions[-1].kind if state.actions else '-'}"
