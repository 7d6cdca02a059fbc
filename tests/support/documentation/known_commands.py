"""Which commands of the pages are run by the walk, and what is known of the others."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.support.documentation.pages import ROOT, all_fences
from tests.support.documentation.shell import commands_of
from tests.support.documentation.walk import walked

_TABLE = Path(__file__).with_name("commands.toml")


@dataclass(frozen=True, slots=True)
class Known:
    """Commands that the walk leaves out.

    Args:
        begins: how they begin.
        run_by: the test that does the same: its file, and its name after `::` if one of it does; empty if none.
        reason: why none does.
    """

    begins: str
    run_by: str = ""
    reason: str = ""

    def problem(self) -> str:
        """What is wrong with this entry; empty if nothing."""
        if bool(self.run_by) == bool(self.reason):
            return f"{self.begins!r} needs either run_by or reason"
        file, _, name = self.run_by.partition("::")
        if self.run_by and not (ROOT / file).is_file():
            return f"{self.begins!r} is run by {file}, which is not there"
        if name and f"def {name}(" not in (ROOT / file).read_text():
            return f"{self.begins!r} is run by {self.run_by}, which is not there"
        return ""


def problems() -> list[str]:
    """What keeps the pages from being all run or explained."""
    table = [Known(**entry) for entry in tomllib.loads(_TABLE.read_text())["command"]]
    run, used, found = _run_by_the_walk(), set(), [one.problem() for one in table]
    for command in commands_of(all_fences()):
        if command.key in run:
            continue
        known = [one for one in table if command.key.startswith(one.begins)]
        used.update(known)
        if not known:
            found.append(f"{command.place}: {command.key!r} is neither in the walk nor in {_TABLE.name}")
    found += [f"{one.begins!r} is in {_TABLE.name} and in no page" for one in table if one not in used]
    return [problem for problem in found if problem]


def _run_by_the_walk() -> set[str]:
    keys: set[str] = set()
    for step in walked():
        keys |= {step.command.key} if step.page else set(step.command.text.splitlines())
    return keys
