"""Commands about an installation, and about policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scalable_topics_operator.cli.app import app
from scalable_topics_operator.cli.backtest_command import BacktestOptions, backtest
from scalable_topics_operator.cli.doctor_command import doctor
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.options import (
    As,
    Namespace,
    OptionalName,
    Output,
    with_gateway,
)
from scalable_topics_operator.cli.printing import finish
from scalable_topics_operator.cli.report_command import report


@app.command(name="doctor")
@with_gateway
def look_at_all(
    namespace: Namespace = None,
    output: As = Output.TABLE,
    *,
    access: GatewayOptions,
) -> None:
    """Check connection, rights, versions, leaders, load and topics; a line each, with what to do."""
    finish(doctor(namespace, output, access))


@app.command(name="report")
@with_gateway
def make_report(
    namespace: Namespace = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Where to write it; named by the time if left out.")
    ] = None,
    log_lines: Annotated[int, typer.Option("--log-lines", min=0, help="Of each container, the last ones.")] = 10_000,
    *,
    access: GatewayOptions,
) -> None:
    """Write a support bundle: objects, Events, Leases, logs and metrics, without secrets."""
    finish(report(namespace, file, log_lines, access))


@app.command(name="backtest")
@with_gateway
def run_backtest(
    policies: Annotated[
        list[Path],
        typer.Option("--policy", help="The policy on trial, YAML or JSON; may be given again, widest first."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the report; made if it is missing.")],
    name: OptionalName = None,
    namespace: Namespace = None,
    present: Annotated[
        list[Path] | None,
        typer.Option("--present-policy", help="The policy in force; asked of the gateway for a named topic."),
    ] = None,
    history_path: Annotated[
        str | None, typer.Option("--history-path", help="The history of load; else that of the topic's connection.")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="From when on, UTC: 2026-11-28 or 2026-11-28T06:00.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Until when, in the same form.")] = None,
    master: Annotated[str | None, typer.Option("--master", help="Spark master; else local[*].")] = None,
    *,
    access: GatewayOptions,
) -> None:
    """Show what another policy would have done with recorded load. Needs the spark extra."""
    passed = {"--from": begin, "--to": end, "--master": master}
    options = BacktestOptions(name, namespace, tuple(policies), tuple(present or ()), history_path, out, passed)
    finish(backtest(options, access))
