"""The gateway's answers as tables. Pure but for the console."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Answer = Mapping[str, Any]

_RATES = ("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut")


def show_explanation(console: Console, answer: Answer) -> None:
    """The last decision, what each rule found, and what both were made from."""
    decision = answer.get("decision") or {}
    _line(console, "topic", answer.get("topic"))
    _line(console, "observed", answer.get("observedAt"))
    _line(console, "decision", f"{_action(decision.get('action'))} ({_plain(decision.get('code'))})")
    if answer.get("nextLookSeconds") is not None:
        _line(console, "next look", f"in {answer['nextLookSeconds']:g} s")
    rules = _table("rule", "fired", "code", "why")
    for finding in answer.get("findings") or ():
        fired = Text("yes", "green") if finding.get("fired") else Text("no")
        rules.add_row(*_cells(finding.get("rule")), fired, *_cells(finding.get("code"), finding.get("why")))
    console.print(rules)
    _show_load(console, answer.get("load") or {})
    _pairs(console, "consumers", answer.get("consumers") or {})
    _pairs(console, "last", {kind: at for kind, at in (answer.get("clocks") or {}).items() if at is not None})


def show_policy(console: Console, answer: Answer) -> None:
    """Every knob, its value and the level that gave it."""
    _line(console, "topic", answer.get("topic"))
    if answer.get("problem"):
        _line(console, "problem", answer["problem"], "bold red")
    table = _table("knob", "value", "origin")
    for knob in answer.get("knobs") or ():
        table.add_row(*_cells(knob.get("knob"), knob.get("value"), knob.get("origin")))
    console.print(table)


def _show_load(console: Console, load: Answer) -> None:
    age = load.get("ageSeconds")
    parts = ["fresh" if load.get("fresh") else "stale"]
    if age is not None:
        parts.append(f"{age:.0f} s old")
    if load.get("why"):
        parts.append(_plain(load["why"]))
    _line(console, "load", ", ".join(parts), "" if load.get("fresh") else "yellow")
    if not load.get("segments"):
        return
    table = _table("segment", "range", *_RATES, "last hot")
    for segment in load["segments"]:
        rates = (segment.get(rate) for rate in _RATES)
        table.add_row(*_cells(segment.get("id"), segment.get("range"), *rates, segment.get("lastHotAt")))
    console.print(table)


def _action(action: Answer | None) -> str:
    """Words for an action, such as `Split of segment 3 into 2`."""
    if not action:
        return "nothing"
    segments = ", ".join(_plain(one) for one in action.get("segments") or ())
    words = f"{_plain(action.get('kind'))} of segment {segments}"
    if action.get("into") is not None and action.get("kind") == "Split":
        words += f" into {_plain(action['into'])}"
    if action.get("buckets") is not None:
        words += f" to {_plain(action['buckets'])} entry buckets"
    return words


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _cells(*values: Any) -> Iterable[Text]:
    return (Text(_plain(value)) for value in values)


def _line(console: Console, label: str, value: Any, style: str = "") -> None:
    console.print(Text.assemble((f"{label}: ", "bold"), (_plain(value), style)))


def _pairs(console: Console, label: str, values: Mapping[str, Any]) -> None:
    if values:
        _line(console, label, ", ".join(f"{_plain(name)} {_plain(value)}" for name, value in values.items()))


def _plain(value: Any) -> str:
    """A value in words; names that users chose cannot steer the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return "".join(character if character.isprintable() else "?" for character in text)
