"""Watch sessions: a topic's layout and every change of it, for whoever does not follow the layout topic (R20)."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from scalable_topics_operator.gateway.access import LOOKUP
from scalable_topics_operator.gateway.admission import TOPIC_PATH
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.watch_hub import WatchHub

_KIND = "watch"
# Clients have nothing to say.
_FRAME_BYTES = 4096


class WatchSessions:
    """Serves them on every replica, from its own cache.

    Args:
        hub: knows the watched topics.
    """

    def __init__(self, hub: WatchHub) -> None:
        self._hub = hub

    def routes(self, parts: GatewayParts) -> Iterable[web.AbstractRouteDef]:
        """The one route."""

        async def watch(request: web.Request) -> web.StreamResponse:
            return await self._watch(request, parts)

        return [web.get(TOPIC_PATH + "/watch", watch, name=_KIND, allow_head=False)]

    async def _watch(self, request: web.Request, parts: GatewayParts) -> web.StreamResponse:
        admitted = await parts.admission.admit(request, LOOKUP)
        owners = _switch(request, "owners")
        session = await parts.sessions.open(request, admitted, kind=_KIND, verb=LOOKUP, frame_bytes=_FRAME_BYTES)
        try:
            self._hub.join(session, admitted.topic, admitted.key, since=request.query.get("since"), owners=owners)
            while await session.receive() is not None:
                pass
        finally:
            self._hub.leave(session, admitted.key)
            await parts.sessions.leave(session)
        return session.response


def _switch(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "false")
    if text not in ("true", "false"):
        raise Refusal(400, f"?{name}= is true or false")
    return text == "true"
