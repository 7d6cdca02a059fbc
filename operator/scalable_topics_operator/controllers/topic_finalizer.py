"""The end of a ScalableTopic object: its topic is released or deleted, then the finalizer goes (R31)."""

from __future__ import annotations

import logging

from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import FINALIZER, FORCE_DELETE_ANNOTATION, TOPICS
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.refusals import refusal_reason
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.controllers.topic_course import Courses
from scalable_topics_operator.controllers.topic_memory import TopicMemory
from scalable_topics_operator.controllers.topic_status import with_standing
from scalable_topics_operator.controllers.topic_work import AnyWork, Stuck, TopicWorkMaker
from scalable_topics_operator.operations.errors import (
    BackendError,
    BackendRefused,
    BackendUnavailable,
    ClientsAttached,
    NamespaceMissing,
)

logger = logging.getLogger(__name__)

_CLIENTS_RETRY_SECONDS = 10.0
_FORBIDDEN_RETRY_SECONDS = 30.0


class TopicFinalizer:
    """Adds the finalizer, and takes it away once nothing of the topic is left to do."""

    def __init__(
        self, kube: KubeClient, cache: ObjectCache, events: EventRecorder, maker: TopicWorkMaker, courses: Courses
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._events = events
        self._maker = maker
        self._courses = courses

    async def ensure(self, key: ObjectKey, body: Body) -> Body:
        """Make sure the object has our finalizer before anything is made for it; answers the object."""
        finalizers = body["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            return body
        return await self._patch(key, body, [*finalizers, FINALIZER])

    async def finalize(self, key: ObjectKey, store: StatusStore, memory: TopicMemory) -> float | None:
        """Release or delete the topic of an object that is being deleted; answers when to look again, in seconds.

        Raises BackendUnavailable when a topic that is to be deleted cannot be reached now.
        """
        body = store.body
        if FINALIZER not in (body["metadata"].get("finalizers") or []):
            return None
        retain = body["spec"].get("deletionPolicy", "Retain") == "Retain"
        try:
            work = self._maker.make(key, store, memory)
            await self._courses.require_same_cluster(work)
        except Stuck as stuck:
            return await self._without_cluster(key, store, stuck, retain=retain)
        except BackendError as error:
            away = Stuck(Standing.working("BrokerUnavailable", str(error)))
            return await self._without_cluster(key, store, away, retain=retain)
        if retain:
            await self._release(work)
        else:
            why = self._maker.why_forbidden(work, "Delete")
            if why:
                standing = Standing.stuck("NotAllowed", f"{why}, or set deletionPolicy: Retain to keep the data")
                await self._write(store, standing)
                return _FORBIDDEN_RETRY_SECONDS
            again_seconds = await self._delete(work, store)
            if again_seconds is not None:
                return again_seconds
        await self._drop(key, store.body)
        return None

    async def _delete(self, work: AnyWork, store: StatusStore) -> float | None:
        """Delete the topic; answers when to try again, in seconds, if it is still there."""
        annotations = store.body["metadata"].get("annotations") or {}
        try:
            await self._courses.delete(work, force=annotations.get(FORCE_DELETE_ANNOTATION) == "true")
        except NamespaceMissing:
            # What was in it is gone with it.
            return None
        except BackendRefused as refusal:
            await self._write(store, Standing.stuck(refusal_reason(refusal), str(refusal)))
            return _CLIENTS_RETRY_SECONDS if isinstance(refusal, ClientsAttached) else _FORBIDDEN_RETRY_SECONDS
        except BackendUnavailable as error:
            await self._write(store, Standing.working("BrokerUnavailable", str(error)))
            raise
        return None

    async def _release(self, work: AnyWork) -> None:
        """Best effort: a claim whose object is gone is recovered silently, so nothing must wait for this."""
        try:
            await self._courses.release(work)
        except BackendError as error:
            await self._events.warning(work.store.body, "NotReleased", f"the claim could not be released: {error}")

    async def _without_cluster(self, key: ObjectKey, store: StatusStore, stuck: Stuck, *, retain: bool) -> float | None:
        """The topic cannot be worked on: a retained one needs no work, a never created one neither (hazard C10)."""
        created = bool(store.status.get("layout") or store.status.get("operation"))
        gone = stuck.standing is not None and stuck.standing.reason == "ConnectionMissing"
        if retain or not created or gone:
            if created and not retain:
                await self._events.warning(store.body, "DataLeft", f"the topic's data was left on the brokers: {stuck}")
            await self._drop(key, store.body)
            return None
        if stuck.standing is not None:
            await self._write(store, stuck.standing)
        return stuck.retry_seconds or _FORBIDDEN_RETRY_SECONDS

    async def _write(self, store: StatusStore, standing: Standing) -> None:
        generation = store.body["metadata"]["generation"]
        await store.write(with_standing(store.status, standing, generation=generation, now=timestamp_now()))
        if standing.stalled:
            await self._events.warning(store.body, standing.reason, standing.message)

    async def _drop(self, key: ObjectKey, body: Body) -> None:
        finalizers = [name for name in body["metadata"].get("finalizers") or [] if name != FINALIZER]
        await self._patch(key, body, finalizers)

    async def _patch(self, key: ObjectKey, body: Body, finalizers: list[str]) -> Body:
        metadata = body["metadata"]
        patch = {
            "metadata": {
                "finalizers": finalizers,
                "resourceVersion": metadata["resourceVersion"],
                "uid": metadata["uid"],
            }
        }
        try:
            written = await self._kube.merge_patch(TOPICS, key.namespace, key.name, patch)
        except KubeNotFound:
            self._cache.remove(key, metadata["uid"])
            return body
        if not (written["metadata"].get("deletionTimestamp") and not written["metadata"].get("finalizers")):
            self._cache.observe(TOPICS, written)
        return written
