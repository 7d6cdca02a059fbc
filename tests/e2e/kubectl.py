"""A cluster as people have it: kubectl and helm, and nothing that reaches behind them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

Manifest = dict[str, Any]
T = TypeVar("T")

COMMAND_TIMEOUT_SECONDS = 300
POLL_SECONDS = 0.5


class CommandFailed(Exception):
    """A command ended with an error; the message has what it said."""


def run(*command: str, text: str | None = None, errors: int = subprocess.PIPE) -> str:
    """Run a command; answers its output, with its errors if those go there. Raises CommandFailed."""
    done = subprocess.run(
        command,
        input=text,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)} ended with {done.returncode}: {done.stderr or ''}\n{done.stdout}")
    return done.stdout


def kubectl(*arguments: str, text: str | None = None) -> str:
    """Run kubectl; answers its output. Raises CommandFailed."""
    return run("kubectl", *arguments, text=text)


def helm(*arguments: str, text: str | None = None) -> str:
    """Run helm; answers its output, and what its hooks have said. Raises CommandFailed."""
    return run("helm", *arguments, text=text, errors=subprocess.STDOUT)


def apply(*manifests: Manifest, namespace: str | None = None) -> str:
    """`kubectl apply` objects."""
    where = ["--namespace", namespace] if namespace else []
    return kubectl("apply", *where, "--filename", "-", text=yaml.safe_dump_all(manifests))


def read(kind: str, name: str, namespace: str | None = None) -> Manifest:
    """Return an object. Raises CommandFailed where it is not there."""
    where = ["--namespace", namespace] if namespace else []
    found: Manifest = json.loads(kubectl("get", kind, name, *where, "--output", "json"))
    return found


def read_all(kind: str, namespace: str | None = None, selector: str = "") -> list[Manifest]:
    """Return the objects of a kind, of one namespace or of all."""
    where = ["--namespace", namespace] if namespace else ["--all-namespaces"]
    chosen = ["--selector", selector] if selector else []
    found: list[Manifest] = json.loads(kubectl("get", kind, *where, *chosen, "--output", "json"))["items"]
    return found


def exists(kind: str, name: str, namespace: str | None = None) -> bool:
    """Whether an object is there."""
    where = ["--namespace", namespace] if namespace else []
    return bool(kubectl("get", kind, name, *where, "--ignore-not-found", "--output", "name").strip())


def condition(manifest: Manifest, kind: str) -> Manifest:
    """Return a condition of an object; empty if it has none of that kind."""
    conditions = manifest.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def until(look: Callable[[], T], holds: Callable[[T], object] = bool, *, what: str, within_seconds: float = 60.0) -> T:
    """Look until it holds; answers what was seen. Raises AssertionError with what was seen last."""
    deadline = time.monotonic() + within_seconds
    while True:
        seen = look()
        if holds(seen):
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {within_seconds:.0f} s; last seen: {seen!r}")
        time.sleep(POLL_SECONDS)
