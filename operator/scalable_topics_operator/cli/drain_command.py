"""`stopics drain`: what holds sealed segments in the layout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.cli.faults import Refused
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.kubernetes import api_server, find_object, list_of, ref_of
from scalable_topics_operator.cli.operations import Wanted, raise_for, run_operation
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import as_allowed, for_machines, people, tell
from scalable_topics_operator.cli.segment_facts import TopicFacts, facts_source
from scalable_topics_operator.cli.tables import cells, line, table
from scalable_topics_operator.cli.topic_view import TopicView, age, ids
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.cluster.segment_operations import FAILED

MAY_GO = "nothing: it goes at the next prune"
# As the operator's plan of a prune says it.
_NOTE = re.compile(r"segment (\d+): (.+)", re.DOTALL)


async def drain(
    name: str,
    segments: Sequence[int],
    namespace: str | None,
    output: Output,
    timeout_seconds: float,
    access: GatewayOptions | None,
) -> None:
    """Show what holds each sealed segment. Raises CliError.

    Args:
        name: of the ScalableTopic, or its topic's.
        segments: only these; all that are sealed if empty.
        namespace: of the object; None for the kubeconfig's.
        output: how it is shown.
        timeout_seconds: how long the operator is waited for.
        access: how the gateway is reached; None if it is not to be asked.
    """
    async with api_server() as kube:
        view = TopicView(await find_object(kube, name, namespace))
        found = view.layout()
        chosen = _chosen(found, segments)
        if not chosen:
            return _show(output, view, [], TopicFacts())
        # The operator itself judges, and a dry run changes nothing.
        wanted = Wanted(view.namespace, view.name, "Prune", {"segments": chosen}, True)
        ended = await run_operation(kube, wanted, timeout_seconds=timeout_seconds, tell=tell)
        # Where brokers own the layout they prune it themselves, and what is known of it is shown.
        if ended.phase != FAILED:
            raise_for([ended], f"{wanted}: ")
        ordered = await as_allowed(list_of(kube, SUBSCRIPTIONS, view.body))
    async with facts_source(access) as source:
        facts = await source.look(ref_of(view.body), found)
    held = dict(held_by(ended.plan.get("notes") or ())) if ended.phase != FAILED else None
    if held is None:
        tell(f"stopics: what holds them is not told: {ended.reason}: {ended.message}")
    return _show(output, view, drain_rows(found, chosen, held, ordered, facts), facts)


def held_by(notes: Sequence[str]) -> Mapping[int, str]:
    """Why segments stay, by id, from the operator's plan of a prune. Pure."""
    return {int(match[1]): match[2] for note in notes if (match := _NOTE.fullmatch(note))}


def drain_rows(
    layout: SegmentLayout,
    chosen: Sequence[int],
    held: Mapping[int, str] | None,
    ordered: Sequence[Body],
    facts: TopicFacts,
) -> list[dict[str, Any]]:
    """What is known of each sealed segment. Pure.

    Args:
        layout: the segments.
        chosen: ids of those that are shown.
        held: why they stay; None if nobody says.
        ordered: the topic's ScalableTopicSubscriptions.
        facts: what the gateway knows.
    """
    return [
        {
            "segment": one,
            "range": layout.segment(one).hash_range.descriptor,
            "sealedAtMs": layout.segment(one).sealed_at_ms,
            "children": list(layout.segment(one).child_ids),
            "heldBy": None if held is None else held.get(one, ""),
            "backlog": None if (backlog := facts.of(one).backlog) is None else dict(backlog),
            "drainedBy": [body["spec"]["subscription"] for body in ordered if one in _drained(body)],
            "readers": [
                {"subscription": body["spec"]["subscription"], "consumer": consumer["name"]}
                for body in ordered
                for consumer in (body.get("status") or {}).get("consumers") or ()
                if any(part.get("segment") == one for part in consumer.get("assignments") or ())
            ],
        }
        for one in chosen
    ]


def show_drain(console: Console, view: TopicView, rows: Sequence[Mapping[str, Any]], facts: TopicFacts) -> None:
    """Sealed segments as a table."""
    line(console, "topic", view.topic)
    if not rows:
        line(console, "sealed segments", "none")
        return
    shown = table("segment", "range", "sealed", "followed by", "held by", "backlog", "read by")
    now_ms = datetime.now(UTC).timestamp() * 1000
    for row in rows:
        since = age((now_ms - row["sealedAtMs"]) / 1000) + " ago" if row["sealedAtMs"] else "-"
        held = "not known" if row["heldBy"] is None else row["heldBy"] or MAY_GO
        backlog = ", ".join(f"{name} {left}" for name, left in (row["backlog"] or {}).items()) or "-"
        readers = ", ".join(f"{one['subscription']}: {one['consumer']}" for one in row["readers"]) or "-"
        shown.add_row(*cells(row["segment"], row["range"], since, ids(row["children"]), held, backlog, readers))
    console.print(shown)
    if facts.why:
        line(console, "backlog", f"not known: {facts.why}", "yellow")


def _show(output: Output, view: TopicView, rows: Sequence[Mapping[str, Any]], facts: TopicFacts) -> None:
    if output.is_for_people:
        return show_drain(people(), view, rows, facts)
    return for_machines(output, {"topic": view.topic, "segments": list(rows)})


def _chosen(layout: SegmentLayout, segments: Sequence[int]) -> list[int]:
    sealed = [one.segment_id for one in layout.sealed]
    for one in segments:
        if one not in layout.segments:
            raise Refused(f"there is no segment {one} in the layout; it may have been pruned")
        if one not in sealed:
            raise Refused(f"segment {one} is active: it takes messages")
    return sorted(set(segments)) or sealed


def _drained(body: Body) -> Sequence[int]:
    found: Sequence[int] = (body.get("status") or {}).get("drained") or ()
    return found
