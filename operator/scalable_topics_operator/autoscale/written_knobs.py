"""Knobs as people write them, `50Mi`, `10k`, `5m` or plain whole numbers, and what they mean exactly. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.autoscale.policy import KNOBS, Knob, Knobs, Unit

QUANTITY = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$"
"""Form of a rate or size."""
DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"
"""Form of a duration."""

_FACTORS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_quantity(value: int | str) -> float:
    """A rate or size as a number: `10k` is 10,000, `50Mi` is 52,428,800. Raises ValueError otherwise."""
    if isinstance(value, int):
        return float(value)
    if not re.fullmatch(QUANTITY, value):
        raise ValueError(f"{value!r} is not an amount such as 500, 10k or 50Mi")
    number = value.rstrip("kKMGTi")
    return float(number) * _FACTORS[value[len(number) :]]


def parse_duration_seconds(value: int | str) -> float:
    """A duration in seconds: `1h30m` is 5,400, `90` is 90. Raises ValueError otherwise."""
    if isinstance(value, int):
        return float(value)
    if not re.fullmatch(DURATION, value):
        raise ValueError(f"{value!r} is not a duration such as 90s, 5m or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h|d)", value))


def read_written(written: Mapping[str, Any]) -> Knobs:
    """The knobs that are set, by path, in exact units.

    Args:
        written: as in a manifest, with groups such as `split` as mappings of their own; None is not set.

    Raises ValueError, whose message begins with the path of the knob it is about.
    """
    found: dict[str, Knob] = {}
    for entry in KNOBS:
        value: Any = written
        for step in entry.path.split("."):
            value = value.get(step) if value is not None else None
        if value is None:
            continue
        try:
            found[entry.path] = _exactly(value, entry.unit)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{entry.path}: {error}") from error
    return found


def _exactly(value: Any, unit: Unit) -> Knob:
    if unit is Unit.SWITCH:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is neither true nor false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, int) and value < 0):
        raise ValueError(f"{value!r} is no whole number and no text of an amount")
    if unit is Unit.COUNT:
        return int(value)
    return parse_duration_seconds(value) if unit is Unit.SECONDS else parse_quantity(value)
