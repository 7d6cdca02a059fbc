"""What operations remember of a scalable topic: the layout, the journal and what is still to be tidied.

Pure: `TopicState` reads and writes the fields of a ScalableTopic's status that operations own. One commit of
it is one compare-and-swap write, so whatever must be true together stands in here together (R8, R9).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scalable_topics.layout import (
    HashRange,
    PlannedSegment,
    SegmentLayout,
    TopicName,
    from_record,
    synthetic_layout,
    to_record,
)
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.migrated_from import MigratedFrom, Migration
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState

ACTIONS_KEPT = 20


class OperationKind(StrEnum):
    """What a journaled operation does to a topic."""

    CREATE = "Create"
    SPLIT = "Split"
    MERGE = "Merge"
    REBUCKET = "Rebucket"
    MIGRATE = "Migrate"
    PRUNE = "Prune"
    DELETE = "Delete"
    SEEK = "Seek"
    SKIP_ALL = "SkipAll"
    RESTORE = "Restore"


class Step(StrEnum):
    """The journaled step whose side effects may have begun (R8).

    `SEALING` is the point of no return: recovery rolls back before it and goes only forward from it on. What moves the
    cursors of a subscription has none: it goes forward from wherever it is (R18).
    """

    CREATING = "Creating"
    ANNOUNCING = "Announcing"
    SEALING = "Sealing"
    ROLLING_BACK = "RollingBack"
    DELETING = "Deleting"
    RELEASING = "Releasing"
    MOVING = "Moving"


class Result(StrEnum):
    """How an operation ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ROLLED_BACK = "RolledBack"


@dataclass(frozen=True, slots=True)
class Request:
    """Who asked for an operation: a SegmentOperation, the topic's own spec, or drift repair."""

    kind: str
    name: str
    uid: str

    def to_json(self) -> dict[str, Any]:
        """The form in `status`."""
        return {"kind": self.kind, "name": self.name, "uid": self.uid}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Request:
        """Read the form in `status`."""
        return cls(data["kind"], data["name"], data["uid"])


@dataclass(frozen=True, slots=True)
class Operation:
    """The journal entry of the operation in progress.

    Args:
        id: unique for ever.
        kind: what it does.
        step: whose side effects may have begun.
        term: leadership term under which the journal was opened (R5).
        parents: segments it seals.
        children: segments it makes, with the ids chosen at opening; commits use these, never new ones.
        subscriptions: cursors every child gets, or the subscription whose cursors are moved.
        started_at: RFC 3339.
        request: who asked.
        next_segment_id: first id not reserved once the journal was opened (R9).
        announcements: how often its seal was announced (R13).
        in_doubt: producers still attached to the parents when they were to be sealed, whose tails are settled (R15).
        result: how it will have ended once it is rolled back, if it is being rolled back.
        message: why it is being rolled back.
        reason: why it was begun, where the operator did so by itself.
        seek_to_ms: where the cursors are moved to, in milliseconds since 1970; None where it is no seek.
        positions: behind which message of each segment a restore moves them.
        migration: the ordinary topic that is migrated, if it is a migration; its topics are the parents.
    """

    id: str
    kind: OperationKind
    step: Step
    term: int
    parents: tuple[int, ...]
    children: tuple[PlannedSegment, ...]
    subscriptions: tuple[str, ...]
    started_at: str
    request: Request
    next_segment_id: int
    announcements: int = 0
    in_doubt: tuple[str, ...] = ()
    result: Result | None = None
    message: str = ""
    reason: str = ""
    seek_to_ms: int | None = None
    positions: Mapping[int, MessagePosition] = field(default_factory=dict)
    migration: Migration | None = None

    def to_json(self) -> dict[str, Any]:
        """The form in `status.operation`."""
        data: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind.value,
            "step": self.step.value,
            "term": self.term,
            "parents": list(self.parents),
            "children": [
                {
                    "id": child.segment_id,
                    "range": child.hash_range.descriptor,
                    "buckets": child.buckets,
                    "mergeDepth": child.merge_depth,
                }
                for child in self.children
            ],
            "subscriptions": list(self.subscriptions),
            "startedAt": self.started_at,
            "request": self.request.to_json(),
            "nextSegmentId": self.next_segment_id,
        }
        if self.announcements:
            data["announcements"] = self.announcements
        if self.in_doubt:
            data["inDoubt"] = list(self.in_doubt)
        if self.result:
            data["result"] = self.result.value
        if self.message:
            data["message"] = self.message
        if self.reason:
            data["reason"] = self.reason
        if self.seek_to_ms is not None:
            data["seekToMs"] = self.seek_to_ms
        if self.positions:
            data["positions"] = [
                {
                    "segment": segment_id,
                    "ledgerId": position.ledger_id,
                    "entryId": position.entry_id,
                    "batchIndex": position.batch_index,
                }
                for segment_id, position in sorted(self.positions.items())
            ]
        if self.migration is not None:
            data["migration"] = self.migration.to_json()
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Operation:
        """Read the form in `status.operation`. Raises KeyError or ValueError for a broken one."""
        return cls(
            id=data["id"],
            kind=OperationKind(data["kind"]),
            step=Step(data["step"]),
            term=data["term"],
            parents=tuple(data.get("parents", ())),
            children=tuple(
                PlannedSegment(
                    segment_id=child["id"],
                    hash_range=HashRange.parse_descriptor(child["range"]),
                    buckets=child["buckets"],
                    merge_depth=child.get("mergeDepth", 0),
                )
                for child in data.get("children", ())
            ),
            subscriptions=tuple(data.get("subscriptions", ())),
            started_at=data["startedAt"],
            request=Request.from_json(data["request"]),
            next_segment_id=data["nextSegmentId"],
            announcements=data.get("announcements", 0),
            in_doubt=tuple(data.get("inDoubt", ())),
            result=Result(data["result"]) if data.get("result") else None,
            message=data.get("message", ""),
            reason=data.get("reason", ""),
            seek_to_ms=data.get("seekToMs"),
            positions={
                entry["segment"]: MessagePosition(entry["ledgerId"], entry["entryId"], entry["batchIndex"])
                for entry in data.get("positions", ())
            },
            migration=Migration.from_json(data["migration"]) if data.get("migration") else None,
        )

    @property
    def moves_cursors(self) -> bool:
        """Whether it moves the cursors of a subscription and leaves the layout alone."""
        return self.kind in (OperationKind.SEEK, OperationKind.SKIP_ALL, OperationKind.RESTORE)

    def ended(self, result: Result, *, at: str, epoch: int, message: str = "") -> Action:
        """What the history keeps of it.

        Args:
            result: how it ended.
            at: when, RFC 3339.
            epoch: of the layout afterwards.
            message: what went wrong.
        """
        return Action(
            id=self.id,
            kind=self.kind.value,
            at=at,
            epoch=epoch,
            parents=self.parents,
            children=tuple(child.segment_id for child in self.children),
            result=result,
            request=self.request,
            message=message,
            reason=self.reason,
            subscription=self.subscriptions[0] if self.moves_cursors else "",
        )


def new_operation_id() -> str:
    """A fresh operation id; random, because it also tells a late reply from a live one."""
    return uuid.uuid4().hex[:16]


@dataclass(frozen=True, slots=True)
class Action:
    """One finished operation in the topic's history; `subscription` is the one whose cursors it moved, if any."""

    id: str
    kind: str
    at: str
    epoch: int
    parents: tuple[int, ...]
    children: tuple[int, ...]
    result: Result
    request: Request
    message: str = ""
    reason: str = ""
    subscription: str = ""

    def to_json(self) -> dict[str, Any]:
        """The form in `status.actions`."""
        data: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "at": self.at,
            "epoch": self.epoch,
            "parents": list(self.parents),
            "children": list(self.children),
            "result": self.result.value,
            "request": self.request.to_json(),
        }
        if self.message:
            data["message"] = self.message
        if self.reason:
            data["reason"] = self.reason
        if self.subscription:
            data["subscription"] = self.subscription
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Action:
        """Read the form in `status.actions`."""
        return cls(
            id=data["id"],
            kind=data["kind"],
            at=data["at"],
            epoch=data["epoch"],
            parents=tuple(data.get("parents", ())),
            children=tuple(data.get("children", ())),
            result=Result(data["result"]),
            request=Request.from_json(data["request"]),
            message=data.get("message", ""),
            reason=data.get("reason", ""),
            subscription=data.get("subscription", ""),
        )


@dataclass(frozen=True, slots=True)
class DeletingSegment:
    """A segment that left the layout and whose topic is still to be deleted, or truncated if it wraps a migrated one,
    which stays (R19, hazard B6).
    """

    segment_id: int
    topic: str
    since_ms: int
    is_legacy: bool = False

    def to_json(self) -> dict[str, Any]:
        """The form in `status.deleting`."""
        data: dict[str, Any] = {"id": self.segment_id, "topic": self.topic, "sinceMs": self.since_ms}
        return {**data, "legacy": True} if self.is_legacy else data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DeletingSegment:
        """Read the form in `status.deleting`."""
        return cls(data["id"], data["topic"], data["sinceMs"], data.get("legacy", False))


@dataclass(frozen=True, slots=True)
class TopicState:
    """The part of a ScalableTopic's status that operations own.

    Args:
        layout: the record; None until the topic is created.
        operation: the open journal entry.
        deleting: pruned segments whose topics still exist.
        subscriptions: declared subscriptions and requested ones, by name.
        actions: the last 20 finished operations, oldest first.
        incarnation: changes when the layout was rebuilt rather than evolved (R12).
        settled: for sealed segments that were left with producers in doubt, the last sequence id stored under each
            producer's name, -1 for none (R15).
        clocks: when segments were changed last, from which cool-downs count.
        migrated_from: what the topic was before, if it was migrated.
    """

    layout: SegmentLayout | None = None
    operation: Operation | None = None
    deleting: tuple[DeletingSegment, ...] = ()
    subscriptions: Mapping[str, SubscriptionState] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    incarnation: str = ""
    settled: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    clocks: Clocks = field(default_factory=Clocks)
    migrated_from: MigratedFrom | None = None

    def shown_layout(self, topic: TopicName) -> SegmentLayout | None:
        """What clients may know: the layout, or while the topic is being migrated the one that models what it was."""
        operation = self.operation
        if self.layout is not None or operation is None or operation.migration is None:
            return self.layout
        modelled = synthetic_layout(topic, operation.migration.source.partitions)
        return replace(modelled, next_segment_id=operation.next_segment_id)

    @property
    def source(self) -> MigratedFrom | None:
        """What the topic was before, if it was migrated or is being."""
        migration = self.operation.migration if self.operation is not None else None
        return migration.source if migration is not None else self.migrated_from

    @property
    def settled_in_layout(self) -> dict[int, dict[str, int]]:
        """What was settled, sorted, as long as its segment is in the layout."""
        kept = self.layout.segments if self.layout else {}
        return {
            segment_id: dict(sorted(producers.items()))
            for segment_id, producers in sorted(self.settled.items())
            if segment_id in kept
        }

    def finished(self, action: Action) -> TopicState:
        """This state with the journal closed and `action` in the history."""
        return replace(self, operation=None, actions=(*self.actions, action)[-ACTIONS_KEPT:])

    @property
    def not_discovered(self) -> frozenset[str]:
        """Subscriptions being deleted, which are never discovered again (R16)."""
        return frozenset(
            name for name, state in self.subscriptions.items() if state.phase is SubscriptionPhase.DELETING
        )


_OWNED = (
    "layout",
    "operation",
    "deleting",
    "subscriptions",
    "actions",
    "incarnation",
    "settled",
    "clocks",
    "migratedFrom",
)


def read_state(status: Mapping[str, Any]) -> TopicState:
    """Read a status. Raises LayoutError for a record that breaks an invariant; nothing may act on it then."""
    operation = status.get("operation")
    layout = status.get("layout")
    return TopicState(
        layout=from_record(layout) if layout else None,
        operation=Operation.from_json(operation) if operation else None,
        deleting=tuple(DeletingSegment.from_json(entry) for entry in status.get("deleting", ())),
        subscriptions={entry["name"]: SubscriptionState.from_json(entry) for entry in status.get("subscriptions", ())},
        actions=tuple(Action.from_json(entry) for entry in status.get("actions", ())),
        incarnation=status.get("incarnation", ""),
        settled={
            entry["segment"]: {producer["name"]: producer["sequenceId"] for producer in entry["producers"]}
            for entry in status.get("settled", ())
        },
        clocks=Clocks.from_json(status.get("clocks") or {}),
        migrated_from=MigratedFrom.from_json(status["migratedFrom"]) if status.get("migratedFrom") else None,
    )


def write_state(status: Mapping[str, Any], state: TopicState) -> dict[str, Any]:
    """The status with the operations' fields as in `state` and all others untouched (hazard A1-26008)."""
    result = {key: value for key, value in status.items() if key not in _OWNED}
    if state.layout is not None:
        result["layout"] = to_record(state.layout)
    if state.operation is not None:
        result["operation"] = state.operation.to_json()
    if state.deleting:
        result["deleting"] = [entry.to_json() for entry in state.deleting]
    if state.subscriptions:
        result["subscriptions"] = [entry.to_json() for _, entry in sorted(state.subscriptions.items())]
    if state.actions:
        result["actions"] = [action.to_json() for action in state.actions]
    if state.incarnation:
        result["incarnation"] = state.incarnation
    if settled := state.settled_in_layout:
        result["settled"] = [
            {"segment": segment_id, "producers": [{"name": name, "sequenceId": last} for name, last in found.items()]}
            for segment_id, found in settled.items()
        ]
    if clocks := state.clocks.to_json():
        result["clocks"] = clocks
    if state.migrated_from is not None:
        result["migratedFrom"] = state.migrated_from.to_json()
    return result


def operation_segments(operation: Operation | None) -> Sequence[int]:
    """Ids of the segments an open operation is making."""
    return tuple(child.segment_id for child in operation.children) if operation else ()
