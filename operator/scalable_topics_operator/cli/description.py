"""A ScalableTopic told to people: how it stands, its segments, subscriptions, operations and Events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from scalable_topics_operator.cli.faults import Refused
from scalable_topics_operator.cli.segment_facts import TopicFacts
from scalable_topics_operator.cli.segment_table import segments_table
from scalable_topics_operator.cli.tables import cells, line, table
from scalable_topics_operator.cli.topic_view import TopicView, age, ids, seconds_since, subscription_kind
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import connection_text

_FEW = 10


def show_description(
    console: Console,
    body: Body,
    operations: Sequence[Body],
    subscriptions: Sequence[Body],
    events: Sequence[Body],
    now: datetime,
    *,
    wide: bool,
) -> None:
    """Tell of a topic.

    Args:
        console: where to.
        body: the ScalableTopic.
        operations: its SegmentOperations, newest first.
        subscriptions: its ScalableTopicSubscriptions.
        events: about it, oldest first.
        now: for ages.
        wide: all of what there is, instead of the newest.
    """
    view = TopicView(body)
    few = None if wide else _FEW
    _show_head(console, view, now)
    _show_conditions(console, view, now)
    _show_operation(console, view.status.get("operation"), now)
    try:
        layout = view.layout()
    except Refused as refusal:
        line(console, "segments", str(refusal), "yellow")
    else:
        console.print()
        line(console, "segments", f"{len(layout.active)} active, {len(layout.sealed)} sealed")
        console.print(segments_table(layout, TopicFacts(), wide=wide))
    _show_subscriptions(console, view, subscriptions)
    _show_actions(console, view.status.get("actions") or (), now, few)
    _show_requests(console, operations, now, few)
    for report in view.status.get("reports") or ():
        line(console, f"report {report.get('reason')}", report.get("message"), "yellow")
    _show_events(console, events, now, few)


def _show_head(console: Console, view: TopicView, now: datetime) -> None:
    spec, status, metadata = view.body["spec"], view.status, view.body["metadata"]
    line(console, "object", f"{view.namespace}/{view.name}")
    line(console, "topic", view.topic)
    line(console, "connection", connection_text(view.body))
    line(console, "backend", status.get("backend"))
    line(console, "incarnation", status.get("incarnation"))
    line(console, "epoch", (status.get("layout") or {}).get("epoch"))
    line(console, "age", age(seconds_since(metadata.get("creationTimestamp"), now)))
    said = {
        "deletion policy": spec.get("deletionPolicy", "Retain"),
        "paused": spec.get("paused", False),
        "segments desired": (spec.get("segments") or {}).get("desired"),
        "bucket budget": spec.get("bucketBudget"),
    }
    for label, value in said.items():
        if value not in (None, False):
            line(console, label, value)
    if metadata.get("deletionTimestamp"):
        line(console, "being deleted", f"since {age(seconds_since(metadata['deletionTimestamp'], now))}", "yellow")
    for one in status.get("deleting") or ():
        line(console, "segment being deleted", f"{one.get('id')}: {one.get('topic')}")


def _show_conditions(console: Console, view: TopicView, now: datetime) -> None:
    shown = table("condition", "status", "since", "reason", "message")
    for one in view.status.get("conditions") or ():
        since = age(seconds_since(one.get("lastTransitionTime"), now))
        shown.add_row(*cells(one.get("type"), one.get("status"), since, one.get("reason"), one.get("message")))
    _print_rows(console, shown)


def _show_operation(console: Console, operation: Mapping[str, Any] | None, now: datetime) -> None:
    if not operation:
        return
    made = [f"{child.get('id')} {child.get('range')}" for child in operation.get("children") or ()]
    request = operation.get("request") or {}
    line(
        console,
        "under way",
        f"{operation.get('kind')} of {ids(operation.get('parents') or ())} into {', '.join(made) or '-'}: "
        f"{operation.get('step')} since {age(seconds_since(operation.get('startedAt'), now))}, "
        f"asked for by {request.get('kind')} {request.get('name')}",
        "yellow",
    )
    if operation.get("message"):
        line(console, "waits for", operation["message"])


def _show_subscriptions(console: Console, view: TopicView, ordered: Sequence[Body]) -> None:
    kinds = {one["spec"].get("subscription"): one for one in ordered}
    shown = table("subscription", "kind", "phase", "from", "consumers", "out of scope")
    for one in view.status.get("subscriptions") or ():
        body = kinds.get(one.get("name"))
        consumers = len((body.get("status") or {}).get("consumers") or ()) if body else None
        shown.add_row(
            *cells(
                one.get("name"),
                subscription_kind(one, body),
                one.get("phase"),
                one.get("initialPosition", "Earliest"),
                consumers,
                ids(one.get("outOfScope") or ()),
            )
        )
    _print_rows(console, shown)


def _show_actions(console: Console, actions: Sequence[Mapping[str, Any]], now: datetime, most: int | None) -> None:
    shown = table("done", "ago", "epoch", "sealed", "made", "result", "why")
    for one in list(reversed(actions))[:most]:
        request = one.get("request") or {}
        why = one.get("reason") or one.get("message") or f"{request.get('kind')} {request.get('name')}"
        shown.add_row(
            *cells(
                one.get("kind"),
                age(seconds_since(one.get("at"), now)),
                one.get("epoch"),
                ids(one.get("parents") or ()),
                ids(one.get("children") or ()),
                one.get("result"),
                why,
            )
        )
    _print_rows(console, shown)


def _show_requests(console: Console, operations: Sequence[Body], now: datetime, most: int | None) -> None:
    shown = table("segmentoperation", "type", "phase", "step", "age", "message")
    for body in operations[:most]:
        status = body.get("status") or {}
        shown.add_row(
            *cells(
                body["metadata"]["name"],
                body["spec"].get("type"),
                status.get("phase"),
                status.get("step"),
                age(seconds_since(body["metadata"].get("creationTimestamp"), now)),
                status.get("message"),
            )
        )
    _print_rows(console, shown)


def _show_events(console: Console, events: Sequence[Body], now: datetime, most: int | None) -> None:
    shown = table("event", "type", "ago", "message")
    for one in list(reversed(events))[:most]:
        at = one.get("lastTimestamp") or one.get("eventTime") or one["metadata"].get("creationTimestamp")
        shown.add_row(*cells(one.get("reason"), one.get("type"), age(seconds_since(at, now)), one.get("message")))
    _print_rows(console, shown)


def _print_rows(console: Console, shown: Table) -> None:
    """A table that has rows, after an empty line."""
    if shown.row_count:
        console.print()
        console.print(shown)
