"""Reading a JSON text of very many values without having all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from scalable_topics.layout.json_fields import may_hold_halves

Keys = tuple[str, ...]

_SPACE = re.compile(r"[ \t\n\r]*")
_CUT_OF_A_NUMBER = len("e+") + 1
_decode = json.JSONDecoder().raw_decode


def each_member(parts: Iterable[str], depth: int) -> Iterator[tuple[Keys, Any]]:
    """The values that a JSON text of objects within objects holds at a depth, one after the other, with their keys.

    As `parse_json` would have them, which takes some ten times the memory of the text for all of them together. Of the
    text no more is kept than one value needs. What is no object further up is left out.

    Args:
        parts: of the text, in their order, cut anywhere; it begins with an object. What they raise is raised here: so
            may be bounded how large one value is.
        depth: how many keys lead to a value; at least 1.

    Raises ValueError for what is no JSON object, or is nested without end; what came before has been told by then.
    """
    window = _Window(parts)
    try:
        if window.peek() != "{":
            raise ValueError("it is no JSON object")
        yield from _walk(window, (), depth)
        if window.peek():
            raise ValueError("there is more behind its end")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _walk(window: _Window, keys: Keys, depth: int) -> Iterator[tuple[Keys, Any]]:
    """Of the value that begins in the window."""
    if len(keys) == depth or window.peek() != "{":
        value = window.take_value()
        if len(keys) == depth:
            yield keys, value
        return
    window.take("{")
    if window.peek() == "}":
        window.take("}")
        return
    while True:
        key = window.take_value()
        if not isinstance(key, str):
            raise ValueError(f"a key is missing before character {window.at}")
        window.take(":")
        yield from _walk(window, (*keys, key), depth)
        if window.peek() == "}":
            window.take("}")
            return
        window.take(",")


class _Window:
    """What is there of a text between what was taken and what has not come yet."""

    def __init__(self, parts: Iterable[str]) -> None:
        self._parts = iter(parts)
        self._text = ""
        self._at = 0
        self._before = 0

    @property
    def at(self) -> int:
        """Where in the whole text it begins."""
        return self._before + self._at

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._widen():
                return ""

    def take(self, mark: str) -> None:
        """Go behind the next character, which has to be this one."""
        if self.peek() != mark:
            raise ValueError(f"{mark!r} is missing before character {self.at}")
        self._at += 1

    def take_value(self) -> Any:
        """Go behind the next value, which is answered."""
        self.peek()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # It may only be cut off.
                if self._widen():
                    continue
                raise ValueError(f"{error.msg} at character {self._before + error.pos}") from None
            # A number may go on, and of `1.` or `1e+` it is not seen that it is none yet.
            if len(self._text) - end < _CUT_OF_A_NUMBER and self._widen():
                continue
            if may_hold_halves(self._text, self._at, end):
                json.dumps(value, ensure_ascii=False).encode()
            self._at = end
            return value

    def _widen(self) -> bool:
        """Have twice as much as is left, so that even one value as large as the text is tried only so often."""
        left = size = len(self._text) - self._at
        taken = []
        for part in self._parts:
            taken.append(part)
            size += len(part)
            if size > 2 * left:
                break
        if size == left:
            return False
        self._before += self._at
        self._text, self._at = self._text[self._at :] + "".join(taken), 0
        return True
