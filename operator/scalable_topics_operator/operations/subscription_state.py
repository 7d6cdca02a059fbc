"""What operations remember of a subscription: where its cursors stand (R16, R18, R32). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scalable_topics.layout import Part
from scalable_topics_operator.operations.bucket_positions import from_positions_json, to_positions_json
from scalable_topics_operator.operations.protocols import MessagePosition


class SubscriptionPhase(StrEnum):
    """Where a subscription stands."""

    CREATING = "Creating"
    ACTIVE = "Active"
    DELETING = "Deleting"
    CURSOR_LOST = "CursorLost"


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """A declared or requested subscription as far as its cursors are made, kept or being deleted (R16).

    Args:
        name: of the subscription.
        phase: where it stands.
        latest: it started at the latest message.
        delete_with_entry: its cursors are deleted when it is declared no more.
        out_of_scope: segments that were sealed before it started at the latest message (R18).
        requested: somebody asked for it to be made, or to be deleted, besides what is declared (R32).
        forced: it is deleted although consumers are attached.
        ordered: brokers that own the layout are to give each of its segments to one consumer (Native).
        floors: the last message of entry buckets that a restored checkpoint group has received beyond where the cursors
            of their segments were moved (R22).
    """

    name: str
    phase: SubscriptionPhase
    latest: bool
    delete_with_entry: bool
    out_of_scope: tuple[int, ...] = ()
    requested: bool = False
    forced: bool = False
    ordered: bool = False
    floors: Mapping[Part, MessagePosition] = field(default_factory=dict)

    @property
    def is_kept(self) -> bool:
        """Whether it counts as declared, because somebody asked for it."""
        return self.requested and self.phase is not SubscriptionPhase.DELETING

    def to_json(self) -> dict[str, Any]:
        """The form in `status.subscriptions`."""
        data: dict[str, Any] = {
            "name": self.name,
            "phase": self.phase.value,
            "initialPosition": "Latest" if self.latest else "Earliest",
            "deletionPolicy": "Delete" if self.delete_with_entry else "Retain",
        }
        if self.out_of_scope:
            data["outOfScope"] = list(self.out_of_scope)
        if self.requested:
            data["requested"] = True
        if self.forced:
            data["forced"] = True
        if self.ordered:
            data["ordered"] = True
        if self.floors:
            data["floors"] = to_positions_json(self.floors)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SubscriptionState:
        """Read the form in `status.subscriptions`. Raises KeyError or ValueError for a broken one."""
        return cls(
            data["name"],
            SubscriptionPhase(data["phase"]),
            data.get("initialPosition") == "Latest",
            data.get("deletionPolicy") == "Delete",
            tuple(data.get("outOfScope", ())),
            data.get("requested", False),
            data.get("forced", False),
            data.get("ordered", False),
            from_positions_json(data.get("floors", ())),
        )
