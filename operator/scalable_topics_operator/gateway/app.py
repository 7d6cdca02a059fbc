"""The routes: pip-468's admin REST as far as it shows things, and what replicas ask each other."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.gateway.access import Access, bearer_token
from scalable_topics_operator.gateway.peer_client import LOAD_PATH
from scalable_topics_operator.gateway.peer_transport import PeerTransport, PeerUnreachable
from scalable_topics_operator.gateway.refusal import Refusal, error_response
from scalable_topics_operator.gateway.topic_directory import TopicDirectory
from scalable_topics_operator.gateway.views import Leaders, LoadSource, TopicViews
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

LEADER_HEADER = "X-Scalable-Topics-Leader"
FORWARDED_HEADER = "X-Scalable-Topics-Forwarded"
_TOPIC_PATH = "/admin/v2/scalable/{tenant}/{namespace}/{topic}"
_PASSED_ON = ("Content-Type", "Retry-After", "WWW-Authenticate", LEADER_HEADER)

View = Callable[[ObjectKey], Mapping[str, Any] | None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GatewayRoutes:
    """Answers requests, or has the topic's leader answer them.

    Args:
        directory: finds topics.
        access: judges callers.
        leaders: who leads what.
        transport: reaches other replicas.
        peer_token: of the installation's replicas.
        metrics: count requests.
        views: what this replica can tell of the topics it leads; None while there is nothing that could.
        load: what this replica has sampled; None while it samples nothing.
    """

    def __init__(
        self,
        directory: TopicDirectory,
        access: Access,
        leaders: Leaders,
        transport: PeerTransport,
        peer_token: str,
        metrics: Metrics,
        views: TopicViews | None,
        load: LoadSource | None,
    ) -> None:
        self._directory = directory
        self._access = access
        self._leaders = leaders
        self._transport = transport
        self._peer_token = peer_token.encode()
        self._metrics = metrics
        self._views = views
        self._load = load

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
            ]
        )
        return app

    def _shown(self, name: str, path: str, view: View | None) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._show_topic(request, view)

        return web.get(_TOPIC_PATH + path, handle, name=name, allow_head=False)

    async def _show_topic(self, request: web.Request, view: View | None) -> web.StreamResponse:
        authorization = request.headers.get("Authorization")
        # Whoever nobody knows learns nothing, not even which topics there are.
        await self._access.caller(authorization)
        match = request.match_info
        topic = TopicName(match["tenant"], match["namespace"], match["topic"])
        key = self._directory.find(topic, request.query.get("connection"))
        await self._access.require(authorization, "get", key)
        leader = self._leaders.leader_of(key)
        if leader is None:
            raise Refusal(503, f"no replica is known to lead {topic} now; try again")
        if not leader.is_me:
            return await self._forward(request, topic, leader, authorization or "")
        shown = view(key) if view is not None else None
        if shown is None:
            response = error_response(503, f"nothing is known yet of {topic}, whose leader has just begun; try again")
        else:
            response = web.json_response(shown)
        response.headers[LEADER_HEADER] = leader.identity
        return response

    async def _forward(
        self, request: web.Request, topic: TopicName, leader: Peer, authorization: str
    ) -> web.StreamResponse:
        if FORWARDED_HEADER in request.headers:
            raise Refusal(503, f"{topic} has just changed its leader; try again")
        if not leader.address:
            raise Refusal(503, f"the leader of {topic} does not say where its gateway is; set --gateway-address there")
        headers = {"Authorization": authorization, FORWARDED_HEADER: "true"}
        try:
            answer = await self._transport.get(leader.address, request.rel_url.raw_path_qs, headers)
        except PeerUnreachable as error:
            self._metrics.gateway_forwarded.labels("unreachable").inc()
            logger.info("forwarding a request for %s to its leader %s: %s", topic, leader.identity, error)
            raise Refusal(503, f"the leader of {topic} does not answer; try again") from None
        self._metrics.gateway_forwarded.labels("answered").inc()
        passed_on = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=passed_on)

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
