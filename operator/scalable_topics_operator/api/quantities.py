"""Amounts as people write them in manifests: `50Mi`, `10k`, `5m`, or plain whole numbers."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from scalable_topics_operator.api.schema_extra import SchemaExtra, rule, rules

_QUANTITY = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$"
_DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"
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
_INT_OR_STRING = {"x-kubernetes-int-or-string": True}

QuantityText = Annotated[str, Field(max_length=20, pattern=_QUANTITY)]
DurationText = Annotated[str, Field(max_length=40, pattern=_DURATION)]
Quantity = Annotated[Annotated[int, Field(ge=0, strict=True)] | QuantityText, SchemaExtra(_INT_OR_STRING)]
Duration = Annotated[Annotated[int, Field(ge=0, strict=True)] | DurationText, SchemaExtra(_INT_OR_STRING)]
PositiveQuantity = Annotated[
    Quantity,
    SchemaExtra(rules(rule("quantity(string(self)).isGreaterThan(quantity('0'))", "must be greater than 0"))),
]


def parse_quantity(value: int | str) -> float:
    """A rate or size as a number: `10k` is 10,000, `50Mi` is 52,428,800. Raises ValueError otherwise."""
    if isinstance(value, int):
        return float(value)
    if not re.fullmatch(_QUANTITY, value):
        raise ValueError(f"{value!r} is not an amount such as 500, 10k or 50Mi")
    number = value.rstrip("kKMGTi")
    return float(number) * _FACTORS[value[len(number) :]]


def parse_duration_seconds(value: int | str) -> float:
    """A duration in seconds: `1h30m` is 5,400, `90` is 90. Raises ValueError otherwise."""
    if isinstance(value, int):
        return float(value)
    if not re.fullmatch(_DURATION, value):
        raise ValueError(f"{value!r} is not a duration such as 90s, 5m or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h|d)", value))
