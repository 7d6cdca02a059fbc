"""What a long run has shown, written to docs/evidence for people to read."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "docs" / "evidence"
_GIT_SECONDS = 30.0
# What runs like these write themselves is no change of what they run.
_REPORTS = (":!docs/evidence", ":!docs/benchmarks.md", ":!docs/benchmarks.json")


@dataclass(slots=True)
class Evidence:
    """A page of evidence, written once all of its parts have been shown.

    Args:
        file: name of the page.
        title: its heading.
        command: the command that makes it.
        parts: headings of its parts, in the order they are to appear.
    """

    file: str
    title: str
    command: str
    parts: Sequence[str]
    _shown: dict[str, list[str]] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    def show(self, part: str, *lines: str) -> None:
        """Add the lines of one part."""
        if part not in self.parts:
            raise ValueError(f"{part!r} is no part of {self.file}")
        self._shown[part] = list(lines)

    def write(self) -> bool:
        """Write the page; False, and nothing is written, while a part is missing: half a run shows nothing."""
        if set(self._shown) != set(self.parts):
            return False
        seconds = time.monotonic() - self._started
        lines = [
            f"# {self.title}",
            "",
            f"Made by `{self.command}`{_at_commit()} on {time.strftime('%Y-%m-%d', time.gmtime())} in "
            f"{seconds / 60:.0f} min, on {os.cpu_count()} cores ({platform.system()} {platform.machine()}, "
            f"Python {platform.python_version()}) "
            f"that also ran the servers; load average {os.getloadavg()[2]:.1f} over the last 15 min, so that times are "
            "those of a shared machine where it exceeds the cores. Do not edit: run it again.",
        ]
        for part in self.parts:
            lines += ["", f"## {part}", "", *self._shown[part]]
        _FOLDER.mkdir(parents=True, exist_ok=True)
        (_FOLDER / self.file).write_text("\n".join(lines) + "\n")
        return True


def commit() -> str:
    """Which commit this tree is, and whether it has changes other than reports; nothing where that is not known."""
    try:
        found = _git("rev-parse", "--short=12", "HEAD")
        is_changed = bool(_git("status", "--porcelain", "--untracked-files=no", "--", ".", *_REPORTS))
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{found}{' with changes' if is_changed else ''}"


def _at_commit() -> str:
    found = commit()
    return f" at commit {found}" if found else ""


def _git(*arguments: str) -> str:
    found = subprocess.run(
        ["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS
    )
    return found.stdout.strip()


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table."""
    cells = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(str(cell) for cell in row) + " |" for row in cells]
