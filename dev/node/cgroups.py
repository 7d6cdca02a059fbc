"""The control groups that hold the pods of one instance, so that what is left of them is found and ended."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from dev.errors import DevError

ROOT = Path("/sys/fs/cgroup")
UNIFIED_MARK = "cgroup.controllers"
# A new group of version 1 has no processors and no memory until it is given some.
CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")
END_TIMEOUT_SECONDS = 10
POLL_SECONDS = 0.1


def are_unified() -> bool:
    """Whether the machine has control groups of version 2 alone."""
    return (ROOT / UNIFIED_MARK).exists()


class ControlGroups:
    """One group of each hierarchy of the machine: of all resources in version 2, one a resource in version 1.

    Args:
        name: of the group, below the root.
    """

    def __init__(self, name: str) -> None:
        self.path = f"/{name}"
        hierarchies = [ROOT] if are_unified() else [each for each in ROOT.iterdir() if each.is_dir()]
        self._groups = [hierarchy / name for hierarchy in hierarchies if not hierarchy.is_symlink()]

    def create(self) -> None:
        """Make what is not there."""
        for group in self._groups:
            group.mkdir(exist_ok=True)
            for name in CPUSET_FILES:
                if (group / name).exists() and not (group / name).read_text().strip():
                    (group / name).write_text((group.parent / name).read_text())

    def remove(self) -> None:
        """End every process in them and remove them. Raises DevError if one does not end."""
        deadline = time.monotonic() + END_TIMEOUT_SECONDS
        while pids := self._pids():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise DevError(f"processes in the control group {self.path} do not end: {sorted(pids)}")
            time.sleep(POLL_SECONDS)
        for group in self._groups:
            for directory in reversed(self._with_children(group)):
                directory.rmdir()

    def _pids(self) -> set[int]:
        files = [each / "cgroup.procs" for group in self._groups for each in self._with_children(group)]
        return {int(pid) for file in files if file.exists() for pid in file.read_text().split()}

    @staticmethod
    def _with_children(group: Path) -> list[Path]:
        return [group, *sorted(each for each in group.rglob("*") if each.is_dir())] if group.is_dir() else []
