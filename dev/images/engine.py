"""What builds and keeps container images on this machine: Docker where its daemon answers, else podman."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Self

from dev import prerequisites
from dev.errors import DevError
from dev.node import cgroups
from dev.steps import run_step

COMMAND_TIMEOUT_SECONDS = 300
# Containers get no more than a machine without the right to raise limits can give.
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


@dataclass(frozen=True, slots=True)
class Engine:
    """Docker or podman, which take the same commands.

    Attributes:
        program: the command.
        runtime: what podman runs containers with; empty for what it finds.
    """

    program: Path
    runtime: str = ""

    @classmethod
    def found(cls) -> Self:
        """Return the one of this machine; podman is installed where that can be done. Raises DevError."""
        engine = cls(prerequisites.container_engine())
        if engine.is_podman and not cgroups.are_unified():
            # The one that Debian installs with podman (crun) refuses control groups of version 1 beside version 2.
            return replace(engine, runtime=str(prerequisites.runc()))
        return engine

    @property
    def is_podman(self) -> bool:
        """Whether it is podman."""
        return self.program.name == "podman"

    @property
    def _command(self) -> list[str]:
        return [str(self.program), *(("--runtime", self.runtime) if self.runtime else ())]

    def inspect(self, name: str) -> dict[str, Any] | None:
        """Return what it knows of an image; None if it has none of that name."""
        done = self._run("image", "inspect", name)
        return dict(json.loads(done.stdout)[0]) if done.returncode == 0 else None

    def import_root(self, archive: Path, name: str) -> None:
        """Make an image of a root file system, a tar file. Raises DevError."""
        self._do("import", str(archive), name)

    def build(self, file: Path, context: Path, target: str, name: str, arguments: Mapping[str, str]) -> None:
        """Build one target of a Dockerfile.

        Args:
            file: the Dockerfile.
            context: the folder it may copy from.
            target: of the Dockerfile.
            name: of the image, with its tag.
            arguments: of the build, by name.

        Raises:
            DevError: it failed; the message has its last words.
        """
        values = dict(arguments)
        command = [
            *self._command,
            "build",
            "--network",
            "host",
            "--file",
            str(file),
            "--target",
            target,
            "--tag",
            name,
        ]
        authorities = os.environ.get("SSL_CERT_FILE")
        if self.is_podman and authorities:
            # This machine trusts authorities of its own, and so must what is built on it.
            command += ["--volume", f"{authorities}:{authorities}:ro"]
            values |= {"SSL_CERT_FILE": authorities, "PIP_CERT": authorities}
        for each, value in values.items():
            command += ["--build-arg", f"{each}={value}"]
        run_step(f"image-{target}", [*command, str(context)], context, {"DOCKER_BUILDKIT": "1"})

    def tag(self, name: str, other: str) -> None:
        """Give an image another name, too. Raises DevError."""
        self._do("tag", name, other)

    def save(self, name: str, stream: IO[bytes]) -> None:
        """Write an image as an archive that Docker, podman, kind and containerd read. Raises DevError."""
        command = [*self._command, "save", name]
        timeout = COMMAND_TIMEOUT_SECONDS
        done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, timeout=timeout, check=False)
        if done.returncode != 0:
            raise DevError(f"image {name} could not be saved: {done.stderr.decode(errors='replace').strip()}")

    def size_bytes(self, name: str) -> int:
        """Return the size of an image, unpacked. Raises DevError."""
        return int(self._do("image", "inspect", "--format", "{{.Size}}", name))

    def size_above_bytes(self, name: str, mark: str) -> int:
        """Return the size of those layers that were made after the step whose text holds `mark`. Raises DevError."""
        steps = self._do("image", "history", "--no-trunc", "--format", "{{.Size}}\t{{.CreatedBy}}", name).splitlines()
        above = list(takewhile(lambda step: mark not in step, steps))
        if len(above) == len(steps):
            raise DevError(f"image {name} has no step with {mark}")
        return sum(size_in_bytes(step.partition("\t")[0]) for step in above)

    def run(self, name: str, *command: str, script: str) -> str:
        """Run a command in a container without a network; answers its output. Raises DevError.

        Args:
            name: of the image.
            command: program and arguments.
            script: its standard input.
        """
        options = ["--rm", "--interactive", "--network", "none", *LIMITS, "--entrypoint", command[0]]
        return self._do("run", *options, name, *command[1:], text=script)

    def _do(self, *arguments: str, text: str | None = None) -> str:
        done = self._run(*arguments, text=text)
        if done.returncode != 0:
            raise DevError(f"{self.program.name} {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def _run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [*self._command, *arguments]
        return subprocess.run(
            command, input=text or "", capture_output=True, text=True, timeout=COMMAND_TIMEOUT_SECONDS, check=False
        )


def size_in_bytes(text: str) -> int:
    """Return what a size such as `55.9 MB`, `1.2GB` or `0B` says."""
    found = re.fullmatch(r"([0-9.]+) ?([kMG]?)B?", text.strip())
    if found is None:
        raise DevError(f"{text!r} is no size")
    return int(float(found[1]) * {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}[found[2]])
