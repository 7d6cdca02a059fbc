"""`stopics`: the commands and their options."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from scalable_topics_operator.cli.faults import BadUsage, CliError
from scalable_topics_operator.cli.gateway_client import ask_gateway
from scalable_topics_operator.cli.kubernetes import find_topic, token_of
from scalable_topics_operator.cli.migrate_command import MigrateOptions, migrate
from scalable_topics_operator.cli.tables import show_explanation, show_policy
from scalable_topics_operator.cluster.reviews import AUDIENCE

T = TypeVar("T")

# A token on the command line would be seen by everybody on the machine.
TOKEN_VARIABLE = "STOPICS_TOKEN"


class Output(StrEnum):
    """How an answer is shown."""

    TABLE = "table"
    JSON = "json"


app = typer.Typer(
    name="stopics",
    help="Scalable topics: what the operator knows and why it does what it does.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
policy = typer.Typer(help="Automatic split and merge: which knobs apply.", no_args_is_help=True)
app.add_typer(policy, name="policy")

Name = Annotated[str, typer.Argument(help="A ScalableTopic object, or topic://tenant/namespace/name.")]
OptionalName = Annotated[str | None, typer.Argument(help="A ScalableTopic object, or the topic that one declares.")]
Selector = Annotated[
    str | None, typer.Option("--selector", "-l", help="Labels of ScalableTopics, as kubectl takes them: key=value,...")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Select in all Kubernetes namespaces.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Kubernetes namespace of the object; else the kubeconfig's.")
]
As = Annotated[Output, typer.Option("--output", "-o", help="table, or the gateway's JSON as it came.")]
GatewayUrl = Annotated[str, typer.Option("--gateway", envvar="STOPICS_GATEWAY", help="URL of the operator's gateway.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help=f"File with a token for the gateway; else ${TOKEN_VARIABLE}.")
]
ServiceAccount = Annotated[
    str | None,
    typer.Option(
        "--service-account",
        envvar="STOPICS_SERVICE_ACCOUNT",
        help="namespace/name to request a token of, where none is given.",
    ),
]
DEFAULT_GATEWAY = "http://127.0.0.1:8081"


@app.command()
def explain(
    name: Name,
    namespace: Namespace = None,
    output: As = Output.TABLE,
    gateway: GatewayUrl = DEFAULT_GATEWAY,
    token_file: TokenFile = None,
    service_account: ServiceAccount = None,
) -> None:
    """Show the last decision about a topic, and why every other rule did not act."""
    _show("autoScale/explain", show_explanation, name, namespace, output, gateway, token_file, service_account)


@policy.command()
def resolve(
    name: Name,
    namespace: Namespace = None,
    output: As = Output.TABLE,
    gateway: GatewayUrl = DEFAULT_GATEWAY,
    token_file: TokenFile = None,
    service_account: ServiceAccount = None,
) -> None:
    """Show every knob that applies to a topic, and which level gave it."""
    _show("autoScalePolicy/effective", show_policy, name, namespace, output, gateway, token_file, service_account)


@app.command(name="migrate")
def migrate_topics(
    name: OptionalName = None,
    namespace: Namespace = None,
    selector: Selector = None,
    all_namespaces: AllNamespaces = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing: report what one topic would meet.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Change nothing: a line for each of the selected topics.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Cut clients off that do not know scalable topics.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wave: Annotated[int, typer.Option("--wave", min=1, max=50, help="How many topics at a time.")] = 5,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for each.")] = 600,
    output: As = Output.TABLE,
) -> None:
    """Make ordinary topics scalable ones, with your kubeconfig. This cannot be taken back."""
    options = MigrateOptions(
        name, namespace, selector, all_namespaces, plan, dry_run, force, yes, wave, timeout, output is Output.JSON
    )
    _finish(migrate(options))


def run() -> None:
    """The console script."""
    app()


def _show(
    what: str,
    show: Callable[[Console, dict[str, Any]], None],
    name: str,
    namespace: str | None,
    output: Output,
    gateway: str,
    token_file: Path | None,
    service_account: str | None,
) -> None:
    async def ask() -> dict[str, Any]:
        given = _given_token(token_file)
        if given is None and service_account is None:
            raise BadUsage(
                f"no token for the gateway: set {TOKEN_VARIABLE} or --token-file (kubectl create token NAME --audience "
                f"{AUDIENCE}), or --service-account namespace/name"
            )
        ref = await find_topic(name, namespace)
        token = given if given is not None else await token_of(service_account or "")
        return await ask_gateway(gateway, token, ref, what)

    answer = _finish(ask())
    if output is Output.JSON:
        typer.echo(json.dumps(answer, indent=2))
    else:
        show(Console(highlight=False, markup=False), answer)


def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; a failure is one line and an exit code."""
    try:
        return asyncio.run(work)
    except CliError as error:
        typer.echo(f"stopics: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(error.exit_code) from None


def _given_token(token_file: Path | None) -> str | None:
    """The token that the user gives, if any. Raises BadUsage."""
    if token_file is None:
        token, where = os.environ.get(TOKEN_VARIABLE), TOKEN_VARIABLE
        if token is None:
            return None
    else:
        where = str(token_file)
        try:
            token = token_file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise BadUsage(f"the token file {token_file} cannot be read: {type(error).__name__}") from None
    token = token.strip()
    if not token or not token.isascii() or len(token.split()) != 1:
        raise BadUsage(f"{where} holds no token")
    return token
