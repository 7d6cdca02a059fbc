"""Dashboards of Grafana as values, and their JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COLUMNS = 24
HEIGHT = 7
_STAT_HEIGHT = 4
_SCHEMA_VERSION = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TAG = "scalable-topics"


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel.

    Args:
        expression: PromQL.
        legend: names a series, with `{{label}}` for its labels.
    """

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Args:
        title: says what is seen.
        unit: of Grafana, such as `short`, `s`, `Bps`.
        queries: what is drawn.
        description: what to make of it; empty if the title says it all.
        kind: `timeseries`, or `stat` for a number, or `bargauge` for the first of many.
        width: in columns, of which a row has 24.
        bad_from: a number that is red from there on; None where none is.
    """

    title: str
    unit: str
    queries: Sequence[Query]
    description: str = ""
    kind: str = "timeseries"
    width: int = 8
    bad_from: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading, which wrap by their widths."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """What the reader chooses.

    Args:
        name: in queries, with a dollar.
        label: what the reader sees.
        values: PromQL for the choices, `label_values(metric, label)`.
        multi: whether several, or all, may be chosen; the first is, if not.
    """

    name: str
    label: str
    values: str
    multi: bool = True


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard.

    Args:
        name: of its file and its address, without the project's name in front.
        title: without the project's name in front.
        variables: what the reader chooses besides the source of data.
        rows: its panels.
    """

    name: str
    title: str
    variables: Sequence[Variable]
    rows: Sequence[Row]

    @property
    def uid(self) -> str:
        """Its address in Grafana, and the name of its file."""
        return f"{_TAG}-{self.name}"

    def to_json(self) -> dict[str, Any]:
        """As Grafana has it."""
        return {
            "uid": self.uid,
            "title": f"Scalable topics: {self.title}",
            "tags": ["pulsar", _TAG],
            "timezone": "browser",
            "schemaVersion": _SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "links": [_links()],
            "templating": {"list": [_data_source(), *map(_variable, self.variables)]},
            "panels": _panels(self.rows),
        }


def increase(metric: str, selector: str = "") -> str:
    """PromQL for what a counter has grown by since the point before.

    Args:
        metric: its name.
        selector: of its series, with braces; all of them if empty.
    """
    return f"increase({metric}{selector}[$__rate_interval])"


def _links() -> dict[str, Any]:
    """To the other dashboards, with the same time."""
    return {
        "type": "dashboards",
        "title": "Scalable topics",
        "tags": [_TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
    }


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _variable(variable: Variable) -> dict[str, Any]:
    found = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": variable.values, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "multi": variable.multi,
        "includeAll": variable.multi,
    }
    if variable.multi:
        found |= {"allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    return found


def _panels(rows: Sequence[Row]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        made.append(_heading(len(made) + 1, row.title, top))
        top += 1
        left, height = 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top = 0, top + height
            height = _STAT_HEIGHT if panel.kind == "stat" else HEIGHT
            place = {"x": left, "y": top, "w": panel.width, "h": height}
            made.append(_panel(len(made) + 1, panel, place))
            left += panel.width
        top += height
    return made


def _heading(number: int, title: str, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}


def _panel(number: int, panel: Panel, place: Mapping[str, int]) -> dict[str, Any]:
    is_momentary = panel.kind != "timeseries"
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.bad_from is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.bad_from}]
        defaults |= {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
                "instant": is_momentary,
                "range": not is_momentary,
            }
            for index, query in enumerate(panel.queries)
        ],
        "options": _OPTIONS[panel.kind],
    }


_LAST = {"reduceOptions": {"calcs": ["lastNotNull"]}}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "stat": _LAST,
    "bargauge": {**_LAST, "orientation": "horizontal", "displayMode": "basic"},
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
}
