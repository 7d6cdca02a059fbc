"""Columns of a kind, as its definition has them for `kubectl get`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scalable_topics_operator.api.common import Column
from scalable_topics_operator.cli.topic_view import age, seconds_since
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.controllers.conditions import find_condition

_CONDITION = re.compile(r"""\.status\.conditions\[\?\(@\.type=="(\w+)"\)\]\.(\w+)""")


def shown(columns: Sequence[Column], *, wide: bool) -> list[Column]:
    """The columns of a table, those of the wide one among them if it is that."""
    return [column for column in columns if wide or column.priority == 0]


def value(body: Body, column: Column, now: datetime) -> str | None:
    """What an object has in a column; None for nothing.

    Args:
        body: the object.
        column: which one.
        now: for ages.
    """
    if found := _CONDITION.fullmatch(column.path):
        return _text(find_condition(body.get("status") or {}, found[1]).get(found[2]))
    at: Any = body
    for part in column.path.strip(".").split("."):
        at = at.get(part) if isinstance(at, Mapping) else None
    return age(seconds_since(at, now)) if column.type == "date" and at is not None else _text(at)


def _text(found: Any) -> str | None:
    if found is None:
        return None
    return str(found).lower() if isinstance(found, bool) else str(found)
