"""The gateway's answers as tables. Pure but for the console."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalable_topics.printable import printable

Answer = Mapping[str, Any]

_RATES = ("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut")


def show_explanation(console: Console, answer: Answer) -> None:
    """The last decision, what each rule found, and what both were made from."""
    decision = answer.get("decision") or {}
    line(console, "topic", answer.get("topic"))
    line(console, "observed", answer.get("observedAt"))
    line(console, "decision", f"{_action(decision.get('action'))} ({plain(decision.get('code'))})")
    if answer.get("nextLookSeconds") is not None:
        line(console, "next look", f"in {answer['nextLookSeconds']:g} s")
    rules = table("rule", "fired", "code", "why")
    for finding in answer.get("findings") or ():
        fired = Text("yes", "green") if finding.get("fired") else Text("no")
        rules.add_row(*cells(finding.get("rule")), fired, *cells(finding.get("code"), finding.get("why")))
    console.print(rules)
    _show_load(console, answer.get("load") or {})
    _pairs(console, "consumers", answer.get("consumers") or {})
    _pairs(console, "last", {kind: at for kind, at in (answer.get("clocks") or {}).items() if at is not None})


def show_policy(console: Console, answer: Answer) -> None:
    """Every knob, its value and the level that gave it."""
    line(console, "topic", answer.get("topic"))
    if answer.get("problem"):
        line(console, "problem", answer["problem"], "bold red")
    knobs = table("knob", "value", "origin")
    for knob in answer.get("knobs") or ():
        knobs.add_row(*cells(knob.get("knob"), knob.get("value"), knob.get("origin")))
    console.print(knobs)


def _show_load(console: Console, load: Answer) -> None:
    age = load.get("ageSeconds")
    parts = ["fresh" if load.get("fresh") else "stale"]
    if age is not None:
        parts.append(f"{age:.0f} s old")
    if load.get("why"):
        parts.append(plain(load["why"]))
    line(console, "load", ", ".join(parts), "" if load.get("fresh") else "yellow")
    if not load.get("segments"):
        return
    segments = table("segment", "range", *_RATES, "last hot")
    for segment in load["segments"]:
        rates = (segment.get(rate) for rate in _RATES)
        segments.add_row(*cells(segment.get("id"), segment.get("range"), *rates, segment.get("lastHotAt")))
    console.print(segments)


def _action(action: Answer | None) -> str:
    """Words for an action, such as `Split of segment 3 into 2`."""
    if not action:
        return "nothing"
    segments = ", ".join(plain(one) for one in action.get("segments") or ())
    words = f"{plain(action.get('kind'))} of segment {segments}"
    if action.get("into") is not None and action.get("kind") == "Split":
        words += f" into {plain(action['into'])}"
    if action.get("buckets") is not None:
        words += f" to {plain(action['buckets'])} entry buckets"
    return words


def table(*headings: str) -> Table:
    """An empty table."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made


def cells(*values: Any) -> Iterable[Text]:
    """Values as a row."""
    return (Text(plain(value)) for value in values)


def line(console: Console, label: str, value: Any, style: str = "") -> None:
    """A value with its label."""
    console.print(Text.assemble((f"{label}: ", "bold"), (plain(value), style)))


def _pairs(console: Console, label: str, values: Mapping[str, Any]) -> None:
    if values:
        line(console, label, ", ".join(f"{plain(name)} {plain(value)}" for name, value in values.items()))


def plain(value: Any) -> str:
    """A value in words; names that users chose cannot steer the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(f"{value:.10g}" if isinstance(value, float) else str(value), "?")
