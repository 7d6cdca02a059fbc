"""What a policy comes to on the topics it applies to, and where another of the same scope disagrees. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.autoscale.policy import EffectivePolicy, Knob, knob_list, knob_text
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.parsed_policy import policy_name
from scalable_topics_operator.controllers.policy_shelf import Group

_CONFLICTS_TOLD = 5


@dataclass(frozen=True, slots=True, order=True)
class Conflict:
    """A knob that two policies of the same scope set to different values for the same topics.

    Args:
        other: name of the other policy.
        knob: path of the knob.
        others_value: what the other policy says.
        own_value: what this one says.
        winner: name of the policy that these topics get the knob from, the oldest of all that set it.
    """

    other: str
    knob: str
    others_value: Knob
    own_value: Knob
    winner: str

    def __str__(self) -> str:
        others_value, own_value = knob_text(self.others_value), knob_text(self.own_value)
        return (
            f"{self.other} sets {self.knob} to {others_value} and this one to {own_value}: "
            f"{self.winner} is the oldest and wins"
        )


def conflicts_of(key: ObjectKey, groups: Mapping[Group, int]) -> Mapping[Conflict, int]:
    """Where other policies of its scope disagree with a policy, and on how many topics.

    Args:
        key: the policy.
        groups: policies that apply together, with the number of topics they apply to.
    """
    found: Counter[Conflict] = Counter()
    for group, topics in groups.items():
        own = next(policy for policy in group if policy.key == key)
        peers = [policy for policy in group if policy.scope == own.scope]
        for knob, value in own.level.knobs.items():
            setters = [policy for policy in peers if knob in policy.level.knobs]
            for other in setters:
                others_value = other.level.knobs[knob]
                if others_value != value:
                    winner = policy_name(setters[-1].key)
                    found[Conflict(policy_name(other.key), knob, others_value, value, winner)] += topics
    return found


def told_with_numbers(conflicts: Mapping[Conflict, int]) -> str:
    """Conflicts for people, with the number of topics of each."""
    return _told(f"{conflict} on {_topics(number)}" for conflict, number in sorted(conflicts.items()))


def told(conflicts: Mapping[Conflict, int]) -> str:
    """Conflicts for people, the same however many topics they are about."""
    return _told(map(str, sorted(conflicts)))


def prefixes_of(key: ObjectKey, groups: Iterable[Group]) -> set[Group]:
    """What applies at a policy's level and above it: all of the groups, without what is narrower."""
    found = set()
    for group in groups:
        width = next(policy.width for policy in group if policy.key == key)
        found.add(tuple(policy for policy in group if policy.width <= width))
    return found


def agreed_knobs(outcomes: Iterable[EffectivePolicy]) -> list[dict[str, Any]]:
    """The knobs that come out the same, and from the same policy, in every one of some outcomes, as `knob_list`."""
    first, *others = (knob_list(outcome) for outcome in outcomes)
    return [entry for entry in first if all(entry in other for other in others)]


def first_problem(outcomes: Iterable[EffectivePolicy]) -> str:
    """What contradicts itself in some outcomes; of several the first by its text. Empty if nothing does."""
    return min((outcome.problem for outcome in outcomes if outcome.problem), default="")


def _told(sentences: Iterable[str]) -> str:
    found = list(sentences)
    more = len(found) - _CONFLICTS_TOLD
    return "; ".join([*found[:_CONFLICTS_TOLD], *([f"and {more} more"] if more > 0 else [])])


def _topics(number: int) -> str:
    return "1 topic" if number == 1 else f"{number} topics"
