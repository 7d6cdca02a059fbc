"""Pages are written as GitHub reads them; mkdocs reads an older dialect. Here the one becomes the other."""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_INDENT = 4
_MARKER = re.compile(r"( *)([-*+]|\d+[.)])( +|$)")
_LISTS = {"bullet_list_open", "ordered_list_open"}
_SET_APART = {*_LISTS, "fence", "table_open"}


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a list.

    Args:
        first: its first line.
        end: the line after its last one.
        column: where its text begins, in characters.
    """

    first: int
    end: int
    column: int


def for_mkdocs(text: str) -> str:
    """Return a page with what is in a list indented by four, and lists, tables and code set apart by empty lines."""
    lines = text.splitlines()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    items = [_item(token, lines) for token in tokens if token.type == "list_item_open"]
    code = {
        line: lines[token.map[0]]
        for token in tokens
        if token.type == "fence" and token.map
        for line in range(*token.map)
    }
    apart = _set_apart(tokens, lines)
    made: list[str] = []
    for number, line in enumerate(lines):
        if number in apart and made and made[-1].strip() and line.strip():
            made.append("")
        around = [item for item in items if item.first <= number < item.end]
        made.append(_indented(line, number, around, code.get(number)))
    return "\n".join(made) + "\n"


def _item(token: Token, lines: list[str]) -> _Item:
    first, end = _lines_of(token)
    marker = _MARKER.match(lines[first])
    if marker is None:
        raise ValueError(f"line {first + 1}: a list in a list begins in one line: {lines[first]!r}")
    return _Item(first, end, marker.end())


def _set_apart(tokens: list[Token], lines: list[str]) -> set[int]:
    """Numbers of lines before which one must be empty."""
    found = _items_of_several_blocks(tokens)
    for token in tokens:
        if token.type not in _SET_APART:
            continue
        first, end = _lines_of(token)
        # What an item begins with stays in its line.
        if not (token.type == "fence" and _MARKER.match(lines[first])):
            found.add(first)
        if token.type == "fence":
            found.add(end)
    return found


def _items_of_several_blocks(tokens: list[Token]) -> set[int]:
    """First lines of the items that follow one with code or a list in it, which would be taken for more of that."""
    within = [_lines_of(token)[0] for token in tokens if token.type in {"fence", *_LISTS}]
    items = [_lines_of(token) for token in tokens if token.type == "list_item_open"]
    return {end for first, end in items if any(first < line < end for line in within)}


def _indented(line: str, number: int, around: list[_Item], fence: str | None) -> str:
    """A line as it is to be.

    Args:
        line: as it was written.
        number: of it, from 0.
        around: the items it is in, outermost first.
        fence: the first line of the code that it is in; None outside of code.
    """
    if not around or not line.strip():
        return line
    innermost = around[-1]
    if number == innermost.first:
        marker = _MARKER.match(line)
        assert marker is not None
        return f"{' ' * _INDENT * (len(around) - 1)}{marker[2]} {line[marker.end() :]}"
    further = _spaces(line) - (innermost.column if fence is None else _spaces(fence))
    # Up to three spaces more mean nothing, unless in code.
    kept = max(0, further) if fence is not None or further >= _INDENT else 0
    return " " * (_INDENT * len(around) + kept) + line.lstrip(" ")


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _lines_of(token: Token) -> tuple[int, int]:
    if token.map is None:
        raise ValueError(f"{token.type} has no lines")
    return token.map[0], token.map[1]
