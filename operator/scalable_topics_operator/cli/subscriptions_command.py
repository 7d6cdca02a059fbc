"""`stopics subscriptions`: who reads what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from scalable_topics_operator.cli.faults import Refused
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.kubernetes import api_server, find_object, list_of, ref_of
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import as_allowed, for_machines, people
from scalable_topics_operator.cli.segment_facts import ALL_SEGMENTS, TopicFacts, facts_source
from scalable_topics_operator.cli.tables import cells, line, plain, table
from scalable_topics_operator.cli.topic_view import TopicView, age, ids, seconds_since, subscription_kind
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS


async def subscriptions(
    name: str, only: str | None, namespace: str | None, output: Output, access: GatewayOptions | None
) -> None:
    """Show the subscriptions of a topic, or one of them. Raises CliError.

    Args:
        name: of the ScalableTopic, or its topic's.
        only: name of the subscription; None for all.
        namespace: of the object; None for the kubeconfig's.
        output: how it is shown.
        access: how the gateway is reached; None if it is not to be asked.
    """
    async with api_server() as kube:
        view = TopicView(await find_object(kube, name, namespace))
        ordered = await as_allowed(list_of(kube, SUBSCRIPTIONS, view.body))
    facts = TopicFacts(why="it has no layout yet")
    if view.status.get("layout"):
        async with facts_source(access) as source:
            facts = await source.look(ref_of(view.body), view.layout())
    rows = [one for one in subscription_rows(view, ordered, facts) if only in (None, one["name"])]
    if only is not None and not rows:
        raise Refused(f"ScalableTopic {view.namespace}/{view.name} has no subscription {only}")
    if output.is_for_people:
        show_subscriptions(people(), rows, facts, datetime.now(UTC))
    else:
        for_machines(output, {"topic": view.topic, "backlogOf": facts.backlog_of, "subscriptions": rows})


def subscription_rows(view: TopicView, ordered: Sequence[Body], facts: TopicFacts) -> list[dict[str, Any]]:
    """Every subscription that is declared, recorded, or has an object of its own, by name. Pure.

    Args:
        view: the topic.
        ordered: its ScalableTopicSubscriptions.
        facts: what the gateway knows.
    """
    objects = {str(one["spec"]["subscription"]): one for one in ordered}
    recorded = {str(one["name"]): one for one in view.status.get("subscriptions") or ()}
    declared = {str(one["name"]): one for one in view.body["spec"].get("subscriptions") or ()}
    return [
        _row(name, recorded.get(name, {}), objects.get(name), name in declared, facts)
        for name in sorted({*objects, *recorded, *declared})
    ]


def _row(
    name: str, recorded: Mapping[str, Any], body: Body | None, declared: bool, facts: TopicFacts
) -> dict[str, Any]:
    status = (body.get("status") or {}) if body else {}
    by_segment = {
        one: known.backlog[name]
        for one, known in sorted(facts.segments.items())
        if known.backlog is not None and name in known.backlog
    }
    return {
        "name": name,
        "kind": subscription_kind(recorded, body),
        "phase": status.get("phase") or recorded.get("phase") or "Declared",
        "declared": declared,
        "initialPosition": recorded.get("initialPosition", "Earliest"),
        "outOfScope": list(recorded.get("outOfScope") or ()),
        "drained": list(status.get("drained") or ()),
        "version": status.get("version"),
        "backlog": facts.backlog.get(name),
        "backlogBySegment": {str(one): messages for one, messages in by_segment.items()},
        "consumers": list(status.get("consumers") or ()),
    }


def show_subscriptions(console: Console, rows: Sequence[Mapping[str, Any]], facts: TopicFacts, now: datetime) -> None:
    """Subscriptions and their consumers as tables."""
    shown = table("subscription", "kind", "phase", "declared", "from", "backlog", "drained", "consumers")
    for row in rows:
        # Of the others the brokers know.
        consumers = len(row["consumers"]) if row["kind"] in ("Stream", "Checkpoint") else None
        shown.add_row(
            *cells(
                row["name"],
                row["kind"],
                row["phase"],
                "yes" if row["declared"] else "no",
                row["initialPosition"],
                row["backlog"],
                ids(row["drained"]),
                consumers,
            )
        )
    console.print(shown)
    if facts.why:
        line(console, "backlog", f"not known: {facts.why}", "yellow")
    elif facts.backlog_of != ALL_SEGMENTS:
        line(console, "backlog", f"of {facts.backlog_of}: not all others were asked, or answered", "yellow")
    readers = table("subscription", "consumer", "registered", "reads", "lets go of")
    for row in rows:
        for consumer in row["consumers"]:
            since = age(seconds_since(consumer.get("registeredAt"), now))
            going = [*map(str, consumer.get("releasing") or ()), *map(_part, consumer.get("releasingBuckets") or ())]
            reads = [_part(one) for one in consumer.get("assignments") or ()]
            readers.add_row(
                *cells(
                    row["name"], consumer.get("name"), f"{since} ago", " ".join(reads) or "-", " ".join(going) or "-"
                )
            )
    if readers.row_count:
        console.print(readers)


def _part(assignment: Mapping[str, Any]) -> str:
    """A segment, or some entry buckets of one, such as `4` or `4[0,1]`."""
    buckets = assignment.get("buckets") or ()
    return plain(assignment.get("segment")) + (f"[{ids(buckets)}]" if buckets else "")
