"""The `stopics` program: what all commands have in common."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from scalable_topics_operator.cli.kubernetes import CHOSEN_CONTEXT

app = typer.Typer(
    name="stopics",
    help="Scalable topics: what they are like, what the operator does and why, and changes by hand.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
policy = typer.Typer(help="Automatic split and merge: which knobs apply.", no_args_is_help=True)
app.add_typer(policy, name="policy")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("scalable-topics"))
        raise typer.Exit


@app.callback()
def common(
    context: Annotated[
        str | None, typer.Option("--context", help="Context of the kubeconfig; else its current one.")
    ] = None,
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Take what goes before the command."""
    CHOSEN_CONTEXT.set(context)
