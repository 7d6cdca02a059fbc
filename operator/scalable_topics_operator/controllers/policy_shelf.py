"""The policies of one namespace, filed so that those for a topic are found without looking at all of them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.parsed_policy import TOPICS_BY_LABEL, ParsedPolicy, Subject

Group = tuple[ParsedPolicy, ...]
"""Policies that apply together, widest first; of one scope the one that wins comes last."""

_Label = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Shelf:
    """The policies of a namespace that can be applied. Two are the same only if they are one object.

    Args:
        policies: all of them, in the order of a group.
        by_connection: those of the scopes Cluster and PulsarNamespace.
        by_label: those of the scope Topics, by one of the labels they ask for; under None those that ask for none.
        by_name: those of the scope Topic, by the name of the topic.
    """

    policies: Group
    by_connection: Mapping[ObjectKey, list[ParsedPolicy]]
    by_label: Mapping[_Label | None, list[ParsedPolicy]]
    by_name: Mapping[str, list[ParsedPolicy]]

    def wide_for(self, subject: Subject) -> Group:
        """Those of the scopes Cluster and PulsarNamespace that apply to a topic."""
        return tuple(policy for policy in self.by_connection.get(subject.connection, ()) if policy.applies_to(subject))

    def narrow_for(self, subject: Subject) -> Group:
        """Those of the scopes Topics and Topic that apply to a topic."""
        labels: Iterable[_Label | None] = (None, *subject.labels.items())
        found = [policy for label in labels for policy in self.by_label.get(label, ())]
        found += self.by_name.get(subject.name, ())
        return _in_order(policy for policy in found if policy.applies_to(subject))


def make_shelf(policies: Iterable[ParsedPolicy]) -> Shelf:
    """File policies, in whatever order they come."""
    ordered = _in_order(policies)
    by_connection: defaultdict[ObjectKey, list[ParsedPolicy]] = defaultdict(list)
    by_label: defaultdict[_Label | None, list[ParsedPolicy]] = defaultdict(list)
    by_name: defaultdict[str, list[ParsedPolicy]] = defaultdict(list)
    for policy in ordered:
        if policy.topic is not None:
            by_name[policy.topic].append(policy)
        elif policy.scope == TOPICS_BY_LABEL:
            wanted = (policy.selector.match_labels if policy.selector is not None else None) or {}
            by_label[min(wanted.items(), default=None)].append(policy)
        elif policy.connection is not None:
            by_connection[policy.connection].append(policy)
    return Shelf(ordered, dict(by_connection), dict(by_label), dict(by_name))


def _in_order(policies: Iterable[ParsedPolicy]) -> Group:
    oldest_last = sorted(policies, key=lambda policy: policy.created, reverse=True)
    return tuple(sorted(oldest_last, key=lambda policy: policy.width))
