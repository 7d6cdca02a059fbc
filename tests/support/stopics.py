"""`stopics` as people run it, with a kubeconfig and what they have set."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from scalable_topics_operator.cli.main import app
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.callers import token_for

_PROGRAM = "from scalable_topics_operator.cli.main import run; run()"
_COLUMNS = "400"


@dataclass(frozen=True, slots=True)
class Said:
    """What a command has said.

    Args:
        code: its exit code.
        output: what went to stdout.
        errors: what went to stderr.
    """

    code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        """The answer for machines."""
        return json.loads(self.output)

    @property
    def lines(self) -> list[str]:
        """The answer for people, with single blanks."""
        return [" ".join(line.split()) for line in self.output.splitlines()]

    def done(self) -> Said:
        """Itself, if it went well."""
        assert self.code == 0, f"{self.code}: {self.errors}{self.output}"
        return self


async def stopics(*words: str, **environment: str) -> Said:
    """Run a command to its end. It has an event loop of its own, and so a thread."""
    blank = {name: None for name in os.environ if name.startswith("STOPICS_")}
    settings = {**blank, "COLUMNS": _COLUMNS, **environment}
    result = await asyncio.to_thread(CliRunner().invoke, app, list(words), env=settings)
    return Said(result.exit_code, result.stdout, result.stderr)


@asynccontextmanager
async def running_stopics(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command as a process of its own, which is killed afterwards unless it has ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STOPICS_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", _PROGRAM, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
        env={**environment, "COLUMNS": _COLUMNS},
        # Whoever runs the tests in the background ignores Ctrl-C, and so would the command.
        preexec_fn=_heed_interrupts,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


async def kubeconfig_of(kube: KubeClient, like: Path, folder: Path, namespace: str, account: str) -> Path:
    """A kubeconfig of a service account, whose token comes from a program, as those of clouds do.

    Args:
        kube: an administrator's client.
        like: a kubeconfig of the same API server.
        folder: where it is written.
        namespace: of the account, and the kubeconfig's default one.
        account: its name.
    """
    token = await token_for(kube, namespace, account)
    return await asyncio.to_thread(_write, like, folder, namespace, account, token)


def _write(like: Path, folder: Path, namespace: str, account: str, token: str) -> Path:
    credential = folder / "credential.json"
    credential.write_text(json.dumps({"status": {"token": token}}))
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [str(credential)]}
    config = yaml.safe_load(like.read_text())
    (cluster,) = config["clusters"]
    context = {"cluster": cluster["name"], "user": account, "namespace": namespace}
    config |= {
        "users": [{"name": account, "user": {"exec": program}}],
        "contexts": [{"name": account, "context": context}],
        "current-context": account,
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
