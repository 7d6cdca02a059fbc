"""SegmentOperations outside their topic's queue: finished ones past their time, and those without a topic (R31)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.cluster.segment_operations import FINISHED
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.conditions import Standing, apply_standing
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.timestamps import timestamp_now


class SegmentOperationController:
    """Hands unfinished SegmentOperations to their topics and deletes finished ones that asked for it.

    Args:
        kube: the API server.
        cache: objects as last seen.
        enqueue: puts a topic's key into the work queue.
    """

    def __init__(self, kube: KubeClient, cache: ObjectCache, enqueue: Callable[[ObjectKey], None]) -> None:
        self._kube = kube
        self._cache = cache
        self._enqueue = enqueue

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Look at one SegmentOperation; answers when to look again, in seconds."""
        body = self._cache.get(key)
        if body is None or body["metadata"].get("deletionTimestamp"):
            return None
        if (body.get("status") or {}).get("phase") in FINISHED:
            return await self._expire(key, body)
        topic = ObjectKey(TOPICS.plural, key.namespace, body["spec"]["scalableTopic"])
        if self._cache.get(topic) is None:
            await self._wait_for_topic(body, topic)
        else:
            self._enqueue(topic)
        return None

    async def _expire(self, key: ObjectKey, body: Body) -> float | None:
        ttl_seconds = body["spec"].get("ttlSecondsAfterFinished")
        completed_at = body["status"].get("completedAt")
        if ttl_seconds is None or completed_at is None:
            return None
        age_seconds = (datetime.now(UTC) - datetime.fromisoformat(completed_at)).total_seconds()
        if age_seconds < ttl_seconds:
            return float(ttl_seconds - age_seconds)
        await self._kube.delete(SEGMENT_OPERATIONS, key.namespace, key.name, uid=body["metadata"]["uid"])
        return None

    async def _wait_for_topic(self, body: Body, topic: ObjectKey) -> None:
        why = f"there is no ScalableTopic {topic.namespace}/{topic.name}; the operation waits for it"
        store = StatusStore(self._kube, SEGMENT_OPERATIONS, body, self._observe)
        generation = body["metadata"]["generation"]
        status = {**store.status, "phase": "Pending", "message": why, "observedGeneration": generation}
        status["conditions"] = apply_standing(
            status.get("conditions", ()),
            Standing.stuck("TopicMissing", why),
            generation=generation,
            now=timestamp_now(),
        )
        await store.write(status)

    def _observe(self, written: Body) -> None:
        self._cache.observe(SEGMENT_OPERATIONS, written)
