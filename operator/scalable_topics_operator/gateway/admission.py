"""From a request to the topic it is about, once its caller was found to have the right (R33)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from aiohttp import web

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.gateway.access import UNFOUND_FOR_TOKEN, Access, pulsar_token
from scalable_topics_operator.gateway.common_parameters import TOPIC_PATH
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.topic_directory import TopicDirectory, Unfound

__all__ = ["TOPIC_PATH", "Admission", "Admitted"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be answered.

    Args:
        topic: it is about.
        key: of the topic's object.
        authorization: the caller's header, by which a leader judges again.
        caller: by what the caller is counted; holds no secret.
    """

    topic: TopicName
    key: ObjectKey
    authorization: str = field(repr=False)
    caller: str


class Admission:
    """Lets requests in.

    Args:
        directory: finds topics.
        access: judges callers.
    """

    def __init__(self, directory: TopicDirectory, access: Access) -> None:
        self._directory = directory
        self._access = access

    async def admit(self, request: web.Request, verb: str, *, granted_within_seconds: float = math.inf) -> Admitted:
        """Judge a request at a path that begins with `TOPIC_PATH`.

        Args:
            request: with the caller's Authorization header and, where need be, `?connection=`.
            verb: what the caller wants to do with the topic.
            granted_within_seconds: how old a good answer may be that was given before.

        Raises Refusal: 400, 401, 403, 404, 503.
        """
        authorization = request.headers.get("Authorization")
        # Whoever nobody knows learns nothing, not even which topics there are.
        await self._access.recognize(authorization, verb)
        match = request.match_info
        topic = TopicName(match["tenant"], match["namespace"], match["topic"])
        try:
            key = self._directory.find(topic, request.query.get("connection"))
        except Unfound:
            if pulsar_token(authorization) is None:
                raise
            raise Refusal(401, UNFOUND_FOR_TOKEN) from None
        caller = await self._access.require(authorization, verb, key, granted_within_seconds=granted_within_seconds)
        return Admitted(topic, key, authorization or "", caller)
