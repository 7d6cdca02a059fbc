"""`stopics migrate`: one topic, or many in waves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from scalable_topics_operator.cli.faults import BadUsage, Refused
from scalable_topics_operator.cli.kubernetes import api_server
from scalable_topics_operator.cli.migration_tables import ended_row, planned_row, show_many, show_report, show_result
from scalable_topics_operator.cli.migrations import DeclaredTopic, find_declared, list_declared, run_migration
from scalable_topics_operator.cli.operations import Ended, raise_for
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import for_machines, people, tell
from scalable_topics_operator.cli.progress import Steps, steps
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.segment_operations import SUCCEEDED

_LOOKS_AT_A_TIME = 5


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """What `stopics migrate` was asked for.

    Args:
        name: of one topic; None for many.
        namespace: of the objects; None for the kubeconfig's.
        selector: labels of many.
        all_namespaces: whether `namespace` is all there are.
        plan: whether many are only looked at.
        dry_run: whether one is only looked at.
        force: whether clients that do not know scalable topics are cut off.
        yes: whether nobody is asked.
        wave: how many are migrated at a time.
        timeout_seconds: how long each is waited for.
        output: how the answer is shown.
    """

    name: str | None
    namespace: str | None
    selector: str | None
    all_namespaces: bool
    plan: bool
    dry_run: bool
    force: bool
    yes: bool
    wave: int
    timeout_seconds: float
    output: Output

    def check(self) -> None:
        """Raises BadUsage for what does not go together."""
        if (self.name is None) == (self.selector is None):
            raise BadUsage("name one topic, or choose many with --selector")
        if self.name is not None and (self.plan or self.all_namespaces or self.yes):
            raise BadUsage("--plan, --all-namespaces and --yes go with --selector; of one topic use --dry-run")
        if self.selector is not None and self.dry_run:
            raise BadUsage("--dry-run is for one topic; with --selector use --plan")
        if self.selector is not None and not self.selector.strip():
            raise BadUsage("--selector names no labels; write key=value")
        if self.all_namespaces and self.namespace is not None:
            raise BadUsage("--all-namespaces and --namespace exclude each other")


async def migrate(options: MigrateOptions) -> None:
    """Do what was asked for and show it. Raises CliError, also where something that was shown is a refusal."""
    options.check()
    console = people()
    async with api_server() as kube:
        if options.name is not None:
            await _migrate_one(kube, options, options.name, console)
        else:
            await _migrate_many(kube, options, console)


async def _migrate_one(kube: KubeClient, options: MigrateOptions, name: str, console: Console) -> None:
    topic = await find_declared(kube, name, options.namespace or kube.default_namespace)
    if topic.is_scalable:
        raise Refused(f"ScalableTopic {topic}: {topic.topic} is a scalable topic already")
    with steps(f"migrating {topic}") as told:
        ended = await _run(kube, options, topic, told, dry_run=options.dry_run)
    if not options.output.is_for_people:
        for_machines(options.output, _one_as_json(topic, ended))
    elif ended.report:
        show_report(console, topic, ended)
    elif ended.phase == SUCCEEDED:
        show_result(console, topic, ended)
    raise_for([ended], f"{topic}: ")


async def _migrate_many(kube: KubeClient, options: MigrateOptions, console: Console) -> None:
    namespace = None if options.all_namespaces else options.namespace or kube.default_namespace
    topics = await list_declared(kube, namespace, options.selector or "")
    if not topics:
        raise Refused(f"no ScalableTopic in {namespace or 'any namespace'} has the labels {options.selector}")
    waiting = [topic for topic in topics if not topic.is_scalable]
    looks = await _look(kube, options, waiting)
    planned = [planned_row(topic, looks.get(topic)) for topic in topics]
    if options.plan:
        if not options.output.is_for_people:
            for_machines(options.output, {"topics": planned})
        else:
            show_many(console, planned, "verdict")
        return raise_for(list(looks.values()), "")
    if not waiting:
        if not options.output.is_for_people:
            for_machines(options.output, {"topics": planned})
        return tell(f"all {len(topics)} topics are scalable already")
    # What is answered to machines is what became of it; people are asked.
    show_many(people(stderr=not options.output.is_for_people), planned, "verdict")
    question = f"Migrate {len(waiting)} topics in waves of {options.wave}? This cannot be taken back"
    if not options.yes and not typer.confirm(question, err=True):
        raise Refused("nothing was migrated")
    ended = await _in_waves(kube, options, waiting)
    rows = [ended_row(topic, ended.get(topic)) if topic in waiting else planned_row(topic, None) for topic in topics]
    if not options.output.is_for_people:
        for_machines(options.output, {"topics": rows})
    else:
        show_many(console, rows, "result")
    left = len(waiting) - len(ended)
    raise_for(list(ended.values()), f"{left} topics were not begun; " if left else "")
    return None


async def _look(
    kube: KubeClient, options: MigrateOptions, topics: Sequence[DeclaredTopic]
) -> dict[DeclaredTopic, Ended]:
    room = asyncio.Semaphore(_LOOKS_AT_A_TIME)

    with steps("looking", len(topics)) as told:

        async def look(topic: DeclaredTopic) -> Ended:
            async with room:
                return await _run(kube, options, topic, told, dry_run=True)

        return dict(zip(topics, await asyncio.gather(*map(look, topics)), strict=True))


async def _in_waves(
    kube: KubeClient, options: MigrateOptions, topics: Sequence[DeclaredTopic]
) -> dict[DeclaredTopic, Ended]:
    """What became of those that were begun: the first failure ends it after its wave."""
    ended: dict[DeclaredTopic, Ended] = {}
    with steps("migrating", len(topics)) as told:
        for first in range(0, len(topics), options.wave):
            wave = topics[first : first + options.wave]
            told.tell(f"wave {first // options.wave + 1}: {', '.join(map(str, wave))}")
            found = await asyncio.gather(*(_run(kube, options, topic, told, dry_run=False) for topic in wave))
            ended |= dict(zip(wave, found, strict=True))
            if any(one.phase != SUCCEEDED for one in found):
                break
    return ended


async def _run(kube: KubeClient, options: MigrateOptions, topic: DeclaredTopic, told: Steps, *, dry_run: bool) -> Ended:
    ended = await run_migration(
        kube, topic, force=options.force, dry_run=dry_run, timeout_seconds=options.timeout_seconds, tell=told.tell
    )
    told.advance()
    return ended


def _one_as_json(topic: DeclaredTopic, ended: Ended) -> Mapping[str, Any]:
    return {
        "scalableTopic": str(topic),
        "topic": topic.topic,
        "operation": ended.place(topic.namespace),
        "phase": ended.phase,
        "reason": ended.reason,
        "message": ended.message,
        "migration": dict(ended.report) or None,
    }
