"""Watch sessions: a topic's layout and every change of it, for whoever does not follow the layout topic (R20)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aiohttp import web

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.access import LOOKUP
from scalable_topics_operator.gateway.admission import TOPIC_PATH, Admitted
from scalable_topics_operator.gateway.domains import is_resolved
from scalable_topics_operator.gateway.object_names import object_name
from scalable_topics_operator.gateway.ordinary_topics import is_ordinary
from scalable_topics_operator.gateway.ordinary_watch import OrdinaryWatch
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.session_places import SessionKind
from scalable_topics_operator.gateway.session_routes import WATCH_SESSION
from scalable_topics_operator.gateway.topic_directory import Unfound
from scalable_topics_operator.gateway.watch_hub import WatchHub

# Clients have nothing to say.
_FRAME_BYTES = 4096


class WatchSessions:
    """Serves them on every replica, from its own cache.

    Args:
        hub: knows the watched topics.
        ordinary: knows the watched topics that are not scalable yet.
    """

    def __init__(self, hub: WatchHub, ordinary: OrdinaryWatch) -> None:
        self._hub = hub
        self._ordinary = ordinary

    def routes(self, parts: GatewayParts) -> Iterable[web.AbstractRouteDef]:
        """The one route."""

        async def watch(request: web.Request) -> web.StreamResponse:
            return await self._watch(request, parts)

        return [web.get(TOPIC_PATH + "/watch", watch, name=WATCH_SESSION.name, allow_head=False)]

    async def _watch(self, request: web.Request, parts: GatewayParts) -> web.StreamResponse:
        resolved, owners = is_resolved(request.query.get("domain")), _switch(request, "owners")
        admitted, ordinary = await self._admit(request, parts, resolved=resolved)
        since, topic, key = request.query.get("since"), admitted.topic, admitted.key
        session = await parts.sessions.open(
            request, admitted, kind=SessionKind.WATCH, verb=LOOKUP, frame_bytes=_FRAME_BYTES
        )
        try:
            if ordinary is None:
                self._hub.join(session, topic, key, since=since, owners=owners)
            else:
                self._ordinary.join(
                    session, topic, ordinary.connection, ordinary.partitions, key, since=since, owners=owners
                )
            while await session.receive() is not None:
                pass
        finally:
            self._hub.leave(session, key)
            self._ordinary.leave(session)
            await parts.sessions.leave(session)
        return session.response

    async def _admit(
        self, request: web.Request, parts: GatewayParts, *, resolved: bool
    ) -> tuple[Admitted, _Ordinary | None]:
        """Let a watcher in; answers the ordinary topic, too, if it is about one. Raises Refusal."""
        try:
            admitted = await parts.admission.admit(request, LOOKUP)
        except Unfound as unfound:
            if not resolved or unfound.status != 404:
                raise
            return await self._admit_undeclared(request, parts, unfound)
        body = parts.directory.body(admitted.key)
        if not resolved or body is None or (body.get("status") or {}).get("layout"):
            return admitted, None
        connection = connection_of(body)
        name = await parts.ordinary.read(admitted.topic, connection)
        if is_ordinary(name) or (body.get("status") or {}).get("operation"):
            return admitted, _Ordinary(connection, name.partitions)
        return admitted, None

    async def _admit_undeclared(
        self, request: web.Request, parts: GatewayParts, unfound: Unfound
    ) -> tuple[Admitted, _Ordinary]:
        match, authorization = request.match_info, request.headers.get("Authorization")
        topic = TopicName(match["tenant"], match["namespace"], match["topic"])
        mapping = parts.ordinary.mapping_of(topic, request.query.get("connection"))
        if mapping is None:
            raise unfound
        key = ObjectKey(TOPICS.plural, mapping.namespace, object_name(topic.local))
        caller = await parts.access.require(authorization, LOOKUP, key)
        name = await parts.ordinary.read(topic, mapping.connection)
        if not is_ordinary(name):
            raise unfound
        return Admitted(topic, key, authorization or "", caller), _Ordinary(mapping.connection, name.partitions)


@dataclass(frozen=True, slots=True)
class _Ordinary:
    """An ordinary topic: its connection, and how many partitions it has; 0 if it is not partitioned."""

    connection: ObjectKey
    partitions: int


def _switch(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "false")
    if text not in ("true", "false"):
        raise Refusal(400, f"?{name}= is true or false")
    return text == "true"
