"""Commands that have the operator change something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from scalable_topics_operator.cli.app import app
from scalable_topics_operator.cli.change_command import ChangeOptions, change, hash_of
from scalable_topics_operator.cli.faults import BadUsage
from scalable_topics_operator.cli.migrate_command import MigrateOptions, migrate
from scalable_topics_operator.cli.options import (
    AllNamespaces,
    As,
    DryRun,
    Name,
    Namespace,
    OptionalName,
    Output,
    Selector,
    Timeout,
)
from scalable_topics_operator.cli.printing import finish

Segment = Annotated[int, typer.Argument(min=0, help="Id of an active segment.", show_default=False)]


@app.command()
def split(
    name: Name,
    segment: Segment,
    at: Annotated[
        str | None,
        typer.Option("--at", help="First hash of the second part, four hexadecimal digits; else the middle."),
    ] = None,
    into: Annotated[int | None, typer.Option("--into", min=2, max=64, help="How many equal parts; else two.")] = None,
    namespace: Namespace = None,
    dry_run: DryRun = False,
    timeout: Timeout = 120,
    output: As = Output.TABLE,
) -> None:
    """Seal a segment and go on with several that share its range."""

    async def work() -> None:
        if at is not None and into is not None:
            raise BadUsage("--at makes exactly two parts; leave out --at, or --into")
        block: dict[str, Any] = {"segment": segment}
        if at is not None:
            block["at"] = hash_of(at)
        if into is not None:
            block["into"] = into
        await change(ChangeOptions(name, namespace, dry_run, timeout, output), "Split", block)

    finish(work())


@app.command()
def merge(
    name: Name,
    segments: Annotated[
        list[int],
        typer.Argument(help="Two or more active segments that touch, in any order.", show_default=False),
    ],
    namespace: Namespace = None,
    dry_run: DryRun = False,
    timeout: Timeout = 120,
    output: As = Output.TABLE,
) -> None:
    """Seal neighbouring segments and go on with one that has their ranges."""

    async def work() -> None:
        if len(set(segments)) < 2:
            raise BadUsage("a merge takes two segments or more")
        block: Mapping[str, Any] = {"segments": segments}
        await change(ChangeOptions(name, namespace, dry_run, timeout, output), "Merge", block)

    finish(work())


@app.command()
def rebucket(
    name: Name,
    segment: Segment,
    buckets: Annotated[
        int, typer.Option("--buckets", min=1, max=1024, help="Entry buckets of its successor.", show_default=False)
    ],
    namespace: Namespace = None,
    dry_run: DryRun = False,
    timeout: Timeout = 120,
    output: As = Output.TABLE,
) -> None:
    """Seal a segment and go on with one of the same range and another number of entry buckets."""
    block = {"segment": segment, "buckets": buckets}
    finish(change(ChangeOptions(name, namespace, dry_run, timeout, output), "Rebucket", block))


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
        name, namespace, selector, all_namespaces, plan, dry_run, force, yes, wave, timeout, output
    )
    finish(migrate(options))
