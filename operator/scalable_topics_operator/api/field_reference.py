"""The field reference: one Markdown page a kind, from its custom resource definition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_BOUNDS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "length at least {}"),
    ("maxLength", "length at most {}"),
    ("minItems", "number at least {}"),
    ("maxItems", "number at most {}"),
    ("maxProperties", "number at most {}"),
)


def reference_page(definition: Mapping[str, Any]) -> str:
    """The page of one kind: every field with type, default, limits and rules."""
    spec = definition["spec"]
    version = spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    lines = [
        f"# {spec['names']['kind']}",
        "",
        schema["description"],
        "",
        f"`apiVersion: {spec['group']}/{version['name']}`, namespaced, short name `{spec['names']['shortNames'][0]}`.",
        "This page is generated from the models; see `kubectl explain` for the same text.",
    ]
    for part in ("spec", "status"):
        part_schema = schema["properties"][part]
        lines += ["", f"## {part}", "", part_schema["description"]]
        lines += _rules(part_schema)
        lines += ["", "| field | type | default | meaning |", "|---|---|---|---|"]
        lines += [_row(path, field, required) for path, field, required in _fields(part_schema, "")]
    return "\n".join(lines) + "\n"


def _fields(schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path, field, name in required
        yield from _fields(field, f"{path}.")
        yield from _fields(field.get("items", {}), f"{path}[].")


def _row(path: str, field: Mapping[str, Any], required: bool) -> str:
    default = field.get("default")
    shown = "**required**" if required else "" if default in (None, {}, []) else f"`{json.dumps(default)}`"
    sentences = [field.get("description", "").replace("\n\n", " "), *_limits(field)]
    if "items" in field and "properties" not in field["items"]:
        sentences += [f"Each: {limit}" for limit in _limits(field["items"])]
    text = " ".join(sentence for sentence in sentences if sentence)
    return f"| `{path}` | {_type(field)} | {shown} | {_escape(text)} |"


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}"
    return "time" if field.get("format") == "date-time" else str(field["type"])


def _limits(field: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in field:
        yield f"One of {', '.join(f'`{value}`' for value in field['enum'])}."
    bounds = [text.format(field[key]) for key, text in _BOUNDS if key in field]
    if bounds:
        yield f"{', '.join(bounds).capitalize()}."
    if "pattern" in field:
        yield f"Matches `{field['pattern']}`."
    for entry in field.get("x-kubernetes-validations", ()):
        yield f"Rule: {entry['message']}."


def _rules(schema: Mapping[str, Any]) -> list[str]:
    entries = schema.get("x-kubernetes-validations", ())
    return ["", "Rules:", "", *(f"- {entry['message']}" for entry in entries)] if entries else []


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
