"""Each topic's thresholds, as the pipeline reads them (R35)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import POLICIES, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.topic_work import BY_CONNECTION, canonical_topic

_DEFAULTS = AutoScaleConfig()
_TOPICS_AT_A_TIME = 200


@dataclass(frozen=True, slots=True)
class _Published:
    changes: tuple[int, int]
    text: bytes


class PublishedThresholds:
    """Works the thresholds of connections' topics out, and again once a topic or a policy has changed.

    Args:
        cache: the objects; with the index `BY_CONNECTION`.
        book: what policies come to.
    """

    def __init__(self, cache: ObjectCache, book: PolicyBook) -> None:
        self._cache = cache
        self._book = book
        self._published: dict[ObjectKey, _Published] = {}

    async def of(self, connection: ObjectKey) -> bytes:
        """`{"topic://…": {"split": [4 rates], "merge": [4 rates]}}` of those topics that have not the defaults.

        A topic whose knobs cannot be read is left out: nothing is decided on it.
        """
        changes = (self._cache.changes(TOPICS), self._cache.changes(POLICIES))
        known = self._published.get(connection)
        if known is None or known.changes != changes:
            known = self._published[connection] = _Published(changes, await self._work_out(connection))
        return known.text

    async def _work_out(self, connection: ObjectKey) -> bytes:
        found = {}
        for number, key in enumerate(tuple(self._cache.keys(BY_CONNECTION, str(connection)))):
            if number % _TOPICS_AT_A_TIME == 0:
                # Thousands of topics take longer than others may be kept waiting.
                await asyncio.sleep(0)
            body = self._cache.get(key)
            if body is None:
                continue
            config, topic = self._book.effective(key, body).config, canonical_topic(body)
            if config is None or topic is None or (config.split, config.merge) == (_DEFAULTS.split, _DEFAULTS.merge):
                continue
            found[topic] = {"split": list(config.split.values), "merge": list(config.merge.values)}
        return json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
