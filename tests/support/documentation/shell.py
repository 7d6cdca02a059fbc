"""Commands in the pages, and how what they print is compared with what is printed there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.support.documentation.pages import Fence

_LANGUAGES = {"", "sh", "bash", "shell", "console"}
_PROMPT = "$ "
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_COMMENT = re.compile(r"(^|\s+)#\s.*$", re.MULTILINE)
_ELLIPSIS = "…"
_DURATION = re.compile(r"\d+(\.\d+)?(ms|s|m|h|d)(\d+(s|m|h))*")


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a page tells people to run.

    Args:
        place: of its block, for people.
        text: as printed, of several lines perhaps.
        output: what the page shows of what it prints; None if nothing.
    """

    place: str
    text: str
    output: str | None = None

    @property
    def key(self) -> str:
        """The command in one line and without comments, by which tables know it."""
        return " ".join(_COMMENT.sub("", self.text.replace("\\\n", " ")).split())


def commands_of(fences: Iterable[Fence]) -> list[Command]:
    """The commands in blocks of code; what is no shell has none."""
    return [command for fence in fences if fence.language in _LANGUAGES for command in _commands(fence)]


def differences(command: Command, printed: str) -> list[str]:
    """What is other than the page shows.

    Spaces between words do not count, nor how long something took or is ago; `…` stands for anything within a word,
    and alone in a line for any number of lines.
    """
    wanted = [_words(line) for line in (command.output or "").splitlines() if line.strip()]
    found = [_words(line) for line in printed.splitlines() if line.strip()]
    if _match(wanted, found):
        return []
    return [f"{command.place}: {command.text}", "the page shows:", command.output or "", "it printed:", printed]


def _commands(fence: Fence) -> Iterator[Command]:
    lines = fence.text.splitlines()
    if not any(line.startswith(_PROMPT) for line in lines):
        yield from (Command(fence.place, text) for text in _complete(lines))
        return
    starts = [number for number, line in enumerate(lines) if line.startswith(_PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        typed = [lines[start].removeprefix(_PROMPT), *lines[start + 1 : end]]
        text = next(_complete(typed))
        output = "\n".join(typed[text.count("\n") + 1 :])
        yield Command(fence.place, text, output)


def _complete(lines: Sequence[str]) -> Iterator[str]:
    """Lines put together to what a shell takes for one command."""
    begun: list[str] = []
    for line in lines:
        if begun or (line.strip() and not line.lstrip().startswith("#")):
            begun.append(line)
            if _is_complete(begun):
                yield "\n".join(begun)
                begun = []
    if begun:
        raise ValueError(f"no complete command: {begun}")


def _is_complete(lines: Sequence[str]) -> bool:
    if here := _HERE_DOCUMENT.search(lines[0]):
        return lines[-1] == here[2] and len(lines) > 1
    if lines[-1].endswith("\\"):
        return False
    try:
        shlex.split("\n".join(lines), comments=True)
    except ValueError:
        return False
    return True


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


def _match(wanted: Sequence[tuple[str, ...]], found: Sequence[tuple[str, ...]]) -> bool:
    if not wanted:
        return not found
    if wanted[0] == (_ELLIPSIS,):
        return any(_match(wanted[1:], found[skipped:]) for skipped in range(len(found) + 1))
    return bool(found) and _same(wanted[0], found[0]) and _match(wanted[1:], found[1:])


def _same(wanted: tuple[str, ...], found: tuple[str, ...]) -> bool:
    if len(wanted) != len(found):
        return False
    return all(_same_word(*pair) for pair in zip(wanted, found, strict=True))


def _same_word(wanted: str, found: str) -> bool:
    if _DURATION.fullmatch(wanted) and _DURATION.fullmatch(found):
        return True
    pattern = ".*".join(re.escape(part) for part in wanted.split(_ELLIPSIS))
    return re.fullmatch(pattern, found) is not None
