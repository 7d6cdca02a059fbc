"""Reading a JSON text of very many values without having all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any

from scalable_topics.layout.json_fields import may_hold_halves, parse_json

Keys = tuple[str, ...]

_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


def each_member(text: str, depth: int) -> Iterator[tuple[Keys, Any]]:
    """The values that a JSON text of objects within objects holds at a depth, one after the other, with their keys.

    As `parse_json` would have them, which takes some ten times the memory of the text for all of them together. What
    is no object further up is left out.

    Args:
        text: begins with an object.
        depth: how many keys lead to a value; at least 1.

    Raises ValueError for what is no JSON object, or is nested without end; what came before has been told by then.
    """
    try:
        if may_hold_halves(text):
            parse_json(text)
        at = _space(text, 0)
        if not text.startswith("{", at):
            raise ValueError("it is no JSON object")
        end = yield from _walk(text, at, (), depth)
        if _space(text, end) != len(text):
            raise ValueError("there is more behind its end")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _walk(text: str, at: int, keys: Keys, depth: int) -> Generator[tuple[Keys, Any], None, int]:
    """Of the value that begins at a place; returns where it ends."""
    if len(keys) == depth or not text.startswith("{", at):
        value, at = _decode(text, at)
        if len(keys) == depth:
            yield keys, value
        return at
    at = _space(text, at + 1)
    if text.startswith("}", at):
        return at + 1
    while True:
        key, at = _decode(text, at)
        at = _space(text, at)
        if not isinstance(key, str) or not text.startswith(":", at):
            raise ValueError(f"a key and a colon are missing before character {at}")
        at = yield from _walk(text, _space(text, at + 1), (*keys, key), depth)
        at = _space(text, at)
        if text.startswith("}", at):
            return at + 1
        if not text.startswith(",", at):
            raise ValueError(f"a comma is missing before character {at}")
        at = _space(text, at + 1)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
