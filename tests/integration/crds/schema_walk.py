"""What the manifests in `crds/` demand, and paths into schemas and manifests."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LIMITS = (
    "enum",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing a schema demands: a bound, a pattern, a rule, a field that must be there.

    Args:
        kind: the kind.
        path: dotted path of the field; `[]` stands for entries of a list, `*` for values of a map.
        keyword: schema keyword, `rule` for CEL, `unique` for sets and list-maps.
        limit: its value, as text; the message of a CEL rule.
    """

    kind: str
    path: str
    keyword: str
    limit: str


def demands(kind: str, schema: Mapping[str, Any], path: str = "") -> Iterator[Demand]:
    """Everything a schema demands, its types apart."""
    for keyword in _LIMITS:
        if keyword in schema:
            yield Demand(kind, path, keyword, str(schema[keyword]))
    for entry in schema.get("x-kubernetes-validations", ()):
        yield Demand(kind, path, "rule", entry.get("message", ""))
    list_type = schema.get("x-kubernetes-list-type")
    if list_type in ("set", "map"):
        yield Demand(kind, path, "unique", ",".join(schema.get("x-kubernetes-list-map-keys", ())))
    for name in schema.get("required", ()):
        yield Demand(kind, f"{path}.{name}".lstrip("."), "required", "")
    for step, inner in children(schema):
        yield from demands(kind, inner, join(path, step))


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Steps from a schema to those below it."""
    yield from schema.get("properties", {}).items()
    if "items" in schema:
        yield "[]", schema["items"]
    if "additionalProperties" in schema:
        yield "*", schema["additionalProperties"]


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of all fields, entries of lists and values of maps."""
    for step, inner in children(schema):
        yield join(path, step)
        yield from fields(inner, join(path, step))


def join(path: str, step: str) -> str:
    """One step further down a path."""
    return f"{path}{step}" if step == "[]" else f"{path}.{step}".lstrip(".")


def steps(path: str) -> list[str]:
    """The steps of a path: `spec.a[].b` has four."""
    return [step for step in re.split(r"\.|(?=\[\])", path) if step]


def resolve(body: Any, path: str) -> list[tuple[Any, Any]]:
    """The containers on a path, each with the key that leads on: the first entry for `[]`, the first value for `*`.

    The last key may lead nowhere. Raises LookupError when the body ends before that.
    """
    trail: list[tuple[Any, Any]] = []
    for step in steps(path):
        if trail:
            container, key = trail[-1]
            body = container[key]
        if step == "[]":
            trail.append((body, 0))
        elif step == "*":
            trail.append((body, min(body)))
        else:
            trail.append((body, step))
    return trail


def holds(body: Any, path: str) -> bool:
    """Whether a manifest has something at a path."""
    try:
        container, key = resolve(body, path)[-1]
        container[key]
    except LookupError:
        return False
    return True


def replaced(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a manifest with another value at a path."""
    body = copy.deepcopy(body)
    container, key = resolve(body, path)[-1]
    container[key] = value
    return body


def removed(body: dict[str, Any], path: str) -> dict[str, Any]:
    """A copy of a manifest without what is at a path."""
    body = copy.deepcopy(body)
    container, key = resolve(body, path)[-1]
    del container[key]
    return body


def shown(body: Any, path: str) -> str:
    """A path as the API server writes it: `spec.subscriptions[0].name`, `spec.properties.owner`."""
    text = ""
    for (_, key), step in zip(resolve(body, path), steps(path), strict=True):
        text += f"[{key}]" if step == "[]" else f".{key}"
    return text.lstrip(".")
