"""Conditions by the kstatus rules: Ready, Reconciling, Stalled (DESIGN §5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalable_topics.printable import printable

MESSAGE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Standing:
    """How an object stands, as its conditions tell it.

    Args:
        ready: its spec is fully in effect.
        reconciling: the operator is at work on it, or will try again by itself.
        stalled: nothing will change until a person does something.
        reason: one CamelCase word.
        message: for people: what is wrong, where, and what to do.
    """

    ready: bool
    reconciling: bool
    stalled: bool
    reason: str
    message: str

    @classmethod
    def healthy(cls, message: str = "") -> Standing:
        """All is as the spec says."""
        return cls(True, False, False, "Reconciled", message)

    @classmethod
    def working(cls, reason: str, message: str, *, ready: bool = False) -> Standing:
        """Work is under way, or is tried again without anybody's help."""
        return cls(ready, True, False, reason, message)

    @classmethod
    def stuck(cls, reason: str, message: str) -> Standing:
        """A person must act."""
        return cls(False, False, True, reason, message)


def apply_standing(
    conditions: Sequence[Mapping[str, Any]], standing: Standing, *, generation: int, now: str
) -> list[dict[str, Any]]:
    """The conditions with Ready, Reconciling and Stalled as `standing` says and all others kept.

    `lastTransitionTime` moves only when a condition's status changes, so that an unchanged standing is an
    unchanged list (hazard C24).
    """
    message = clean(standing.message)
    wanted = {
        "Ready": (standing.ready, standing.reason, message),
        "Reconciling": (standing.reconciling, standing.reason, message if standing.reconciling else ""),
        "Stalled": (standing.stalled, standing.reason, message if standing.stalled else ""),
    }
    before = {condition["type"]: dict(condition) for condition in conditions}
    for kind, (holds, reason, text) in wanted.items():
        before[kind] = _condition(before.get(kind), kind, holds, reason, text, generation, now)
    return list(before.values())


def set_condition(
    conditions: Sequence[Mapping[str, Any]],
    kind: str,
    holds: bool | None,
    reason: str,
    message: str,
    *,
    generation: int,
    now: str,
) -> list[dict[str, Any]]:
    """The conditions with one more set; `holds` None takes it away."""
    before = {condition["type"]: dict(condition) for condition in conditions}
    if holds is None:
        before.pop(kind, None)
    else:
        before[kind] = _condition(before.get(kind), kind, holds, reason, clean(message), generation, now)
    return list(before.values())


@dataclass(frozen=True, slots=True)
class Aspect:
    """A condition besides Ready and its like.

    Args:
        kind: its type.
        holds: its status; None takes it away.
        reason: one CamelCase word.
        message: for people.
    """

    kind: str
    holds: bool | None
    reason: str = ""
    message: str = ""


def with_aspects(before: Mapping[str, Any], aspects: Iterable[Aspect], *, generation: int, now: str) -> dict[str, Any]:
    """The status with these conditions set or taken away."""
    status = dict(before)
    for aspect in aspects:
        status["conditions"] = set_condition(
            status.get("conditions", ()),
            aspect.kind,
            aspect.holds,
            aspect.reason,
            aspect.message,
            generation=generation,
            now=now,
        )
    return status


def find_condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """One condition of a status; empty when it is not there."""
    for condition in status.get("conditions", ()):
        if condition["type"] == kind:
            found: Mapping[str, Any] = condition
            return found
    return {}


def holds(status: Mapping[str, Any], kind: str) -> bool:
    """Whether a condition is there and True."""
    return find_condition(status, kind).get("status") == "True"


def clean(message: str) -> str:
    """A message short enough and free of control characters (R3)."""
    line = printable(message)
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"


def _condition(
    before: Mapping[str, Any] | None,
    kind: str,
    holds: bool,
    reason: str,
    message: str,
    generation: int,
    now: str,
) -> dict[str, Any]:
    status = "True" if holds else "False"
    same = before is not None and before["status"] == status
    return {
        "type": kind,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if before is not None and same else now,
        "reason": reason,
        "message": message,
    }
