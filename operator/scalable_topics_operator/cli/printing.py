"""How answers get to people and machines."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import typer
import yaml
from rich.console import Console

from scalable_topics.printable import printable
from scalable_topics_operator.cli.faults import CliError
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.kube_errors import KubeForbidden

T = TypeVar("T")

_PIPE_COLUMNS = 200


def people(*, stderr: bool = False) -> Console:
    """Where texts for people go; names in them are no markup."""
    console = Console(highlight=False, markup=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # Files and pipes are as wide as it takes.
        console.width = _PIPE_COLUMNS
    return console


def for_machines(output: Output, answer: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print an answer as JSON or YAML."""
    if output is Output.YAML:
        typer.echo(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True).rstrip())
    else:
        typer.echo(json.dumps(answer, indent=2))


def tell(text: str) -> None:
    """A line beside the answer."""
    typer.echo(printable(text, "?"), err=True)


async def as_allowed(look: Awaitable[list[Body]]) -> list[Body]:
    """The objects that are looked for; none, and a line that says so, where the user may not see them."""
    try:
        return await look
    except KubeForbidden as error:
        tell(f"stopics: not shown to you: {error}")
        return []


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a command to its end; a failure is one line and an exit code."""
    try:
        return asyncio.run(work)
    except CliError as error:
        tell(f"stopics: {' '.join(str(error).split())}")
        raise typer.Exit(error.exit_code) from None
