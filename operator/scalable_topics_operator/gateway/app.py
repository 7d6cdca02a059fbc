"""The application: what all routes have in common, however they answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from scalable_topics_operator.gateway.etags import unless_known
from scalable_topics_operator.gateway.refusal import Refusal, error_response
from scalable_topics_operator.gateway.rest_call import BODY_BYTES
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

# What others count such requests as; nobody reads it.
_HUNG_UP = 499

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(routes: Iterable[web.AbstractRouteDef], metrics: Metrics) -> web.Application:
    """The application.

    Args:
        routes: what it serves.
        metrics: count requests.
    """

    @web.middleware
    async def measured(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.monotonic()
        route = request.match_info.route.name or "none"
        response = await _answered(request, handler)
        metrics.gateway_requests.labels(route, str(response.status)).inc()
        if isinstance(response, web.WebSocketResponse):
            # It has ended: how long it has lived is no duration of a request.
            return response
        metrics.gateway_request_seconds.labels(route).observe(time.monotonic() - started)
        return response

    app = web.Application(middlewares=[measured], client_max_size=BODY_BYTES)
    app.add_routes(routes)
    return app


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The handler's response; every error becomes one in Pulsar's style."""
    try:
        return unless_known(request, await handler(request))
    except Refusal as refusal:
        return error_response(refusal.status, refusal.reason, manifest=refusal.manifest, again=refusal.again)
    except web.HTTPRequestEntityTooLarge:
        return error_response(413, f"the body is larger than {BODY_BYTES} bytes")
    except web.HTTPException as error:
        why = f"{error.reason}: {request.method} {request.path} is nothing we serve"
        return error_response(error.status, why, allow=error.headers.get("Allow", ""))
    except Exception as error:
        if isinstance(error, ConnectionResetError) and _is_gone(request):
            logger.debug("the caller of %s %s has hung up", request.method, request.path)
            return web.Response(status=_HUNG_UP)
        logger.exception("unexpected, at %s %s", request.method, request.path)
        return error_response(500, "unexpected; the operator's log says more")


def _is_gone(request: web.Request) -> bool:
    """Whether its connection has ended, if only in this turn of the event loop: then aiohttp has it still."""
    return request.transport is None or request.transport.is_closing()
