"""What operations remember of a scalable topic: the layout, the journal and what is still to be tidied.

Pure: `TopicState` reads and writes the fields of a ScalableTopic's status that operations own. One commit of
it is one compare-and-swap write, so whatever must be true together stands in here together (R8, R9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scalable_topics.layout import (
    LayoutArgumentError,
    LayoutError,
    SegmentLayout,
    TopicName,
    from_record,
    synthetic_layout,
    to_record,
)
from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.journal import Action, Operation
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.pruned_segment import PrunedSegment
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState

ACTIONS_KEPT = 20


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
        pruned: segments that brokers who own the layout have pruned, oldest first; a bounded history.
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
    pruned: tuple[PrunedSegment, ...] = ()

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
    "pruned",
)


def read_state(status: Mapping[str, Any]) -> TopicState:
    """Read a status.

    Raises LayoutError for a record that breaks an invariant or is of another form: nothing may act on it then.
    """
    try:
        return _read(status)
    except LayoutError:
        raise
    except MALFORMED as error:
        raise LayoutArgumentError(f"the record is of another form: {error!r}") from None


def _read(status: Mapping[str, Any]) -> TopicState:
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
        pruned=tuple(PrunedSegment.from_json(entry) for entry in status.get("pruned", ())),
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
    if state.pruned:
        result["pruned"] = [entry.to_json() for entry in state.pruned]
    return result
