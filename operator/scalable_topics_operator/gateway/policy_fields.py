"""Overrides of the auto-scale policy as brokers' REST has them (pip-483), and the same in a manifest. Pure.

Brokers have one flat object whose fields are named after their settings; knobs that they do not have follow the same
rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.autoscale.policy import KNOBS, Knobs, Unit, exact

_PREFIX = "scalableTopic"
_OTHERWISE = {
    "enabled": "enabled",
    "depthRecovery": "depthRecovery",
    "split.maxFanout": "splitMaxFanout",
    "rebucket.downWindow": "rebucketDownWindow",
    "rebucket.drainFanOut": "rebucketDrainFanOut",
}
_DECIMALS = 3
MOST = 10**15
"""Largest amount: what fits into the form of an amount in a manifest."""


class InvalidField(ValueError):
    """A field of an override is unknown or has no proper value; the message says which."""


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One field.

    Args:
        name: in brokers' JSON.
        path: of the knob in a manifest.
        unit: of its value.
    """

    name: str
    path: str
    unit: Unit

    @property
    def whole(self) -> bool:
        """Whether only whole numbers will do."""
        return self.unit is Unit.COUNT


def _field_name(path: str, broker: str, unit: Unit) -> str:
    bare = broker.removeprefix(_PREFIX)
    name = _OTHERWISE.get(path) or bare[:1].lower() + bare[1:]
    return f"{name}Seconds" if unit is Unit.SECONDS else name


POLICY_FIELDS: tuple[PolicyField, ...] = tuple(
    PolicyField(_field_name(entry.path, entry.broker, entry.unit), entry.path, entry.unit) for entry in KNOBS
)
"""All fields, in the order people see them."""

_BY_NAME = {field.name: field for field in POLICY_FIELDS}


def knobs_of_override(override: Mapping[str, Any]) -> Knobs:
    """The knobs an override sets, by path, in exact units; null is the same as not set. Raises InvalidField."""
    found: dict[str, Any] = {}
    for name, value in override.items():
        field = _BY_NAME.get(name)
        if field is None:
            raise InvalidField(f"there is no field {name!r}; there are {', '.join(_BY_NAME)}")
        if value is not None:
            found[field.path] = _checked(field, value)
    return found


def override_of_knobs(knobs: Knobs) -> dict[str, Any]:
    """The override that sets these knobs."""
    return {field.name: exact(knobs[field.path]) for field in POLICY_FIELDS if field.path in knobs}


def manifest_of_knobs(knobs: Knobs) -> dict[str, Any]:
    """The knobs as the spec of a SegmentAutoScalePolicy writes them, with groups as objects of their own."""
    spec: dict[str, Any] = {}
    for field in POLICY_FIELDS:
        if field.path not in knobs:
            continue
        group, _, last = field.path.rpartition(".")
        place = spec.setdefault(group, {}) if group else spec
        place[last] = _written(field, knobs[field.path])
    return spec


def _checked(field: PolicyField, value: Any) -> bool | int | float:
    if field.unit is Unit.SWITCH:
        if not isinstance(value, bool):
            raise InvalidField(f"{field.name} is neither true nor false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidField(f"{field.name} is no number")
    if field.whole and value != int(value):
        raise InvalidField(f"{field.name} is no whole number")
    if not 0 <= value <= MOST:
        raise InvalidField(f"{field.name} is not between 0 and {MOST}")
    # No finer than an amount is written.
    return int(value) if field.whole else round(float(value), _DECIMALS)


def _written(field: PolicyField, value: bool | int | float) -> bool | int | str:
    shown = exact(value)
    if not isinstance(shown, float):
        return shown
    if field.unit is Unit.SECONDS:
        return f"{round(shown * 1000)}ms"
    return f"{shown:.{_DECIMALS}f}".rstrip("0").rstrip(".")
