"""What only a topic's leader can tell of it: load, decisions, effective policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.engine import Engine
from scalable_topics_operator.controllers.topic_backend import is_native
from scalable_topics_operator.gateway import native_stats, topic_routes
from scalable_topics_operator.gateway.forwarding import LEADER_HEADER, Forwarding
from scalable_topics_operator.gateway.looks import SegmentLooks
from scalable_topics_operator.gateway.refusal import error_response
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.views import Leaders, TopicViews

View = Callable[[ObjectKey], Mapping[str, Any] | None]
Complete = Callable[[Subject, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class ViewHandlers:
    """Handles views: the leader answers, whoever is asked.

    Args:
        admission: finds topics and asks for rights.
        leaders: who leads what.
        forwarding: passes on what only a leader can tell.
        views: what this replica can tell of the topics it leads; None while there is nothing that could.
        looks: asks the brokers that own layouts for what they know better.
    """

    def __init__(
        self,
        admission: RestAdmission,
        leaders: Leaders,
        forwarding: Forwarding,
        views: TopicViews | None,
        looks: SegmentLooks,
    ) -> None:
        self._admission = admission
        self._leaders = leaders
        self._forwarding = forwarding
        self._views = views
        self._looks = looks

    def bound(self) -> list[Bound]:
        """What it answers."""
        views = self._views
        return [
            (topic_routes.STATS, partial(self._show, views.stats if views is not None else None, self._with_stats)),
            (topic_routes.EXPLAIN, partial(self._show, views.explain if views is not None else None, _as_it_is)),
            (
                topic_routes.EFFECTIVE_POLICY,
                partial(self._show, views.policy if views is not None else None, self._with_policy),
            ),
        ]

    async def _show(self, view: View | None, complete: Complete, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        leader = self._leaders.leader_of(subject.key)
        if leader is None or not leader.is_me:
            return await self._forwarding.http(call.request, subject.topic, leader, call.authorization)
        shown = view(subject.key) if view is not None else None
        if shown is None:
            why = f"nothing is known yet of {subject.topic}, whose leader has just begun; try again"
            response = error_response(503, why)
        else:
            response = web.json_response(await complete(subject, shown))
        response.headers[LEADER_HEADER] = leader.identity
        return response

    async def _with_stats(self, subject: Subject, shown: Mapping[str, Any]) -> Mapping[str, Any]:
        if not is_native(subject.body):
            return shown
        return native_stats.with_told(shown, await self._looks.native(subject), subject.layout)

    async def _with_policy(self, subject: Subject, shown: Mapping[str, Any]) -> Mapping[str, Any]:
        if shown.get("engine") != Engine.BROKER.value:
            return shown
        return native_stats.with_policy_told(shown, await self._looks.native(subject))


async def _as_it_is(_: Subject, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    return shown
