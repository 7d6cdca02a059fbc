"""Kubernetes label selectors. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from scalable_topics_operator.api.auto_scale_policy import LabelRequirement, LabelSelector


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether labels fulfil all that a selector asks for; an empty selector takes all."""
    wanted = selector.match_labels or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _fulfils(requirement, labels) for requirement in selector.match_expressions
    )


def _fulfils(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            # As Kubernetes has it: what lacks the label is not in the values either.
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
