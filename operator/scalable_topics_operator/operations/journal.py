"""The journal: the operation in progress, and the history of finished ones (R8). Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scalable_topics.layout import (
    HashRange,
    Part,
    PlannedSegment,
)
from scalable_topics_operator.operations.bucket_positions import from_positions_json, to_positions_json
from scalable_topics_operator.operations.migrated_from import Migration
from scalable_topics_operator.operations.protocols import MessagePosition


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
    cursors of a subscription has none: it goes forward from wherever it is (R18). At `CALLING` the brokers that own
    the layout are asked to do all of it: their layout tells whether they have (Native).
    """

    CREATING = "Creating"
    ANNOUNCING = "Announcing"
    SEALING = "Sealing"
    ROLLING_BACK = "RollingBack"
    DELETING = "Deleting"
    RELEASING = "Releasing"
    MOVING = "Moving"
    CALLING = "Calling"


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
        positions: behind which message of each segment, or of its buckets, a restore moves them.
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
    positions: Mapping[Part, MessagePosition] = field(default_factory=dict)
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
            data["positions"] = to_positions_json(self.positions)
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
            positions=from_positions_json(data.get("positions", ())),
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


def operation_segments(operation: Operation | None) -> Sequence[int]:
    """Ids of the segments an open operation is making."""
    return tuple(child.segment_id for child in operation.children) if operation else ()
