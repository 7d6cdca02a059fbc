"""Server processes that outlive the command which starts them; only the very same ones are ever ended.

Each runs in a session of its own with its output in a log. A pid file also holds the start time of the
process, so a recycled pid is never mistaken for ours.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dev.errors import DevError, PortClashError

POLL_SECONDS = 0.1
CLASH_MARKS = ("address already in use", "bindexception", "failed to bind to address")
LOG_TAIL_LINES = 12
KILL_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A pid together with the time the process started, in clock ticks since boot."""

    pid: int
    start_ticks: int


class ProcessTable:
    """The processes of one instance, by name.

    Args:
        pid_directory: where pid files are kept.
        log_directory: where each process appends its output, in `{name}.log`.
    """

    def __init__(self, pid_directory: Path, log_directory: Path) -> None:
        self._pid_directory = pid_directory
        self._log_directory = log_directory
        # Held so that a child of this very process is reaped by `poll` and never warned about.
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        # Where the present start's output begins in the log, in bytes.
        self._log_offsets: dict[str, int] = {}

    def names(self) -> list[str]:
        """Return the names of all processes that were started and not stopped."""
        return sorted(file.stem for file in self._pid_directory.glob("*.json"))

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self._log_directory / f"{name}.log"

    def identity(self, name: str) -> ProcessIdentity | None:
        """Return the identity of a process if it is running, else None."""
        recorded = self._recorded(name)
        if (child := self._children.get(name)) is not None:
            child.poll()
        return recorded if recorded is not None and is_running(recorded) else None

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a process unless it is running.

        Args:
            name: names its pid file and its log.
            command: program and arguments, with absolute paths.
            environment: added to the present environment.
        """
        if self.identity(name) is not None:
            return
        self._pid_directory.mkdir(parents=True, exist_ok=True)
        self._log_directory.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            self._log_offsets[name] = log.tell()
            child = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self._log_directory,
                env=os.environ | dict(environment or {}),
            )
        self._children[name] = child
        start_ticks = _start_ticks(child.pid)
        if start_ticks is not None:
            identity = ProcessIdentity(child.pid, start_ticks)
            self._pid_file(name).write_text(json.dumps(asdict(identity)))

    def wait_until(self, name: str, ready: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait until `ready` answers True, watching the process and its log.

        Raises:
            PortClashError: a port of its is taken. Not every server ends by that.
            DevError: it ended otherwise, or was not ready in time.
        """
        deadline = time.monotonic() + timeout_seconds
        while not ready():
            ended = self.identity(name) is None
            output = self._output(name)
            if any(mark in output.lower() for mark in CLASH_MARKS):
                raise PortClashError(f"{name} could not bind its port, see {self.log(name)}")
            if ended:
                raise self._ended_by_itself(name)
            if time.monotonic() > deadline:
                raise DevError(f"{name} was not ready within {timeout_seconds:.0f} s, see {self.log(name)}")
            time.sleep(POLL_SECONDS)

    def run(self, name: str, command: Sequence[str], timeout_seconds: float) -> None:
        """Run a process to its end.

        Raises:
            DevError: it did not end in time, or not with exit code 0.
        """
        self.start(name, command)
        child = self._children[name]
        try:
            code = child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise DevError(f"{name} took more than {timeout_seconds:.0f} s, see {self.log(name)}") from None
        finally:
            self.kill(name)
        if code != 0:
            raise self._ended_by_itself(name)

    def stop(self, *names: str, timeout_seconds: float = 20) -> None:
        """End processes together with SIGTERM, and those not gone in time with SIGKILL; then forget them."""
        self._end(names, signal.SIGTERM, timeout_seconds)

    def kill(self, *names: str) -> None:
        """End processes with SIGKILL at once, as a crash would, and forget them."""
        self._end(names, signal.SIGKILL, KILL_TIMEOUT_SECONDS)

    def _end(self, names: Sequence[str], first_signal: signal.Signals, timeout_seconds: float) -> None:
        for number, seconds in ((first_signal, timeout_seconds), (signal.SIGKILL, KILL_TIMEOUT_SECONDS)):
            for identity in filter(None, map(self.identity, names)):
                with suppress(ProcessLookupError):
                    os.killpg(identity.pid, number)
            self._wait_gone(names, seconds)
        for name in names:
            if (survivor := self.identity(name)) is not None:
                raise DevError(f"{name} (pid {survivor.pid}) did not end on SIGKILL")
            self._pid_file(name).unlink(missing_ok=True)
            if (child := self._children.pop(name, None)) is not None:
                child.wait()

    def _wait_gone(self, names: Sequence[str], timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while any(map(self.identity, names)) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _ended_by_itself(self, name: str) -> DevError:
        tail = "\n".join(self._output(name).splitlines()[-LOG_TAIL_LINES:])
        return DevError(f"{name} ended by itself, see {self.log(name)}\n{tail}")

    def _output(self, name: str) -> str:
        with self.log(name).open("rb") as log:
            log.seek(self._log_offsets.get(name, 0))
            return log.read().decode(errors="replace")

    def _recorded(self, name: str) -> ProcessIdentity | None:
        try:
            return ProcessIdentity(**json.loads(self._pid_file(name).read_text()))
        except FileNotFoundError:
            return None

    def _pid_file(self, name: str) -> Path:
        return self._pid_directory / f"{name}.json"


def is_running(identity: ProcessIdentity) -> bool:
    """Tell whether this very process is running. One that has ended and awaits its parent is not."""
    return _start_ticks(identity.pid) == identity.start_ticks


def _start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets and may hold spaces and brackets itself.
    fields = stat.rpartition(")")[2].split()
    state, start_ticks = fields[0], int(fields[19])
    return None if state in {"Z", "X"} else start_ticks
