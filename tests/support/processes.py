"""Processes of this machine, by what was asked of them."""

from __future__ import annotations

from pathlib import Path


def command_lines(*words: str) -> dict[int, str]:
    """Command lines by process id, of those in which each of these words occurs."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if all(word in line for word in words):
                found[int(folder.name)] = line
    return found
