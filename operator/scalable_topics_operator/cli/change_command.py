"""`stopics split`, `merge` and `rebucket`: one operation on a topic's segments, waited for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from scalable_topics.layout import LAST_HASH
from scalable_topics_operator.cli.faults import BadUsage
from scalable_topics_operator.cli.kubernetes import api_server, find_object
from scalable_topics_operator.cli.operations import Ended, Wanted, raise_for, run_operation
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import for_machines, people
from scalable_topics_operator.cli.progress import steps
from scalable_topics_operator.cli.tables import cells, line, table
from scalable_topics_operator.cluster.segment_operations import SUCCEEDED

_HASH = re.compile(r"(?:0x)?([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """How a change is made.

    Args:
        name: of the ScalableTopic, or its topic's.
        namespace: of the object; None for the kubeconfig's.
        dry_run: whether nothing is changed.
        timeout_seconds: how long it is waited for.
        output: how the result is shown.
    """

    name: str
    namespace: str | None
    dry_run: bool
    timeout_seconds: float
    output: Output


async def change(options: ChangeOptions, kind: str, block: Mapping[str, Any]) -> None:
    """Have a change made, and show what came of it. Raises CliError, also where it failed.

    Args:
        options: how.
        kind: `Split`, `Merge` or `Rebucket`.
        block: what it needs, as a SegmentOperation has it.
    """
    async with api_server() as kube:
        metadata = (await find_object(kube, options.name, options.namespace))["metadata"]
        wanted = Wanted(metadata["namespace"], metadata["name"], kind, block, options.dry_run)
        with steps(f"{kind} of {wanted}") as told:
            ended = await run_operation(kube, wanted, timeout_seconds=options.timeout_seconds, tell=told.tell)
    if not options.output.is_for_people:
        for_machines(options.output, ended_json(wanted, ended))
    elif ended.phase == SUCCEEDED:
        show_ended(people(), wanted, ended)
    raise_for([ended], f"{wanted}: ")


def hash_of(text: str) -> int:
    """A place on the ring as people write it: four hexadecimal digits. Raises BadUsage."""
    found = _HASH.fullmatch(text)
    if found is None or int(found[1], 16) == 0:
        raise BadUsage(f"{text!r} is no place to split at: write four hexadecimal digits, 0001 to {LAST_HASH:04x}")
    return int(found[1], 16)


def ended_json(wanted: Wanted, ended: Ended) -> Mapping[str, Any]:
    """What became of an operation, for machines."""
    return {
        "scalableTopic": str(wanted),
        "operation": ended.place(wanted.namespace),
        "dryRun": wanted.dry_run,
        "phase": ended.phase,
        "reason": ended.reason,
        "message": ended.message,
        "plan": dict(ended.plan) or None,
    }


def show_ended(console: Console, wanted: Wanted, ended: Ended) -> None:
    """What became of an operation that went well."""
    line(console, "topic", str(wanted))
    line(console, "result", ended.message, "green")
    if not wanted.dry_run:
        line(console, "operation", f"{wanted.namespace}/{ended.operation}")
    shown = table("", "segment", "range", "buckets")
    for label, key in (("seals", "parents"), ("makes", "children")):
        for one in ended.plan.get(key) or ():
            shown.add_row(*cells(label, one.get("id"), one.get("range"), one.get("buckets")))
    if shown.row_count:
        console.print(shown)
    if subscriptions := ended.plan.get("subscriptions"):
        line(console, "cursors on each", ", ".join(subscriptions))
    for note in ended.plan.get("notes") or ():
        line(console, "note", note)
