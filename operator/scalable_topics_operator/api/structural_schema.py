"""Structural OpenAPI schemas, as custom resource definitions need them, from pydantic models.

Pydantic describes models in JSON Schema 2020-12; the API server takes a subset of OpenAPI 3.0 without
references, null types and most combinators. Everything not understood is refused here, not silently lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from scalable_topics_operator.api.schema_extra import merged

Schema = dict[str, Any]

_INT_OR_STRING = "x-kubernetes-int-or-string"
_COPIED = (
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    _INT_OR_STRING,
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)
_REPLACED = {
    "$defs",
    "$ref",
    "title",
    "anyOf",
    "const",
    "default",
    "description",
    "items",
    "properties",
    "required",
}
_REFERENCE = r"(?:R\d+|hazard [A-Z]\d+|DESIGN §\d+)"
_RULE_REFERENCES = re.compile(rf" \({_REFERENCE}(?:, {_REFERENCE})*\)")
_KNOWN = {*_COPIED, *_REPLACED, "additionalProperties"}


class UnsupportedSchema(Exception):
    """A model uses something that structural schemas have no words for."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of a model.

    Args:
        model: a pydantic model; docstrings become descriptions, `x-kubernetes-*` extras are kept.

    Raises UnsupportedSchema naming the place of what cannot be said.
    """
    schema = model.model_json_schema(by_alias=True)
    return _convert(schema, schema.get("$defs", {}), model.__name__)


def _convert(node: Mapping[str, Any], definitions: Mapping[str, Any], place: str) -> Schema:
    node = _resolved(_without_null(_resolved(node, definitions, place), place), definitions, place)
    unknown = sorted(set(node) - _KNOWN)
    if unknown:
        raise UnsupportedSchema(f"{place}: {', '.join(unknown)}")

    result: Schema = {}
    if "description" in node:
        result["description"] = _text(node["description"])
    result.update({key: node[key] for key in _COPIED if key in node})
    if "const" in node:
        result["enum"] = [node["const"]]
    if "anyOf" in node:
        if not node.get(_INT_OR_STRING):
            raise UnsupportedSchema(f"{place}: a union of several types")
        result.update(_int_or_string(node["anyOf"], place))
    if "items" in node:
        result["items"] = _convert(node["items"], definitions, f"{place}[]")
    if "properties" in node:
        result["properties"] = {
            name: _convert(value, definitions, f"{place}.{name}") for name, value in node["properties"].items()
        }
    if isinstance(node.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _convert(node["additionalProperties"], definitions, f"{place}.*")
    if node.get("required"):
        result["required"] = sorted(node["required"])
    default = _least_default(node.get("default"), result)
    if _says_something(default, result):
        result["default"] = default
    if "type" not in result and _INT_OR_STRING not in result:
        raise UnsupportedSchema(f"{place}: no type")
    return result


def _resolved(node: Mapping[str, Any], definitions: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """The node with its reference replaced by what it refers to; the node's own keywords win."""
    while "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name not in definitions:
            raise UnsupportedSchema(f"{place}: unknown reference {node['$ref']}")
        node = merged(definitions[name], {key: value for key, value in node.items() if key != "$ref"})
    return node


def _without_null(node: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """The node without the null in `X | None`: absent fields say that to the API server."""
    members = node.get("anyOf")
    if not members or {"type": "null"} not in members:
        return node
    kept = [member for member in members if member != {"type": "null"}]
    if len(kept) != 1:
        raise UnsupportedSchema(f"{place}: a union of several types; annotate it as one type before adding None")
    return merged(kept[0], {key: value for key, value in node.items() if key != "anyOf"})


def _int_or_string(members: list[Mapping[str, Any]], place: str) -> Schema:
    """Keywords of the number and of the text; each binds only values of its own type."""
    if [member.get("type") for member in members] != ["integer", "string"]:
        raise UnsupportedSchema(f"{place}: an int-or-string that is not made of an integer and a string")
    result: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    for member in members:
        result.update({key: value for key, value in member.items() if key in _COPIED and key != "type"})
    return result


def _least_default(default: Any, schema: Schema) -> Any:
    """The default without what the API server fills in from the schemas below it."""
    if not isinstance(default, Mapping):
        return default
    result = {}
    for key, value in default.items():
        inner = schema.get("properties", {}).get(key, {})
        least = _least_default(value, inner)
        if least != inner.get("default") and _says_something(least, inner):
            result[key] = least
    return result


def _says_something(default: Any, schema: Schema) -> bool:
    """Whether a default must be written. An empty list or map reads the same as an absent one, except where
    the API server has to see an object to fill in what is below it.
    """
    if default is None or default == []:
        return False
    if default == {}:
        return any("default" in value for value in schema.get("properties", {}).values())
    return True


def _text(description: str) -> str:
    """Paragraphs, each on one line, without the references to rules that only developers know."""
    description = _RULE_REFERENCES.sub("", description)
    return "\n\n".join(" ".join(part.split()) for part in description.split("\n\n"))
