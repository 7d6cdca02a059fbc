"""Reading JSON that others have written: fields of a decoded object, with errors that name the field."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from copy import deepcopy
from enum import StrEnum
from typing import Any, TypeVar

from scalable_topics.layout.errors import LayoutArgumentError

MemberT = TypeVar("MemberT", bound=StrEnum)

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What comes of reading a decoded value as if it had the form it should have: whoever reads so catches these.

Not only wrong types: 1e999 is a JSON number that is no whole one (OverflowError), and what is nested without end cannot
be copied or written (RecursionError).
"""

# Of a pair that makes one character, or alone; a text tells by its escapes where that is to be looked into.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says, whoever has written it. Raises ValueError for what is no JSON, or is nested without end.

    `json.loads` raises RecursionError for the latter, which is no ValueError, and which readers forget. And it takes
    halves of characters, by `\\ud800` and as bytes, which nothing that sends or stores texts takes: they are refused
    here.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        found = json.loads(text)
        if may_hold_halves(text):
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def may_hold_halves(text: str, begin: int = 0, end: int = sys.maxsize) -> bool:
    """Whether JSON has to be decoded and looked at to know that it holds no halves of characters; mostly not.

    Args:
        text: what holds it.
        begin: where it begins.
        end: where it ends.
    """
    return _HALF.search(text, begin, end) is not None


def as_object(value: object, where: str) -> Mapping[str, Any]:
    """`value` as a JSON object. Raises LayoutArgumentError, naming `where`, for anything else."""
    if not isinstance(value, Mapping):
        raise LayoutArgumentError(f"{where} is not a JSON object: {_shown(value)}")
    return value


def as_list(value: object, where: str) -> list[Any]:
    """`value` as a JSON array. Raises LayoutArgumentError, naming `where`, for anything else."""
    if not isinstance(value, list | tuple):
        raise LayoutArgumentError(f"{where} is not a JSON array: {_shown(value)}")
    return list(value)


def as_int(value: object, where: str) -> int:
    """`value` as a whole number. Raises LayoutArgumentError, naming `where`, for anything else, even true.

    So it does for one that no 64 bits hold: nobody writes it, and it cannot be made a time.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise LayoutArgumentError(f"{where} is not a whole number: {_shown(value)}")
    if not _LEAST_INTEGER <= value <= _MOST_INTEGER:
        raise LayoutArgumentError(f"{where} is a number beyond 64 bits")
    return value


def as_text(value: object, where: str) -> str:
    """`value` as a string. Raises LayoutArgumentError, naming `where`, for anything else."""
    if not isinstance(value, str):
        raise LayoutArgumentError(f"{where} is not a string: {_shown(value)}")
    return value


def as_member(kind: type[MemberT], value: object, where: str) -> MemberT:
    """`value` as a member of `kind`. Raises LayoutArgumentError, naming `where`, for anything else."""
    try:
        return kind(as_text(value, where))
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise LayoutArgumentError(f"{where} is {_shown(value)}; it must be one of {allowed}") from None


def optional_text(value: object, where: str) -> str | None:
    """`value` as a string, or None when it is null or absent."""
    return None if value is None else as_text(value, where)


def required(source: Mapping[str, Any], key: str, where: str) -> Any:
    """The field `key`. Raises LayoutArgumentError, naming `where`, if it is absent."""
    if key not in source:
        raise LayoutArgumentError(f"{where} lacks {key!r}")
    return source[key]


def unknown_fields(source: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """A deep copy of the fields this release does not know. Raises LayoutArgumentError for one nested without end."""
    try:
        return {key: deepcopy(value) for key, value in source.items() if key not in known}
    except RecursionError:
        raise LayoutArgumentError("a field that this release does not know is nested too deeply") from None


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return "what is nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."
