"""Commands that show something and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from scalable_topics_operator.cli.app import app, policy
from scalable_topics_operator.cli.completion import complete_topic
from scalable_topics_operator.cli.drain_command import drain
from scalable_topics_operator.cli.gateway_access import GatewayOptions, gateway
from scalable_topics_operator.cli.get_command import GetOptions, describe, get
from scalable_topics_operator.cli.kubernetes import find_topic
from scalable_topics_operator.cli.layout_command import LayoutOptions, layout
from scalable_topics_operator.cli.options import (
    AllNamespaces,
    As,
    Name,
    Namespace,
    NoLoad,
    OptionalName,
    OptionalSubscription,
    Output,
    Selector,
    Timeout,
    with_gateway,
)
from scalable_topics_operator.cli.printing import finish, for_machines, people
from scalable_topics_operator.cli.route_command import show_route
from scalable_topics_operator.cli.subscriptions_command import subscriptions
from scalable_topics_operator.cli.tables import show_explanation, show_policy
from scalable_topics_operator.cli.watch_command import WatchOptions, watch


@app.command(name="get")
def get_topics(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="ScalableTopics, or topics that they declare; all if left out.", autocompletion=complete_topic
        ),
    ] = None,
    namespace: Namespace = None,
    selector: Selector = None,
    all_namespaces: AllNamespaces = False,
    output: As = Output.TABLE,
) -> None:
    """List topics."""
    finish(get(GetOptions(tuple(names or ()), namespace, selector, all_namespaces, output)))


@app.command(name="describe")
def describe_topic(name: Name, namespace: Namespace = None, output: As = Output.TABLE) -> None:
    """Show how a topic stands: conditions, segments, subscriptions, operations, reports and Events."""
    finish(describe(name, namespace, output))


@app.command(name="layout")
@with_gateway
def show_layout(
    name: Name,
    namespace: Namespace = None,
    epochs: Annotated[int, typer.Option("--epochs", min=0, help="How many of the newest epochs; 0 for all.")] = 20,
    no_load: NoLoad = False,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Show a topic's ring over its epochs, with load and backlog of its segments."""
    finish(layout(name, namespace, output, LayoutOptions(epochs, output is Output.WIDE), None if no_load else access))


@app.command(name="watch")
@with_gateway
def watch_topics(
    name: OptionalName = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    interval: Annotated[float, typer.Option("--interval", min=0.5, help="Seconds between two looks at load.")] = 5,
    for_seconds: Annotated[
        float | None, typer.Option("--for", min=0, help="Seconds after which it ends by itself.")
    ] = None,
    no_load: NoLoad = False,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Show a topic's layout, or the list of topics, as they change. Ctrl-C ends it."""
    options = WatchOptions(name, namespace, all_namespaces, output, interval, for_seconds)
    try:
        finish(watch(options, None if no_load else access))
    except KeyboardInterrupt:
        raise typer.Exit from None


@app.command(name="route")
def route_key(
    name: Name,
    keys: Annotated[list[str], typer.Argument(help="Keys of messages, or their ordering keys.", show_default=False)],
    namespace: Namespace = None,
    is_base64: Annotated[bool, typer.Option("--base64", help="The keys are bytes, written as base64.")] = False,
    output: As = Output.TABLE,
) -> None:
    """Show which segment and entry bucket a key goes to."""
    finish(show_route(name, keys, namespace, output, is_base64=is_base64))


@app.command(name="subscriptions")
@with_gateway
def show_subscriptions(
    name: Name,
    subscription: OptionalSubscription = None,
    namespace: Namespace = None,
    no_load: NoLoad = False,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Show subscriptions, their backlog, and which consumer reads what."""
    finish(subscriptions(name, subscription, namespace, output, None if no_load else access))


@app.command(name="drain")
@with_gateway
def show_drain(
    name: Name,
    segments: Annotated[list[int] | None, typer.Argument(help="Sealed segments; all if left out.")] = None,
    namespace: Namespace = None,
    timeout: Timeout = 60,
    no_load: NoLoad = False,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Show what holds sealed segments. Asks the operator by the dry run of a prune, which goes after five minutes."""
    finish(drain(name, segments or (), namespace, output, timeout, None if no_load else access))


@app.command()
@with_gateway
def explain(
    name: Name,
    namespace: Namespace = None,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Show the last decision about a topic, and why every other rule did not act."""
    _show("autoScale/explain", show_explanation, name, namespace, output, access)


@policy.command()
@with_gateway
def resolve(
    name: Name,
    namespace: Namespace = None,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Show every knob that applies to a topic, and which level gave it."""
    _show("autoScalePolicy/effective", show_policy, name, namespace, output, access)


def _show(
    what: str,
    show: Callable[[Console, dict[str, Any]], None],
    name: str,
    namespace: str | None,
    output: Output,
    access: GatewayOptions,
) -> None:
    async def ask() -> dict[str, Any]:
        ref = await find_topic(name, namespace)
        async with gateway(access) as asked:
            return await asked.ask(ref, what)

    answer = finish(ask())
    if output.is_for_people:
        show(people(), answer)
    else:
        for_machines(output, answer)
