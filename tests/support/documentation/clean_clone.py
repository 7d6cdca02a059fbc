"""A clean clone with a home of its own, in which a shell does what the pages say."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dev.cache import CACHE_VARIABLE, cache_root
from dev.instance import RUN_VARIABLE
from dev.ports import PortReservations
from tests.support.documentation.pages import ROOT
from tests.support.documentation.shell import differences
from tests.support.documentation.walk import Step, walked

# As printed; the walk replaces them, so that it disturbs no operator of this machine.
_GATEWAY_PORT, _METRICS_PORT = "8081", "8080"
_MARK = "\x01"
_END_SECONDS = 30
# Of what a step printed that has failed, in characters.
_SHOWN = 4000
# What a shell of the tests has, and one that somebody has just opened does not.
_NOT_THEIRS = (
    *("KUBECONFIG", "KUBECTL", "PULSAR_", "SCALABLE_TOPICS_", "STOPICS_", "GATEWAY_", "NODE_"),
    *("MAKE", "MFLAGS", "PYTEST_", "PYTHON", "VIRTUAL_ENV"),
)


@dataclass(frozen=True, slots=True)
class Clone:
    """What a user has after `git clone`.

    Args:
        folder: the files of the tree, as a commit of everything would have them.
        home: the user's home directory.
        ports: what stands for the printed ports.
    """

    folder: Path
    home: Path
    ports: Mapping[str, int]

    def environment(self) -> dict[str, str]:
        """Variables of the user's shell: nothing of a cluster, and caches of this machine."""
        return {
            "UV_CACHE_DIR": str(Path.home() / ".cache" / "uv"),
            **{name: value for name, value in os.environ.items() if not name.startswith(_NOT_THEIRS)},
            "HOME": str(self.home),
            "COLUMNS": "200",
            # Nothing is built or fetched again; instances are where that home has them.
            CACHE_VARIABLE: str(cache_root()),
            RUN_VARIABLE: str(self.home / ".cache" / "scalable-topics" / "instances"),
            "SCALABLE_TOPICS_GATEWAY_PORT": str(self.ports[_GATEWAY_PORT]),
            "SCALABLE_TOPICS_BIND_PORT": str(self.ports[_METRICS_PORT]),
            # A decision in seconds, for the walk to be short.
            "SCALABLE_TOPICS_AUTO_SCALE_INTERVAL_SECONDS": "5",
        }


@contextmanager
def clean_clone(folder: Path) -> Iterator[Clone]:
    """A clone in that folder, whose servers are stopped and whose files are removed whatever becomes of it."""
    home = folder / "home"
    home.mkdir()
    reservations = PortReservations(cache_root() / "ports", home)
    clone = Clone(folder / "clone", home, reservations.reserve((_GATEWAY_PORT, _METRICS_PORT)))
    reservations.hand_over(_GATEWAY_PORT, _METRICS_PORT)
    # An answer that refuses something fails the command.
    (clone.home / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    for name in _tracked_files():
        target = clone.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    try:
        yield clone
    finally:
        python = clone.folder / ".venv" / "bin" / "python"
        if python.exists():
            stop = [str(python), "-m", "dev", "down", "--all"]
            subprocess.run(stop, cwd=clone.folder, env=clone.environment(), check=True, timeout=120)
        reservations.release(clone.ports.values())
        shutil.rmtree(clone.folder)


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken.

    Args:
        step: which.
        printed: what it printed, both streams.
        seconds: how long it took; of one that did not end, until the walk was given up.
    """

    step: Step
    printed: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a walk went.

    Args:
        taken: the steps, as far as it came.
        problems: what went otherwise than the pages say; empty if nothing.
    """

    taken: tuple[Taken, ...]
    problems: tuple[str, ...]


def take_the_walk(clone: Clone, within_seconds: float) -> Outcome:
    """Paste the commands into one shell.

    Args:
        clone: where.
        within_seconds: how long all of it may take.
    """
    steps = list(walked())
    log, script = clone.home / "walk.log", clone.home / "walk.sh"
    script.write_text(_script(clone, [step.command.text for step in steps]))
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", str(script)],
            cwd=clone.folder,
            env=clone.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = shell.wait(within_seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(shell)
    taken = tuple(_taken(steps, _as_printed(clone, log.read_text(errors="replace")), time.time()))
    if code != 0:
        last, why = taken[-1], "did not end in time" if code is None else f"ended with {code}"
        told = f"{last.step.command.place}: {last.step.command.text}\n{why}:\n{last.printed[-_SHOWN:]}"
        return Outcome(taken, (told, _operator_log(clone)))
    found = [differences(one.step.command, one.printed) for one in taken if one.step.is_compared]
    return Outcome(taken, tuple(line for lines in found for line in lines))


def _script(clone: Clone, texts: list[str]) -> str:
    lines = ["set -e -o pipefail"]
    for text in texts:
        lines += [f'printf "{_MARK}%s\\n" "$EPOCHREALTIME"', text]
    script = "\n".join([*lines, f'printf "{_MARK}%s\\n" "$EPOCHREALTIME"']) + "\n"
    for port, other in clone.ports.items():
        script = script.replace(f"127.0.0.1:{port}", f"127.0.0.1:{other}")
    return script


def _as_printed(clone: Clone, text: str) -> str:
    """What a user would have seen, whose clone and cache are where the pages have them."""
    for port, other in clone.ports.items():
        text = text.replace(f"127.0.0.1:{other}", f"127.0.0.1:{port}")
    text = text.replace(str(clone.folder), ".").replace(str(clone.home), "~")
    return text.replace(str(cache_root()), "~/.cache/scalable-topics")


def _taken(steps: list[Step], log: str, now: float) -> Iterator[Taken]:
    begun = [part.partition("\n") for part in log.split(_MARK)[1:]]
    times = [float(at) for at, _, _ in begun] + [now]
    for step, (_, _, printed), started, ended in zip(steps, begun, times, times[1:], strict=False):
        yield Taken(step, printed, ended - started)


def _operator_log(clone: Clone) -> str:
    file = clone.folder / "operator.log"
    return f"the operator's log ends with:\n{file.read_text()[-_SHOWN:]}" if file.exists() else "there was no operator"


def _end(shell: subprocess.Popen[bytes]) -> None:
    """End what the shell has started; its group is its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(shell.pid, number)
        except ProcessLookupError:
            return
        try:
            shell.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _tracked_files() -> list[str]:
    """All that a commit of this tree would hold."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
