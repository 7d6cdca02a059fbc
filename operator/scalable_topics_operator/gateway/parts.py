"""What the gateway's routes share, whichever module they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp import web

from scalable_topics_operator.gateway.admission import Admission
from scalable_topics_operator.gateway.forwarding import Forwarding
from scalable_topics_operator.gateway.sessions import Sessions
from scalable_topics_operator.gateway.views import Leaders
from scalable_topics_operator.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """What a handler needs to let a caller in and to pass a request on.

    Args:
        admission: finds topics and judges callers.
        leaders: who leads what.
        forwarding: passes on what only a leader can answer.
        sessions: holds WebSockets that are served here.
        metrics: of the process.
    """

    admission: Admission
    leaders: Leaders
    forwarding: Forwarding
    sessions: Sessions
    metrics: Metrics


RouteMaker = Callable[[GatewayParts], Iterable[web.AbstractRouteDef]]
