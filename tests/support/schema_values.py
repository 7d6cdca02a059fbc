"""Values that a structural schema allows and that nobody in their right mind would write."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

_TEXTS = (
    "",
    " ",
    "a",
    "A",
    "0",
    "-1",
    "null",
    "a.b-c",
    "_.-=:",
    "*",
    "*/*",
    "..",
    "../..",
    "a/..",
    "a/b",
    "-/.",
    "\u202e\u0000\u001b[31m\n",
    "🙂" * 40,
    "{{7*7}}${7*7}%s%n{0}",
    "'; --",
    "=1+1",
    "x" * 63,
    "x" * 253,
    "x" * 1024,
    "0s",
    "0ms",
    "0.0000001ms",
    "1h",
    "999999999d",
    "9" * 14 + "d",
    "1d1d1d1d",
    "0000-ffff",
    "ffff-0000",
    "7fff-8000",
    "1Gi",
    "0.1k",
    "9" * 14 + "Ti",
    "1g",
    "999999t",
    "1m",
    "persistent://a/b/c",
    "persistent://=/:/..",
    "topic://a/b/c",
    "s3a://b/x",
    "/",
    "/a/../..",
    "http://169.254.169.254/latest",
    "http://127.0.0.1:1",
    "https://[::1]:99999",
    "pulsar://127.0.0.1:1",
    "h:0",
    "[::]:99999",
    "10.0.0.1:80",
    "A_B,C:D",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "0001-01-01T00:00:00+14:00",
)
_NUMBERS = (0, 1, -1, 2, 255, 65_535, 2**31 - 1, -(2**31), 2**53, 2**63 - 1, -(2**63))


def value_of(rng: random.Random, schema: Schema) -> Any:
    """A value that the schema allows; of texts with a pattern, one that is known to match."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return value_of(rng, {**schema, "type": rng.choice(("integer", "string")), "x-kubernetes-int-or-string": False})
    match schema.get("type"):
        case "object":
            return _object(rng, schema)
        case "array":
            return _list(rng, schema)
        case "integer":
            return _number(rng, schema)
        case "number":
            return float(_number(rng, schema))
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return _text(rng, schema)
        case _:
            return {"x": [None, 1, "a"]}


def varied(rng: random.Random, document: Any, schema: Schema, share: float) -> Any:
    """A document of the schema with some parts replaced, left out and added, as the schema allows.

    Args:
        rng: chooses.
        document: as it should be.
        schema: of it.
        share: how many of the parts are replaced, 0 to 1.
    """
    if rng.random() < share / 4:
        return value_of(rng, schema)
    if isinstance(document, dict):
        return _varied_object(rng, document, schema, share)
    if isinstance(document, list) and "items" in schema:
        found = [varied(rng, one, schema["items"], share) for one in document if rng.random() >= share / 4]
        return _unique(found, schema)
    return value_of(rng, schema) if rng.random() < share else document


def _varied_object(rng: random.Random, document: dict[str, Any], schema: Schema, share: float) -> dict[str, Any]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    required = schema.get("required", ())
    found = {}
    for key, one in document.items():
        inner = properties.get(key, others)
        if key in required or rng.random() >= share / 4:
            found[key] = varied(rng, one, inner, share) if isinstance(inner, Mapping) else one
    for key, inner in properties.items():
        if key not in found and rng.random() < share / 4:
            found[key] = value_of(rng, inner)
    return found


def _object(rng: random.Random, schema: Schema) -> dict[str, Any]:
    found = {
        key: value_of(rng, inner)
        for key, inner in schema.get("properties", {}).items()
        if key in schema.get("required", ()) or rng.random() < 0.4
    }
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        most = min(3, schema.get("maxProperties", 3))
        found |= {_text(rng, {"maxLength": 60}): value_of(rng, others) for _ in range(rng.randint(0, most))}
    return found


def _list(rng: random.Random, schema: Schema) -> list[Any]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", 40)
    count = rng.choice((least, least + 1, min(most, least + 2), min(most, 20)))
    return _unique([value_of(rng, schema["items"]) for _ in range(min(count, most))], schema)


def _unique(items: list[Any], schema: Schema) -> list[Any]:
    """Without what a set, or a map by keys, would have twice."""
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return items
    keys = schema.get("x-kubernetes-list-map-keys", ())
    found = {repr([one.get(key) for key in keys] if kind == "map" else one): one for one in items}
    return list(found.values())


def _number(rng: random.Random, schema: Schema) -> int:
    least, most = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
    allowed = [number for number in (*_NUMBERS, least, most) if least <= number <= most]
    return int(rng.choice(allowed))


def _text(rng: random.Random, schema: Schema) -> str:
    pattern, most = schema.get("pattern"), schema.get("maxLength", 4096)
    least = schema.get("minLength", 0)
    if schema.get("format") == "date-time":
        return rng.choice([text for text in _TEXTS if re.match(r"\d{4}-\d\d-\d\dT", text)])
    allowed = [
        text
        for text in (*_TEXTS, "x" * min(most, 2000))
        if least <= len(text) <= most and (pattern is None or re.search(pattern, text, re.ASCII))
    ]
    return rng.choice(allowed) if allowed else "a" * max(1, least)
