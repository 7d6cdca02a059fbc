"""The fleet, a line a topic, made anew for what has changed alone: many may look at thousands every few seconds."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_text
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.conditions import find_condition, holds
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import canonical_topic

# Some ten milliseconds of work.
_ROWS_IN_ONE_GO = 100

Place = tuple[str, str]
"""Kubernetes namespace and name."""


@dataclass(frozen=True, slots=True)
class FleetPage:
    """Some of the fleet.

    Args:
        rows: JSON objects, by namespace and name.
        last: the place to go on behind; None if there are no more.
    """

    rows: tuple[str, ...]
    last: Place | None


class FleetRows:
    """Lines of all topics in a cache.

    Args:
        cache: the objects.
    """

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache
        self._rows: dict[ObjectKey, str] = {}
        self._places: set[Place] = {(key.namespace, key.name) for key, _ in cache.all(TOPICS)}
        self._order: list[Place] | None = None
        cache.listen(TOPICS, self._changed)

    def lines(self, after: Place | None) -> Mapping[str, int]:
        """How many lines each Kubernetes namespace has behind a place, in the order of the lines; None: all."""
        order = self._ordered()
        return Counter(namespace for namespace, _ in islice(order, _behind(order, after), None))

    async def page(self, shown: Collection[str], after: Place | None, limit: int) -> FleetPage:
        """The lines behind a place; what else waits for the event loop has its turn while they are written.

        Args:
            shown: Kubernetes namespaces whose topics are told of.
            after: the place; None for the beginning.
            limit: lines at most, 1 or more.
        """
        order = self._ordered()
        found: list[Place] = []
        for index in range(_behind(order, after), len(order)):
            if order[index][0] in shown:
                if len(found) == limit:
                    return FleetPage(await self._written(found), found[-1])
                found.append(order[index])
        return FleetPage(await self._written(found), None)

    def _ordered(self) -> list[Place]:
        if self._order is None:
            self._order = sorted(self._places)
        return self._order

    async def _written(self, places: Sequence[Place]) -> tuple[str, ...]:
        rows: list[str] = []
        for begin in range(0, len(places), _ROWS_IN_ONE_GO):
            if begin:
                await asyncio.sleep(0)
            for namespace, name in places[begin : begin + _ROWS_IN_ONE_GO]:
                row = self._row(ObjectKey(TOPICS.plural, namespace, name))
                if row is not None:
                    rows.append(row)
        return tuple(rows)

    def _row(self, key: ObjectKey) -> str | None:
        """The line of a topic; None of one that has gone since its page was begun."""
        if key not in self._rows:
            body = self._cache.get(key)
            if body is None:
                return None
            self._rows[key] = json.dumps(fleet_row(key, body))
        return self._rows[key]

    def _changed(self, key: ObjectKey, body: Body | None) -> None:
        self._rows.pop(key, None)
        place = (key.namespace, key.name)
        if body is None:
            self._places.discard(place)
            self._order = None
        elif place not in self._places:
            self._places.add(place)
            self._order = None


def _behind(order: list[Place], after: Place | None) -> int:
    return bisect_right(order, after) if after is not None else 0


def identity_of(key: ObjectKey, body: Body) -> dict[str, Any]:
    """Which topic it is, and whether it is worked on at all: what a line and all of its standing begin with."""
    return {
        "namespace": key.namespace,
        "name": key.name,
        "topic": canonical_topic(body) or body["spec"]["topic"],
        "connection": connection_text(body),
        "backend": (body.get("status") or {}).get("backend") or "",
        "createdAt": body["metadata"].get("creationTimestamp") or "",
        "paused": bool(body["spec"].get("paused")),
        "deleting": bool(body["metadata"].get("deletionTimestamp")),
    }


def fleet_row(key: ObjectKey, body: Body) -> dict[str, Any]:
    """The line of one topic."""
    status = body.get("status") or {}
    segments: Mapping[str, int] = status.get("segments") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    # What is not stalled says nothing of why.
    stands = find_condition(status, "Stalled" if holds(status, "Stalled") else "Ready")
    return {
        **identity_of(key, body),
        "epoch": (status.get("layout") or {}).get("epoch", 0),
        "activeSegments": segments.get("active", 0),
        "sealedSegments": segments.get("sealed", 0),
        "subscriptions": len(status.get("subscriptions") or ()),
        "operation": (status.get("operation") or {}).get("kind", ""),
        "lastAction": status.get("lastAction") or "",
        "conditions": conditions,
        "reason": stands.get("reason", ""),
        "message": stands.get("message", ""),
        "reports": len(status.get("reports") or ()),
    }
