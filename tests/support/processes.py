"""Processes of this machine: which there are, by what was asked of them, and what they take."""

from __future__ import annotations

import os
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


def process_cpu_seconds(pid: int) -> float:
    """Processor time a process has taken, in user and system mode."""
    # The second field is the program's name in brackets and may hold spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
