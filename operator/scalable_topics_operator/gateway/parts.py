"""What the gateway's routes share, whichever module they are in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from aiohttp import web

from scalable_topics_operator.gateway.access import Access
from scalable_topics_operator.gateway.admission import Admission
from scalable_topics_operator.gateway.forwarding import Forwarding
from scalable_topics_operator.gateway.ordinary_topics import OrdinaryTopics
from scalable_topics_operator.gateway.session_places import SessionPlaces
from scalable_topics_operator.gateway.sessions import Sessions
from scalable_topics_operator.gateway.topic_directory import TopicDirectory
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
        places: counts WebSockets that a module holds by itself.
        endings: called when the replica ends; whoever holds WebSockets by itself sends its clients away.
        metrics: of the process.
        access: judges callers.
        directory: finds topics.
        ordinary: knows topics that are not scalable yet.
    """

    admission: Admission
    leaders: Leaders
    forwarding: Forwarding
    sessions: Sessions
    places: SessionPlaces
    endings: list[Callable[[], Awaitable[None]]]
    metrics: Metrics
    access: Access
    directory: TopicDirectory
    ordinary: OrdinaryTopics


RouteMaker = Callable[[GatewayParts], Iterable[web.AbstractRouteDef]]
