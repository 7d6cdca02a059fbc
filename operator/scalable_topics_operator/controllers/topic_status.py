"""A ScalableTopic's status put together from what operations own and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scalable_topics_operator.controllers.conditions import Aspect, Standing, apply_standing, holds
from scalable_topics_operator.operations.context import TopicIntent, format_timestamp
from scalable_topics_operator.operations.drift import Managed
from scalable_topics_operator.operations.journal import Action, OperationKind
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.topic_state import TopicState, write_state

SELECTOR_LABEL = "scalabletopics.io/segment-of"

_DOING: Mapping[OperationKind, str] = {
    OperationKind.CREATE: "Creating",
    OperationKind.SPLIT: "Splitting",
    OperationKind.MERGE: "Merging",
    OperationKind.REBUCKET: "Rebucketing",
    OperationKind.MIGRATE: "Migrating",
    OperationKind.PRUNE: "Pruning",
    OperationKind.DELETE: "Deleting",
    OperationKind.SEEK: "Seeking",
    OperationKind.SKIP_ALL: "Skipping",
    OperationKind.RESTORE: "Restoring",
}


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a status tells besides the record.

    Args:
        uid: of the object.
        generation: of its spec.
        topic: canonical name.
        backend: kept for the topic's life (R2).
        cluster_id: the Pulsar cluster.
    """

    uid: str
    generation: int
    topic: str
    backend: str
    cluster_id: str


def with_state(before: Mapping[str, Any], state: TopicState, facts: TopicFacts, now: str) -> dict[str, Any]:
    """The status after a commit of `state`: the record, the counts, and conditions that tell of the journal.

    An open journal shows as Reconciling, and a closed one as what it was before; so an operation costs no writes
    besides those of its journal. A topic just made is Ready only once clients can find it (R20), which is later.
    """
    status = write_state(before, state)
    status |= {
        "topic": facts.topic,
        "backend": facts.backend,
        "clusterId": facts.cluster_id,
        "selector": f"{SELECTOR_LABEL}={facts.uid}",
    }
    if state.layout is not None:
        status["segments"] = {"active": len(state.layout.active), "sealed": len(state.layout.sealed)}
    if state.actions:
        status["lastAction"] = describe_action(state.actions[-1])
    if state.operation is not None:
        doing = _DOING[state.operation.kind]
        standing = Standing.working(
            doing, f"{doing.lower()}, step {state.operation.step.value}", ready=holds(before, "Ready")
        )
    elif holds(before, "Ready") and holds(before, "Reconciling"):
        standing = Standing.healthy()
    else:
        return status
    status["conditions"] = apply_standing(status.get("conditions", ()), standing, generation=facts.generation, now=now)
    return status


def with_standing(before: Mapping[str, Any], standing: Standing, *, generation: int, now: str) -> dict[str, Any]:
    """The status with the conditions of a standing, found for `generation`."""
    status = dict(before)
    status["observedGeneration"] = generation
    status["conditions"] = apply_standing(status.get("conditions", ()), standing, generation=generation, now=now)
    return status


def with_managed(before: Mapping[str, Any], managed: Managed) -> dict[str, Any]:
    """The status with what may be set on segments for the spec (hazard C7)."""
    status = dict(before)
    _set_or_drop(status, "managedPolicies", sorted(managed.policies))
    _set_or_drop(
        status,
        "managedPermissions",
        [{"role": role, "actions": sorted(actions)} for role, actions in sorted(managed.permissions.items())],
    )
    return status


def paused_aspect(*, paused: bool) -> Aspect:
    """The condition Paused."""
    message = "spec.paused is true; the operator changes nothing of the topic"
    return Aspect("Paused", True if paused else None, "SpecPaused", message)


def migrated_aspect(source: MigratedFrom | None) -> Aspect:
    """The condition Migrated."""
    if source is None:
        return Aspect("Migrated", None)
    shape = f"a topic of {source.partitions} partitions" if source.partitions else "a topic without partitions"
    return Aspect("Migrated", True, "Migrated", f"it was {shape} until {format_timestamp(source.at_ms)}")


def managed_by(intent: TopicIntent) -> Managed:
    """What a spec has set."""
    policies = intent.policies_for(1)
    return Managed(
        frozenset(field.name for field in fields(policies) if getattr(policies, field.name) is not None),
        intent.permissions,
    )


def recorded_managed(status: Mapping[str, Any]) -> Managed:
    """What the status says was set earlier."""
    return Managed(
        frozenset(status.get("managedPolicies", ())),
        {
            entry["role"]: frozenset(entry.get("actions", ()))
            for entry in status.get("managedPermissions", ())
            if "role" in entry
        },
    )


def spec_changed(body: Mapping[str, Any]) -> bool:
    """Whether an object's spec is another than its status was found for."""
    return bool((body.get("status") or {}).get("observedGeneration") != body["metadata"]["generation"])


def may_prune(status: Mapping[str, Any]) -> bool:
    """Whether a topic has segments that may go, or that are going."""
    return bool((status.get("segments") or {}).get("sealed") or status.get("deleting"))


def cursor_problem(state: TopicState) -> Standing | None:
    """What is to be said of subscriptions that lost a cursor (R17); None if none did."""
    lost = sorted(name for name, entry in state.subscriptions.items() if entry.phase is SubscriptionPhase.CURSOR_LOST)
    if not lost:
        return None
    return Standing.stuck(
        "CursorLost",
        f"subscription {lost[0]} lost its cursor on some segments: somebody deleted it or it expired; remove it from "
        "spec.subscriptions and declare it again to start anew",
    )


def describe_action(action: Action) -> str:
    """A finished operation in a few words, for the column of `kubectl get`."""
    parents = ",".join(str(parent) for parent in action.parents)
    children = ",".join(str(child) for child in action.children)
    change = "→".join(part for part in (parents, children) if part) or action.subscription
    ending = "" if action.result.value == "Succeeded" else f" {action.result.value}"
    return f"{action.kind} {change}{ending}"[:120]


def _set_or_drop(status: dict[str, Any], name: str, value: list[Any]) -> None:
    if value:
        status[name] = value
    else:
        status.pop(name, None)
