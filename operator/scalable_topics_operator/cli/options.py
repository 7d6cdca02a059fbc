"""Options that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from scalable_topics_operator.cli.completion import complete_subscription, complete_topic
from scalable_topics_operator.cli.gateway_access import OPERATOR_NAMESPACE, TOKEN_VARIABLE, GatewayOptions


class Output(StrEnum):
    """How an answer is shown."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def is_for_people(self) -> bool:
        """Whether it is a text for people, and not the answer as it came."""
        return self in (Output.TABLE, Output.WIDE)


Name = Annotated[
    str,
    typer.Argument(
        help="A ScalableTopic object, or topic://tenant/namespace/name.",
        autocompletion=complete_topic,
        show_default=False,
    ),
]
OptionalName = Annotated[
    str | None,
    typer.Argument(
        help="A ScalableTopic object, or the topic that one declares.",
        autocompletion=complete_topic,
        show_default=False,
    ),
]
Selector = Annotated[
    str | None, typer.Option("--selector", "-l", help="Labels of ScalableTopics, as kubectl takes them: key=value,...")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all Kubernetes namespaces.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Kubernetes namespace of the object; else the kubeconfig's.")
]
As = Annotated[
    Output, typer.Option("--output", "-o", help="For people, with more columns, or for machines.", show_choices=True)
]
NoLoad = Annotated[bool, typer.Option("--no-load", help="Do not ask the gateway for load and backlog.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing: say what would be done.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait; what has not ended goes on.")]
OptionalSubscription = Annotated[
    str | None,
    typer.Argument(
        help="Name of a subscription; all if left out.", autocompletion=complete_subscription, show_default=False
    ),
]
# By the fields of GatewayOptions.
_GATEWAY: dict[str, Any] = {
    "url": Annotated[
        str | None,
        typer.Option(
            "--gateway",
            envvar="STOPICS_GATEWAY",
            help="URL of the operator's gateway; else it is found with the kubeconfig.",
        ),
    ],
    "token_file": Annotated[
        Path | None, typer.Option("--token-file", help=f"File with a token for the gateway; else ${TOKEN_VARIABLE}.")
    ],
    "service_account": Annotated[
        str | None,
        typer.Option(
            "--service-account",
            envvar="STOPICS_SERVICE_ACCOUNT",
            help="namespace/name to request a token of, where none is given; else the operator's own.",
        ),
    ],
    "operator_namespace": Annotated[
        str | None,
        typer.Option(
            "--operator-namespace",
            envvar="STOPICS_OPERATOR_NAMESPACE",
            help=f"Where the operator runs; else {OPERATOR_NAMESPACE}, or on this machine.",
        ),
    ],
}


def with_gateway(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options by which the gateway is found; it takes them as one argument, `access`."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(access=GatewayOptions(**{name: given.pop(name) for name in _GATEWAY}), **given)

    own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "access"]
    options = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)
        for name, annotation in _GATEWAY.items()
    ]
    # What typer reads.
    run.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    return run
