"""Long steps that build or fetch something: each logs to a file, and tells how long it has taken so far."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.cache import cache_root
from dev.console import say
from dev.errors import DevError

TIMEOUT_SECONDS = 3600
PROGRESS_SECONDS = 30
ERROR_LINES = 15


def run_step(name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a command to its end.

    Args:
        name: names the step and its log in the cache.
        command: program and arguments.
        directory: where it runs.
        environment: added to the present environment.

    Raises:
        DevError: it failed or took too long; the message has its last words.
    """
    log = cache_root() / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=directory,
            env=os.environ | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(name, child, started, log)
        finally:
            child.kill()
            child.wait()
    if child.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-ERROR_LINES:])
        raise DevError(f"{name} failed, see {log}\n{tail}")
    say(f"{name}: done after {time.monotonic() - started:.0f} s")


def _wait(name: str, child: subprocess.Popen[bytes], started: float, log: Path) -> None:
    while True:
        try:
            child.wait(PROGRESS_SECONDS)
            return
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - started
            if elapsed > TIMEOUT_SECONDS:
                raise DevError(f"{name} took more than {TIMEOUT_SECONDS} s, see {log}") from None
            say(f"{name}: {elapsed:.0f} s so far, its output is in {log}")
