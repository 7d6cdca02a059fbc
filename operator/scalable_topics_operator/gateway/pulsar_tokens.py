"""Judging tokens of Pulsar: the topic's own cluster does, by a lookup of one of its segments (R33)."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from scalable_topics.layout import LayoutError, TopicName, from_record
from scalable_topics_operator.backends.admin.credentials import Token
from scalable_topics_operator.backends.admin.lookup_api import TokenVerdict
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.controllers.connections import ConnectionHandle
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.segment_names import segment_topic
from scalable_topics_operator.controllers.topic_backend import backend_of_topic
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.review_cache import ReviewCache
from scalable_topics_operator.gateway.views import Connections
from scalable_topics_operator.operations.errors import BackendError

logger = logging.getLogger(__name__)

_JUDGE_SECONDS = 2.5


@dataclass(frozen=True, slots=True)
class _Question:
    """What is answered once for all who ask it: a connection that was changed may lead to another cluster."""

    fingerprint: bytes
    topic: ObjectKey
    connection_uid: str
    connection_generation: int


class PulsarTokens:
    """Has tokens judged by the clusters of the topics they are shown for, and never by another one.

    Args:
        cache: the objects.
        connections: their clusters.
        monotonic: clock of the answers that are kept.
    """

    def __init__(
        self, cache: ObjectCache, connections: Connections, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._cache = cache
        self._connections = connections
        self._verdicts: ReviewCache[_Question, TokenVerdict] = ReviewCache(
            lambda verdict: verdict.allowed, monotonic=monotonic
        )

    async def judge(
        self, token: str, fingerprint: bytes, key: ObjectKey, granted_within_seconds: float = math.inf
    ) -> TokenVerdict:
        """Whether a token's bearer may look up the segments of a topic.

        Args:
            token: the text.
            fingerprint: its keyed hash, by which the answer is kept.
            key: of the topic's object.
            granted_within_seconds: how old a good answer may be.

        Raises Refusal: 503 when that cannot be found out.
        """
        body = self._cache.get(key)
        handle = self._connections.handle(connection_of(body)) if body is not None else None
        if body is None or handle is None:
            raise Refusal(503, f"{key} cannot tell its Pulsar cluster now, so the token cannot be judged; try again")
        segment = _a_segment(body)
        if segment is None:
            raise Refusal(503, f"{key} has no segments yet by which a token of Pulsar could be judged; try again")
        question = _Question(fingerprint, key, handle.uid, handle.generation)
        return await self._verdicts.get(
            question, lambda: _ask(handle, segment, token), granted_within_seconds=granted_within_seconds
        )

    async def close(self) -> None:
        """Give up what is being asked."""
        await self._verdicts.close()


async def _ask(handle: ConnectionHandle, segment: str, token: str) -> TokenVerdict:
    try:
        async with asyncio.timeout(_JUDGE_SECONDS):
            return await handle.admin.lookups.judge(segment, Token(token))
    except (BackendError, TimeoutError) as error:
        logger.warning("judging a token of Pulsar failed: %s", str(error) or f"no answer in {_JUDGE_SECONDS} s")
        raise Refusal(
            503, "the topic's Pulsar cluster does not answer the lookup by which the token is judged; try again"
        ) from None


def _a_segment(body: Body) -> str | None:
    """The topic of the active segment with the lowest id."""
    record = (body.get("status") or {}).get("layout")
    try:
        layout = from_record(record) if record else None
    except LayoutError:
        return None
    if layout is None:
        return None
    first = min(layout.active, key=lambda segment: segment.segment_id)
    return segment_topic(backend_of_topic(body), TopicName.parse(body["spec"]["topic"]), first)
