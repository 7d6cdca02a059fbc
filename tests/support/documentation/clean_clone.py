"""A clean clone with a home of its own, in which a shell does what the pages say."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dev.cache import CACHE_VARIABLE, cache_root
from dev.instance import RUN_VARIABLE
from dev.ports import PortReservations
from tests.support.documentation.pages import ROOT
from tests.support.documentation.shell import Command, differences
from tests.support.documentation.walk import Between, walked

# As printed; the walk replaces them, so that it disturbs no operator of this machine.
_GATEWAY_PORT, _METRICS_PORT = "8081", "8080"
_MARK = "\x01"
_END_SECONDS = 30
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


def take_the_walk(clone: Clone, within_seconds: float) -> list[str]:
    """Paste the commands into one shell; answers what went otherwise than the pages say.

    Args:
        clone: where.
        within_seconds: how long all of it may take.
    """
    steps = list(walked())
    log, script = clone.home / "walk.log", clone.home / "walk.sh"
    script.write_text(_script(clone, [step.script if isinstance(step, Between) else step[0].text for step in steps]))
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
    printed = log.read_text(errors="replace").split(_MARK)[1:]
    if code != 0:
        done = steps[len(printed) - 1]
        told = done.script if isinstance(done, Between) else f"{done[0].place}: {done[0].text}"
        why = "did not end in time" if code is None else f"ended with {code}"
        return [f"{told}\n{why}:\n{printed[-1][-4000:]}", _operator_log(clone)]
    return [line for step, text in zip(steps, printed, strict=True) for line in _differences(clone, step, text)]


def _script(clone: Clone, texts: list[str]) -> str:
    lines = ["set -eE -o pipefail"]
    for text in texts:
        lines += [f"printf '{_MARK}'", text]
    script = "\n".join(lines) + "\n"
    for port, other in clone.ports.items():
        script = script.replace(f"127.0.0.1:{port}", f"127.0.0.1:{other}")
    return script


def _differences(clone: Clone, step: tuple[Command, bool] | Between, printed: str) -> list[str]:
    if isinstance(step, Between) or not step[1] or step[0].output is None:
        return []
    return differences(step[0], printed)


def _operator_log(clone: Clone) -> str:
    file = clone.folder / "operator.log"
    return f"the operator's log ends with:\n{file.read_text()[-3000:]}" if file.exists() else "there was no operator"


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
