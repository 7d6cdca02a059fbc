"""What a process and all below it use, from /proc."""

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a tree of processes.

    Args:
        cpu_seconds: so far, of those that have ended too.
        java_bytes: resident memory of Java.
        python_bytes: resident memory of all others; pages they share count in each.
    """

    cpu_seconds: float
    java_bytes: int
    python_bytes: int


def usage(root: int) -> Usage:
    """Of a process and its descendants, now."""
    children: dict[int, list[int]] = defaultdict(list)
    found: dict[int, tuple[str, float, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        fields = rest.split()
        ticks = sum(int(field) for field in fields[11:15])
        children[int(fields[1])].append(int(entry.name))
        found[int(entry.name)] = (name, ticks / _TICKS, int(fields[21]) * _PAGE_BYTES)
    cpu_seconds, java_bytes, python_bytes = 0.0, 0, 0
    left = [root]
    while left:
        process = left.pop()
        left += children[process]
        name, seconds, resident_bytes = found.get(process, ("", 0.0, 0))
        cpu_seconds += seconds
        if name == "java":
            java_bytes += resident_bytes
        else:
            python_bytes += resident_bytes
    return Usage(cpu_seconds, java_bytes, python_bytes)


def machine_busy_seconds() -> float:
    """How long the cores of the machine have been at work, all together."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / _TICKS
