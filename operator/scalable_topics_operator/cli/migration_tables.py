"""Migrations as tables: the report of a dry run, the plan of many, what became of them. Pure but for the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from scalable_topics_operator.cli.migrations import DeclaredTopic
from scalable_topics_operator.cli.operations import Ended
from scalable_topics_operator.cli.tables import cells, line, table
from scalable_topics_operator.cluster.segment_operations import SUCCEEDED

IS_SCALABLE, NOT_BEGUN, MIGRATED, MAY_BE = "scalable already", "not begun", "migrated", "may be migrated"

_PER_TOPIC = ("partitions", "entries", "bytes", "subscriptions", "backlog", "old clients")


def show_result(console: Console, topic: DeclaredTopic, ended: Ended) -> None:
    """A migration that was done."""
    line(console, "topic", topic.topic)
    line(console, "result", f"{MIGRATED}: {ended.message}")
    line(console, "operation", f"{topic.namespace}/{ended.operation}")


def show_report(console: Console, topic: DeclaredTopic, ended: Ended) -> None:
    """What a dry run found."""
    report = ended.report
    line(console, "topic", topic.topic)
    obstacles = ended.obstacles
    line(console, "verdict", "cannot be migrated now" if obstacles else MAY_BE, "bold red" if obstacles else "green")
    for obstacle in obstacles:
        line(console, f"obstacle {obstacle['reason']}", obstacle["message"])
    if not report:
        return
    line(console, "partitions", report.get("partitions") or "none, it is not partitioned")
    line(console, "retained", f"{report.get('entries', 0)} entries of {report.get('storageBytes', 0)} bytes")
    _show_rows(
        console,
        "carried over, subscriptions",
        report.get("subscriptions") or (),
        {"subscription": "name", "kind": "kind", "backlog": "backlogEntries"},
    )
    line(console, "carried over, properties", ", ".join(report.get("properties") or ()) or "none")
    policies = {name: value for name, value in (report.get("policies") or {}).items() if value is not None}
    line(console, "carried over, policies", ", ".join(f"{name} {value}" for name, value in policies.items()) or "none")
    line(console, "carried over, schema versions", report.get("schemas") or 0)
    line(console, "not carried over, policies", ", ".join(report.get("policiesNotCarried") or ()) or "none")
    _show_rows(
        console,
        f"old clients ({report.get('clientCount', 0)})",
        report.get("clients") or (),
        {
            "role": "role",
            "client": "name",
            "subscription": "subscription",
            "address": "address",
            "version": "version",
            "attached to": "topic",
        },
    )
    more = (report.get("clientCount") or 0) - len(report.get("clients") or ())
    if more > 0:
        line(console, "and", f"{more} more")


def show_many(console: Console, rows: Sequence[Mapping[str, Any]], heading: str) -> None:
    """Several topics, a line each: what a plan says, or what became of them."""
    shown = table("topic", "name", *_PER_TOPIC, heading)
    for row in rows:
        shown.add_row(
            *cells(
                row["scalableTopic"],
                row["topic"],
                *(row.get(name) for name in _PER_TOPIC),
                ": ".join(text for text in (row["verdict"], row.get("message")) if text),
            )
        )
    console.print(shown)


def planned_row(topic: DeclaredTopic, ended: Ended | None) -> dict[str, Any]:
    """A topic's line of a plan.

    Args:
        topic: which one.
        ended: what its dry run found; None for one that is scalable already.
    """
    row: dict[str, Any] = {"scalableTopic": str(topic), "topic": topic.topic}
    if ended is None:
        return {**row, "verdict": IS_SCALABLE}
    report, obstacles = ended.report, ended.obstacles
    if report:
        subscriptions = report.get("subscriptions") or ()
        backlog = sum(one.get("backlogEntries", 0) for one in subscriptions)
        counts = (
            report.get("partitions"),
            report.get("entries"),
            report.get("storageBytes"),
            len(subscriptions),
            backlog,
            report.get("clientCount", 0),
        )
        row |= dict(zip(_PER_TOPIC, counts, strict=True))
    if not obstacles:
        return {**row, "verdict": MAY_BE}
    return {**row, "verdict": obstacles[0]["reason"], "message": "; ".join(one["message"] for one in obstacles)}


def ended_row(topic: DeclaredTopic, ended: Ended | None) -> dict[str, Any]:
    """What became of a topic.

    Args:
        topic: which one.
        ended: of its migration; None for one that was not begun.
    """
    row: dict[str, Any] = {"scalableTopic": str(topic), "topic": topic.topic}
    if ended is None:
        return {**row, "verdict": NOT_BEGUN}
    operation = ended.place(topic.namespace)
    if ended.phase == SUCCEEDED:
        return {**row, "verdict": MIGRATED, "operation": operation}
    return {**row, "verdict": ended.reason or ended.phase, "message": ended.message, "operation": operation}


def _show_rows(console: Console, label: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    if not rows:
        line(console, label, "none")
        return
    line(console, label, "")
    shown = table(*columns)
    for row in rows:
        shown.add_row(
            *cells(*(row.get(field) or ("-" if field != "backlogEntries" else 0) for field in columns.values()))
        )
    console.print(shown)
