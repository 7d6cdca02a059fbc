"""Programs built from Go modules, and modules of other people, fetched by their checksum."""

import json
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dev import prerequisites
from dev.cache import content_key, ensure
from dev.console import say
from dev.errors import DevError
from dev.steps import run_step

TIMEOUT_SECONDS = 600

ModuleFiles = tuple[str, str, tuple[str, ...]]
"""A module with its version, its checksum, and the paths of files in it."""


def download_module(module: str, checksum: str, directory: Path) -> Path:
    """Fetch a module.

    Args:
        module: path and version, as `github.com/owner/name@v1.2.3`.
        checksum: of the whole module, as `go.sum` has it: the version is this content and no other.
        directory: where Go runs; no module of its own needs to be there.

    Returns:
        Its directory in the module cache, which is read-only.

    Raises:
        DevError: it cannot be fetched, or is not what it was.
    """
    command = [str(prerequisites.go()), "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise DevError(f"{module} cannot be fetched: {done.stderr.strip()}") from None
    if "Error" in found:
        raise DevError(f"{module} cannot be fetched: {found['Error']}")
    if found["Sum"] != checksum:
        raise DevError(f"{module} has the checksum {found['Sum']}, not {checksum}")
    return Path(found["Dir"])


def go_build(name: str, directory: Path, output: Path, flags: Sequence[str], package: str = ".") -> None:
    """Build a program that needs no libraries of the machine. Raises DevError.

    Args:
        name: of the step and its log.
        directory: of the module.
        output: the program.
        flags: of `go build`.
        package: of the module.
    """
    command = [str(prerequisites.go()), "build", *flags, "-o", str(output), package]
    run_step(name, command, directory=directory, environment={"CGO_ENABLED": "0"})


def module_files(name: str, modules: Sequence[ModuleFiles], note: str) -> Path:
    """Fetch files of modules, once a machine. Raises DevError.

    Args:
        name: of the directory in the cache.
        modules: which files of which.
        note: what is said when they are fetched.

    Returns:
        A directory with the files, without the folders that they were in.
    """

    def fetch(into: Path) -> None:
        say(note)
        for module, checksum, files in modules:
            directory = download_module(module, checksum, into)
            for file in files:
                shutil.copyfile(directory / file, into / Path(file).name)

    facts = [fact for module, checksum, files in modules for fact in (module, checksum, *files)]
    return ensure(name, content_key([], *facts), fetch)


def own_program(name: str, directory: Path, sources: Sequence[str], flags: Sequence[str], note: str) -> Path:
    """Build a small Go program of this tree, once a machine. Raises DevError.

    Args:
        name: of the program, and of its directory in the cache.
        directory: of its module.
        sources: its files beside `go.mod` and `go.sum`.
        flags: of `go build`.
        note: what is said when it is built.

    Returns:
        The program.
    """

    def build(into: Path) -> None:
        say(note)
        go_build(f"{name}-build", directory, into / name, flags)

    inputs = [directory / file for file in ("go.mod", "go.sum", *sources)]
    return ensure(name, content_key(inputs, *flags, platform.machine()), build) / name
