"""Annotations that carry what JSON Schema has no words for into the custom resource definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True, eq=False)
class SchemaExtra:
    """Keywords added to the schema of the type it annotates.

    Args:
        keywords: schema keyword to value; `x-kubernetes-validations` is appended to, others replace.
    """

    keywords: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Let pydantic describe the type, then add the keywords."""
        return merged(handler(core_schema), self.keywords)


@dataclass(frozen=True, slots=True, eq=False)
class SchemaOf:
    """The schema of a model for a field that is kept as plain JSON.

    Args:
        model: whose schema it is.
    """

    model: type[BaseModel]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Let pydantic describe the model instead."""
        return handler(self.model.__pydantic_core_schema__)


def merged(schema: Mapping[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with `keywords` added; lists of validation rules are joined."""
    result = {**schema, **keywords}
    if VALIDATIONS in schema and VALIDATIONS in keywords:
        result[VALIDATIONS] = [*schema[VALIDATIONS], *keywords[VALIDATIONS]]
    return result


def rule(expression: str, message: str) -> dict[str, str]:
    """A CEL rule in the form the API server takes, with the words a user sees when it is broken."""
    return {"rule": expression, "message": message}


def rules(*entries: dict[str, str]) -> dict[str, Any]:
    """Schema keywords that carry CEL rules."""
    return {VALIDATIONS: list(entries)}


def list_map(*keys: str) -> SchemaExtra:
    """A list whose entries are told apart by `keys`, each combination at most once."""
    return SchemaExtra({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


LIST_SET = SchemaExtra({"x-kubernetes-list-type": "set"})
LIST_ATOMIC = SchemaExtra({"x-kubernetes-list-type": "atomic"})
DATE_TIME = SchemaExtra({"format": "date-time"})
PRESERVE_UNKNOWN: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
ATOMIC_OBJECT: dict[str, Any] = {"x-kubernetes-map-type": "atomic"}
IMMUTABLE = "self == oldSelf"
