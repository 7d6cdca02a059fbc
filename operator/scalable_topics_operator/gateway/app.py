"""The routes: pip-468's admin REST as far as it shows things, and what replicas ask each other."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.gateway.access import bearer_token
from scalable_topics_operator.gateway.admission import TOPIC_PATH
from scalable_topics_operator.gateway.forwarding import LEADER_HEADER
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.peer_client import LOAD_PATH
from scalable_topics_operator.gateway.refusal import Refusal, error_response
from scalable_topics_operator.gateway.views import LoadSource, TopicViews

logger = logging.getLogger(__name__)


View = Callable[[ObjectKey], Mapping[str, Any] | None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GatewayRoutes:
    """Answers requests, or has the topic's leader answer them.

    Args:
        parts: what it shares with the other routes.
        peer_token: of the installation's replicas.
        views: what this replica can tell of the topics it leads; None while there is nothing that could.
        load: what this replica has sampled; None while it samples nothing.
        more: routes of other modules.
    """

    def __init__(
        self,
        parts: GatewayParts,
        peer_token: str,
        views: TopicViews | None,
        load: LoadSource | None,
        more: Iterable[web.AbstractRouteDef] = (),
    ) -> None:
        self._parts = parts
        self._peer_token = peer_token.encode()
        self._metrics = parts.metrics
        self._views = views
        self._load = load
        self._more = tuple(more)

    def make_app(self) -> web.Application:
        """The application."""
        views = self._views
        app = web.Application(middlewares=[self._measured])
        app.add_routes(
            [
                self._shown("stats", "/stats", views.stats if views is not None else None),
                self._shown("explain", "/autoScale/explain", views.explain if views is not None else None),
                self._shown("policy", "/autoScalePolicy/effective", views.policy if views is not None else None),
                web.get(f"{LOAD_PATH}/{{namespace}}/{{connection}}", self._show_load, name="load", allow_head=False),
                *self._more,
            ]
        )
        return app

    def _shown(self, name: str, path: str, view: View | None) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._show_topic(request, view)

        return web.get(TOPIC_PATH + path, handle, name=name, allow_head=False)

    async def _show_topic(self, request: web.Request, view: View | None) -> web.StreamResponse:
        admitted = await self._parts.admission.admit(request, "get")
        topic, key = admitted.topic, admitted.key
        leader = self._parts.leaders.leader_of(key)
        if leader is None or not leader.is_me:
            return await self._parts.forwarding.http(request, topic, leader, admitted.authorization)
        shown = view(key) if view is not None else None
        if shown is None:
            response = error_response(503, f"nothing is known yet of {topic}, whose leader has just begun; try again")
        else:
            response = web.json_response(shown)
        response.headers[LEADER_HEADER] = leader.identity
        return response

    async def _show_load(self, request: web.Request) -> web.StreamResponse:
        token = bearer_token(request.headers.get("Authorization")) or ""
        if not hmac.compare_digest(token.encode(), self._peer_token):
            raise Refusal(401, "this is for replicas of this operator only")
        if self._load is None:
            raise Refusal(503, "this replica samples no load")
        key = ObjectKey(CONNECTIONS.plural, request.match_info["namespace"], request.match_info["connection"])
        sample = await self._load.sample(key)
        if sample is None:
            raise Refusal(404, f"this replica has no samples of {key}")
        return web.Response(body=sample, content_type="application/json")

    @web.middleware
    async def _measured(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.monotonic()
        route = request.match_info.route.name or "none"
        response = await _answered(request, handler)
        self._metrics.gateway_requests.labels(route, str(response.status)).inc()
        if isinstance(response, web.WebSocketResponse):
            # It has ended: how long it has lived is no duration of a request.
            return response
        self._metrics.gateway_request_seconds.labels(route).observe(time.monotonic() - started)
        return response


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The handler's response; every error becomes one in Pulsar's style."""
    try:
        return await handler(request)
    except Refusal as refusal:
        return error_response(refusal.status, refusal.reason)
    except web.HTTPException as error:
        return error_response(error.status, f"{error.reason}: {request.method} {request.path} is nothing we serve")
    except Exception:
        logger.exception("unexpected, at %s %s", request.method, request.path)
        return error_response(500, "unexpected; the operator's log says more")
