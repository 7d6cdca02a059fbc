"""Reading fields of a decoded JSON object with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from enum import StrEnum
from typing import Any, TypeVar

from scalable_topics.layout.errors import LayoutArgumentError

MemberT = TypeVar("MemberT", bound=StrEnum)


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
    """`value` as a whole number. Raises LayoutArgumentError, naming `where`, for anything else, even true."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise LayoutArgumentError(f"{where} is not a whole number: {_shown(value)}")
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
    """A deep copy of the fields this release does not know."""
    return {key: deepcopy(value) for key, value in source.items() if key not in known}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
