"""How topics stand, for people: the fleet, one topic, and what the caller may do with it; any replica answers."""

from __future__ import annotations

import asyncio

from aiohttp import web

from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway import glance_routes as routes
from scalable_topics_operator.gateway.fleet_rows import FleetRows, identity_of
from scalable_topics_operator.gateway.rest_call import NAMED_VERBS, Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.route import Right, Route, Who
from scalable_topics_operator.gateway.route_table import ROUTES


class GlanceHandlers:
    """Handles what is seen at a glance.

    Args:
        admission: finds topics and asks for rights.
        cache: the objects.
        writes: whether callers may write at all.
    """

    def __init__(self, admission: RestAdmission, cache: ObjectCache, *, writes: bool) -> None:
        self._admission = admission
        self._fleet = FleetRows(cache)
        self._usable = tuple(route for route in _ABOUT_TOPICS if writes or not route.writes)
        self._rights = tuple(dict.fromkeys(right for route in self._usable for right in route.rights))

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (routes.FLEET, self._show_fleet),
            (routes.TOPIC_STATUS, self._show_status),
            (routes.TOPIC_RIGHTS, self._show_rights),
        ]

    async def _show_fleet(self, call: Call) -> web.StreamResponse:
        (right,) = call.route.rights
        namespace, _, name = (call.values.get(routes.AFTER) or "").partition("/")
        after = (namespace, name) if namespace else None
        limit = call.values.get(routes.LIMIT) or routes.DEFAULT_LIMIT
        lines = self._fleet.lines(after)
        # Whoever may see all of them is asked for once, not for each of hundreds.
        if await self._admission.allows(call, right, ""):
            shown = set(lines)
        else:
            # Those before the page come last: only whoever may see none at all is refused.
            others = () if after is None else self._fleet.lines(None)
            namespaces = list(dict.fromkeys((*lines, *others)))
            # One more than the page has: whether there are more is told, too.
            shown = await self._admission.shown_namespaces(
                call, right, namespaces, lambda found: sum(lines.get(one, 0) for one in found) > limit
            )
        page = await self._fleet.page(shown, after, limit)
        more = "null" if page.last is None else f'"{"/".join(page.last)}"'
        text = f'{{"topics": [{", ".join(page.rows)}], "next": {more}}}'
        return web.json_response(text=text)

    async def _show_status(self, call: Call) -> web.StreamResponse:
        return web.json_response(_standing(await self._admission.topic(call)))

    async def _show_rights(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        answers = await asyncio.gather(*(self._has(call, subject, right) for right in self._rights))
        held = {right for right, has in zip(self._rights, answers, strict=True) if has}
        may = [route.name for route in self._usable if held.issuperset(route.rights)]
        return web.json_response({"user": call.caller.name, "may": may})

    async def _has(self, call: Call, subject: Subject, right: Right) -> bool:
        named = right.resource == TOPICS and right.verb in NAMED_VERBS
        return await self._admission.allows(call, right, subject.key.namespace, subject.key.name if named else "")


_ABOUT_TOPICS: tuple[Route, ...] = tuple(
    route for route in ROUTES if route.who is Who.USER and route.rights and "{topic}" in route.path
)


def _standing(subject: Subject) -> dict[str, object]:
    status = subject.status
    return {
        **identity_of(subject.key, subject.body),
        "desiredSegments": (subject.body["spec"].get("segments") or {}).get("desired"),
        "conditions": status.get("conditions") or [],
        "operation": status.get("operation"),
        "actions": status.get("actions") or [],
        "reports": status.get("reports") or [],
        "pruning": status.get("deleting") or [],
        "pruned": status.get("pruned") or [],
    }
