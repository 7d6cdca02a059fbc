"""What is about no topic: the document of all routes, and what replicas ask each other with their own token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from importlib.metadata import version

from aiohttp import web

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.gateway import other_routes
from scalable_topics_operator.gateway.access import bearer_token
from scalable_topics_operator.gateway.openapi import openapi_text
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import route_def
from scalable_topics_operator.gateway.views import LoadSource


class OtherHandlers:
    """Handles what needs no right in Kubernetes.

    Args:
        peer_token: of the installation's replicas.
        load: what this replica has sampled; None while it samples nothing.
    """

    def __init__(self, peer_token: str, load: LoadSource | None) -> None:
        self._peer_token = peer_token.encode()
        self._load = load
        self._document = openapi_text(version("scalable-topics")).encode()

    def routes(self) -> Iterable[web.RouteDef]:
        """What it answers."""
        for route, handler in ((other_routes.OPENAPI, self._openapi), (other_routes.LOAD, self._show_load)):
            yield route_def(route, handler)

    async def _openapi(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=self._document, content_type="application/json")

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
