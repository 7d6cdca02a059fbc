"""What a request may say besides its body: parameters of paths and queries, read and checked one way. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from scalable_topics_operator.gateway.refusal import Refusal

T = TypeVar("T")

PATH, QUERY = "path", "query"
MOST_REPEATS = 16
"""How often a query may have a parameter that may be repeated."""

_WHOLE = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_SWITCHES = {"true": True, "false": False}


class Query(Protocol):
    """The parameters of a query, each as often as it was given."""

    def keys(self) -> Iterable[str]:
        """The names."""

    def getall(self, key: str) -> Sequence[str]:
        """All values of a name."""


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T]):
    """One parameter.

    Args:
        name: as requests spell it.
        place: `path` or `query`.
        meaning: what it says, for people.
        schema: of its values, as JSON Schema.
        read: makes a value of the text; raises ValueError, which says what the text must be.
        required: whether a query must have it; paths always do.
        repeated: whether a query may have it more than once; its value is then a tuple.
    """

    name: str
    place: str
    meaning: str
    schema: Mapping[str, Any]
    read: Callable[[str], T]
    required: bool = False
    repeated: bool = False


class Values:
    """What a request says, by parameter.

    Args:
        found: the values by name.
    """

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def get(self, parameter: Parameter[T]) -> T | None:
        """The value of a parameter; None if the request has none."""
        value: T | None = self._found.get(parameter.name)
        return value

    def need(self, parameter: Parameter[T]) -> T:
        """The value of a parameter of the path, or of one that is required."""
        value: T = self._found[parameter.name]
        return value

    def all(self, parameter: Parameter[T]) -> tuple[T, ...]:
        """The values of a repeated parameter."""
        values: tuple[T, ...] = self._found.get(parameter.name, ())
        return values


def read_values(parameters: Sequence[Parameter[Any]], path: Mapping[str, str], query: Query) -> Values:
    """What a request says.

    Args:
        parameters: those its route has.
        path: the parts of the path, decoded.
        query: the query.

    Raises Refusal: 400 for a parameter that there is not, is not given, is given twice or has no proper value.
    """
    known = {parameter.name: parameter for parameter in parameters if parameter.place == QUERY}
    given = list(dict.fromkeys(query.keys()))
    for name in given:
        if name not in known:
            may = f"may have {', '.join(sorted(known))}" if known else "has no parameters"
            raise Refusal(400, f"there is no query parameter {name!r} here; the query {may}")
    found: dict[str, Any] = {
        parameter.name: _read(parameter, path[parameter.name]) for parameter in parameters if parameter.place == PATH
    }
    for name, parameter in known.items():
        texts = query.getall(name) if name in given else ()
        if parameter.repeated:
            if len(texts) > MOST_REPEATS:
                raise Refusal(400, f"query parameter {name} is given {len(texts)} times, of {MOST_REPEATS} at most")
            found[name] = tuple(_read(parameter, text) for text in texts)
        elif len(texts) > 1:
            raise Refusal(400, f"query parameter {name} is given {len(texts)} times; give it once")
        elif texts:
            found[name] = _read(parameter, texts[0])
        elif parameter.required:
            raise Refusal(400, f"query parameter {name} is missing: {parameter.meaning}")
    return Values(found)


def _read(parameter: Parameter[T], text: str) -> T:
    try:
        return parameter.read(text)
    except ValueError as error:
        raise Refusal(400, f"{parameter.place} parameter {parameter.name}: {_shown(text)} {error}") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def whole(
    name: str, meaning: str, least: int, most: int, *, place: str = QUERY, default: int | None = None, **more: bool
) -> Parameter[int]:
    """A whole number between `least` and `most`."""

    def read(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or not least <= value <= most:
            raise ValueError(f"is no whole number between {least} and {most}")
        return value

    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Parameter(name, place, meaning, schema, read, **more)


def switch(name: str, meaning: str) -> Parameter[bool]:
    """`true` or `false`; false if it is not given."""

    def read(text: str) -> bool:
        if text.lower() not in _SWITCHES:
            raise ValueError("is neither true nor false")
        return _SWITCHES[text.lower()]

    return Parameter(name, QUERY, meaning, {"type": "boolean", "default": False}, read)


def choice(name: str, meaning: str, options: Sequence[str], default: str) -> Parameter[str]:
    """One of some words."""

    def read(text: str) -> str:
        if text not in options:
            raise ValueError(f"is none of {', '.join(options)}")
        return text

    return Parameter(name, QUERY, meaning, {"type": "string", "enum": list(options), "default": default}, read)


def text(
    name: str, meaning: str, *, place: str = PATH, longest: int = 255, pattern: str = "", **more: bool
) -> Parameter[str]:
    """A text that is not empty.

    Args:
        name: of the parameter.
        meaning: what it says.
        place: `path` or `query`.
        longest: characters at most.
        pattern: regular expression of all of it; anything if empty.
        more: as for `Parameter`.
    """
    wanted = re.compile(pattern, re.ASCII) if pattern else None

    def read(found: str) -> str:
        if not 1 <= len(found) <= longest:
            raise ValueError(f"must have between 1 and {longest} characters")
        if wanted is not None and not wanted.fullmatch(found):
            raise ValueError(f"must be like {pattern}")
        return found

    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": longest}
    if pattern:
        schema["pattern"] = f"^{pattern}$"
    return Parameter(name, place, meaning, schema, read, **more)
