"""Programs taken from the machine: found, else installed (Debian as root), else named in one line."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from dev.console import say
from dev.errors import DevError

JAVA_VERSIONS = (17, 21)
JVM_DIRECTORY = Path("/usr/lib/jvm")
# From 1.21 on `go` fetches by itself the toolchain that go.mod names.
OLDEST_GO = (1, 21)
APT_TIMEOUT_SECONDS = 900

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Attributes:
        executable: the `java` command.
        version: major version.
        description: what it tells of itself, down to the build.
    """

    executable: Path
    version: int
    description: str


def java() -> Java:
    """Return a Java 17 or 21: from `JAVA_HOME`, the PATH or the machine's JVM directory, in this order."""
    return _require(_find_java, "Java 17 or 21", "to run the Pulsar brokers", "default-jdk-headless")


def go() -> Path:
    """Return a `go` command able to fetch the toolchain that `kube/go.mod` asks for."""
    return _require(_find_go, "go 1.21 or newer", "to build the Kubernetes programs", "golang")


def maven() -> Path:
    """Return the `mvn` command."""
    return _require(lambda: _on_path("mvn"), "mvn", "to fetch the Pulsar jars", "maven")


def openssl() -> Path:
    """Return the `openssl` command."""
    return _require(lambda: _on_path("openssl"), "openssl", "to make certificates", "openssl")


def require_linux() -> None:
    """Refuse other systems at once: processes are told apart by /proc."""
    if not Path("/proc/self/stat").exists():
        raise DevError("the local cluster runs on Linux only (it reads /proc)")


def _require(find: Callable[[], Found | None], what: str, why: str, package: str) -> Found:
    found = find()
    if found is None and _can_install():
        _install(package)
        found = find()
    if found is None:
        raise DevError(f"{what} is needed {why}: install it (Debian: apt-get install {package})")
    return found


def _on_path(program: str) -> Path | None:
    found = shutil.which(program)
    return Path(found) if found else None


def _find_go() -> Path | None:
    program = _on_path("go")
    if program is None:
        return None
    version = re.search(r"go(\d+)\.(\d+)", _output([str(program), "version"]))
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GO:
        return None
    return program


@cache
def _find_java() -> Java | None:
    for executable in _java_candidates():
        description = _output([str(executable), "-version"])
        version = java_version(description)
        if version in JAVA_VERSIONS:
            return Java(executable, version, description)
    return None


def _java_candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := _on_path("java"):
        yield on_path
    yield from sorted(JVM_DIRECTORY.glob("*/bin/java"))


def java_version(output: str) -> int | None:
    """Return the major version that `java -version` tells in its output, or None if it tells none."""
    match = re.search(r'version "(\d+)', output)
    return int(match[1]) if match else None


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _can_install() -> bool:
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def _install(package: str) -> None:
    say(f"installing {package} (apt-get)")
    options = ["-qq", "-o", "DPkg::Lock::Timeout=300"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run(
            ["apt-get", *options, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=APT_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise DevError(f"apt-get {' '.join(arguments)} failed: {last}")
