"""Amounts as people write them in manifests: `50Mi`, `10k`, `5m`, or plain whole numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scalable_topics_operator.api.schema_extra import SchemaExtra, rule, rules
from scalable_topics_operator.autoscale.written_knobs import DURATION, QUANTITY

_INT_OR_STRING = {"x-kubernetes-int-or-string": True}

QuantityText = Annotated[str, Field(max_length=20, pattern=QUANTITY)]
DurationText = Annotated[str, Field(max_length=40, pattern=DURATION)]
Quantity = Annotated[Annotated[int, Field(ge=0, strict=True)] | QuantityText, SchemaExtra(_INT_OR_STRING)]
Duration = Annotated[Annotated[int, Field(ge=0, strict=True)] | DurationText, SchemaExtra(_INT_OR_STRING)]
PositiveQuantity = Annotated[
    Quantity,
    SchemaExtra(rules(rule("quantity(string(self)).isGreaterThan(quantity('0'))", "must be greater than 0"))),
]
