"""A ScalableTopicSubscription's status: the record of its consumers, and how it stands (R21). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scalable_topics.layout import Part, SegmentLayout, to_buckets_json, whole_of
from scalable_topics_operator.assignment.group import Group, Member, Version
from scalable_topics_operator.assignment.parts_json import from_parts_json, to_parts_json
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.controllers.conditions import Standing, apply_standing
from scalable_topics_operator.controllers.topic_backend import is_native
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import TopicState, read_state


class Phase(StrEnum):
    """Where an ordered subscription stands."""

    PENDING = "Pending"
    ACTIVE = "Active"
    SEEKING = "Seeking"
    DELETING = "Deleting"
    CURSOR_LOST = "CursorLost"


@dataclass(frozen=True, slots=True)
class Situation:
    """What a subscription finds, as its topic's status tells it.

    Args:
        phase: where it stands.
        standing: the same for people.
        layout: of the topic; None while there is none, and where the brokers own it: they tell consumers what to read.
        out_of_scope: ids of segments that it never reads (R18).
        floors: up to where entry buckets are not to be delivered again (R22).
    """

    phase: Phase
    standing: Standing
    layout: SegmentLayout | None = None
    out_of_scope: frozenset[int] = frozenset()
    floors: Mapping[Part, MessagePosition] = field(default_factory=dict)


def situation_of(topic: str, body: Body | None, subscription: str) -> Situation:
    """How a subscription stands.

    Args:
        topic: namespace and name of its ScalableTopic.
        body: that object; None if there is none.
        subscription: its name.

    Raises LayoutError, KeyError or ValueError for a topic whose record is broken: nothing acts on it.
    """
    if body is None:
        why = f"there is no ScalableTopic {topic}; create it, or delete this object"
        return Situation(Phase.PENDING, Standing.stuck("TopicMissing", why))
    state = read_state(body.get("status") or {})
    entry = state.subscriptions.get(subscription)
    if state.layout is None:
        return Situation(Phase.PENDING, Standing.working("TopicNotReady", f"ScalableTopic {topic} is not made yet"))
    if entry is None or entry.phase is SubscriptionPhase.CREATING:
        why = f"ScalableTopic {topic} makes the cursors of subscription {subscription}"
        return Situation(Phase.PENDING, Standing.working("CursorsMissing", why), state.layout)
    phase, standing = _stands(state, entry)
    if is_native(body):
        return Situation(phase, standing)
    return Situation(phase, standing, state.layout, frozenset(entry.out_of_scope), entry.floors)


def _stands(state: TopicState, entry: SubscriptionState) -> tuple[Phase, Standing]:
    if entry.phase is SubscriptionPhase.DELETING:
        return Phase.DELETING, Standing.working("Deleting", f"the cursors of subscription {entry.name} are deleted")
    if entry.phase is SubscriptionPhase.CURSOR_LOST:
        why = f"subscription {entry.name} lost its cursor on some segments; nothing is assigned anew until it is remade"
        return Phase.CURSOR_LOST, Standing.stuck("CursorLost", why)
    operation = state.operation
    if operation is not None and operation.moves_cursors and entry.name in operation.subscriptions:
        return Phase.SEEKING, Standing.working("Seeking", "consumers let go of everything, then the cursors are moved")
    return Phase.ACTIVE, Standing.healthy()


def read_group(status: Mapping[str, Any]) -> Group:
    """The record of the consumers. Raises KeyError, TypeError or ValueError for a broken one."""
    version = status.get("version") or {}
    members = (
        Member(
            entry["name"],
            entry["incarnation"],
            entry["registeredAt"],
            from_parts_json(entry.get("assignments", ())),
            frozenset(Part(int(one)) for one in entry.get("releasing", ()))
            | from_parts_json(entry.get("releasingBuckets", ())),
            bool(entry.get("sharesSegments", False)),
        )
        for entry in status.get("consumers", ())
    )
    return Group(
        members={member.name: member for member in members},
        drained=frozenset(int(one) for one in status.get("drained", ())),
        version=Version(version.get("term", 0), version.get("epoch", 0), version.get("counter", 0)),
    )


def write_group(
    before: Mapping[str, Any], group: Group, phase: Phase, standing: Standing, *, term: int, generation: int, now: str
) -> dict[str, Any]:
    """The status with the record and the conditions set, and all else untouched.

    Args:
        before: the status as it is.
        group: the consumers.
        phase: where the subscription stands.
        standing: the same for people.
        term: leadership term; written with everything else, so that whoever led before knows by any write that it does
            not any more, and never for a failover alone (R5, R21).
        generation: of the spec.
        now: RFC 3339.
    """
    status = dict(before)
    status["observedGeneration"] = generation
    status["phase"] = phase.value
    for name, value in (
        ("consumers", [_member_json(group.members[name]) for name in sorted(group.members)]),
        ("drained", sorted(group.drained)),
    ):
        status.pop(name, None)
        if value:
            status[name] = value
    if group.version != read_group(before).version:
        status["version"] = {
            "term": group.version.term,
            "epoch": group.version.epoch,
            "counter": group.version.counter,
        }
    status["conditions"] = apply_standing(status.get("conditions", ()), standing, generation=generation, now=now)
    return status if status == before else {**status, "term": term}


def _member_json(member: Member) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": member.name,
        "incarnation": member.incarnation,
        "registeredAt": member.registered_at,
    }
    if member.shares:
        data["sharesSegments"] = True
    if member.assigned:
        data["assignments"] = to_parts_json(member.assigned)
    for name, value in (
        ("releasing", list(whole_of(member.releasing))),
        ("releasingBuckets", to_buckets_json(member.releasing)),
    ):
        if value:
            data[name] = value
    return data
