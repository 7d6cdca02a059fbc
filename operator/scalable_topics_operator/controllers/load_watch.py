"""Samples the load of each connection's brokers, or asks the replica that does (R34)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.cluster.status_store import StaleStatus, StatusStore
from scalable_topics_operator.controllers.conditions import Aspect, find_condition, with_aspects
from scalable_topics_operator.controllers.connections import ConnectionController, ConnectionHandle
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.load.direct import DirectSampler
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.load.topic_load import stale_after_seconds
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.telemetry.pipeline_metrics import BROKERS, PIPELINE, PipelineMetrics

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
_MOST_SECONDS = 10.0
# A broker that is restarted is away for less; telling of that would be two writes for nothing.
_SHOWN_AFTER_SECONDS = 60.0


class Pipelines(Protocol):
    """What pipelines say."""

    def fresh_sample(self, connection: ObjectKey) -> tuple[LoadSample, float] | None:
        """What a connection's pipeline says, and the monotonic time that it is of; None unless it is fresh."""

    def why_not_fresh(self, connection: ObjectKey) -> tuple[str, str]:
        """Reason and message for a condition, while there is none."""


PeerLoad = Callable[[ObjectKey], Awaitable[LoadSample | None]]
"""Asks the replica that samples a connection for its last sample; None where there is none to be had."""


@dataclass(slots=True)
class _Watched:
    """One connection.

    Args:
        uid: of the object and generation of its spec, as one text.
        sampler: asks its brokers.
        since: monotonic time since when samples are waited for.
        due: monotonic time of the next one.
        sample: the last one.
        leads: whether this replica looks at the brokers, so that it shows what comes of that.
        is_own: whether this replica has made it.
        came_at: when it came, monotonic.
        complete_at: monotonic time of the last one that lacks no broker, whoever made it; `since` until there was one.
        failing_since: since when brokers have been missing, monotonic; None while none are.
        why: what is missing.
        unfollowed_since: since when its pipeline has had nothing fresh, monotonic; None while it has.
    """

    uid: str
    sampler: DirectSampler
    since: float
    complete_at: float
    due: float = 0.0
    sample: LoadSample | None = None
    leads: bool = False
    is_own: bool = False
    came_at: float = 0.0
    failing_since: float | None = None
    why: str = ""
    unfollowed_since: float | None = None
    work: asyncio.Task[None] | None = field(default=None, repr=False)


class LoadWatch:
    """Keeps the last sample of every connection.

    Args:
        kube: the API server.
        cache: objects as last seen.
        connections: handles of the connections.
        shards: tells which connections this replica samples.
        metrics: show how old samples are.
        pipelines: what they say of connections that have one.
        peers: asks for samples of the others.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        connections: ConnectionController,
        shards: ShardWork,
        metrics: PipelineMetrics,
        pipelines: Pipelines,
        peers: PeerLoad,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._connections = connections
        self._shards = shards
        self._metrics = metrics
        self._pipelines = pipelines
        self._peers = peers
        self._watched: dict[ObjectKey, _Watched] = {}

    def sample(self, connection: ObjectKey) -> LoadSample | None:
        """The last sample of a connection's cluster."""
        watched = self._watched.get(connection)
        return watched.sample if watched is not None else None

    def own_sample(self, connection: ObjectKey) -> LoadSample | None:
        """The same, if this replica has asked the brokers itself."""
        watched = self._watched.get(connection)
        return watched.sample if watched is not None and watched.is_own else None

    def is_silent(self, connection: ObjectKey) -> bool:
        """Whether no samples come, so that topics have to be asked for one by one.

        Never while a broker is missing: its segments would not answer either.
        """
        watched, handle = self._watched.get(connection), self._connections.handle(connection)
        if watched is None or handle is None or handle.probe is None:
            return False
        if not handle.probe.brokers:
            return True
        if watched.sample is not None and len(watched.sample.missing) > 0 and not _all_missing(watched.sample, handle):
            return False
        last = max(watched.since, watched.came_at)
        return time.monotonic() - last > stale_after_seconds(handle.spec.load.interval_seconds)

    async def run(self) -> None:
        """Sample for ever."""
        try:
            while True:
                self._begin_due()
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            running = [watched.work for watched in self._watched.values() if watched.work is not None]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _begin_due(self) -> None:
        keys = {key for key, _ in self._cache.all(CONNECTIONS)}
        for gone in self._watched.keys() - keys:
            self._forget(gone)
        for key in keys:
            handle = self._connections.handle(key)
            if handle is None or handle.probe is None or not handle.probe.brokers or handle.problem:
                continue
            watched = self._opened(key, handle)
            if watched.work is None and time.monotonic() >= watched.due:
                watched.due = time.monotonic() + handle.spec.load.interval_seconds
                watched.work = asyncio.create_task(self._look(key, handle, watched))

    def _opened(self, key: ObjectKey, handle: ConnectionHandle) -> _Watched:
        uid = f"{handle.uid}/{handle.generation}"
        watched = self._watched.get(key)
        if watched is None or watched.uid != uid:
            self._forget(key)
            timeout_seconds = min(_MOST_SECONDS, float(handle.spec.limits.request_timeout_seconds))
            sampler = DirectSampler(handle.privileged.cluster, handle.spec.load.interval_seconds, timeout_seconds)
            now = time.monotonic()
            watched = self._watched[key] = _Watched(uid, sampler, now, now)
        return watched

    async def _look(self, key: ObjectKey, handle: ConnectionHandle, watched: _Watched) -> None:
        try:
            if self._shards.leads(key):
                self._mine(key, watched)
                await self._shards.run(key, self._sample(key, handle, watched))
            elif (sample := await self._peers(key)) is not None:
                self._others(key, watched)
                watched.sample = sample
                if not _all_missing(sample, handle):
                    watched.came_at = time.monotonic()
                if not sample.missing:
                    # Known to whoever leads it next; a peer that fails sends its last one again and again.
                    age_seconds = max(0.0, time.time() - sample.at_ms / 1000)
                    watched.complete_at = max(watched.complete_at, time.monotonic() - age_seconds)
            else:
                self._others(key, watched)
        except NotLed:
            pass
        except BackendError as error:
            logger.info("%s: its load is not sampled: %s", key, error)
        except Exception:
            # Whatever goes wrong is this connection's alone.
            logger.exception("%s: its load is not sampled", key)
        finally:
            watched.work = None

    async def _sample(self, key: ObjectKey, handle: ConnectionHandle, watched: _Watched) -> None:
        """Take what the connection's pipeline says, or ask the brokers while that is not fresh (R34)."""
        is_piped = handle.spec.load.source == "Pipeline"
        found = self._pipelines.fresh_sample(key) if is_piped else None
        if found is not None:
            sample, taken_at = found
            is_news, all_missing = watched.sample is not sample, _all_missing(sample, handle)
            watched.unfollowed_since = None
        else:
            # Listed each time: one that has just joined may have taken topics already.
            brokers = await handle.privileged.cluster.brokers()
            sample, taken_at = await watched.sampler.sample(brokers), time.monotonic()
            is_news, all_missing = True, len(sample.missing) >= len(brokers)
            if is_piped and watched.unfollowed_since is None:
                watched.unfollowed_since = time.monotonic()
        if is_piped:
            self._metrics.show_followed((key.namespace, key.name), followed=found is not None)
        if is_news:
            source = BROKERS if found is None else PIPELINE
            self._take(key, watched, sample, taken_at, source, all_missing=all_missing)
        await self._tell(key, handle, watched)

    def _take(
        self, key: ObjectKey, watched: _Watched, sample: LoadSample, taken_at: float, source: str, *, all_missing: bool
    ) -> None:
        now = time.monotonic()
        watched.sample, watched.is_own = sample, True
        if not all_missing:
            watched.came_at = now
        if not sample.missing:
            watched.complete_at = taken_at
            self._show_age(key, watched)
        self._metrics.sampled(
            (key.namespace, key.name),
            source,
            segments=len(sample.segments),
            unsettled=len(sample.unsettled),
            missing=len(sample.missing),
        )
        if not sample.missing:
            watched.failing_since = None
        elif watched.failing_since is None:
            watched.failing_since = now
        watched.why = "; ".join(f"broker {broker}: {why}" for broker, why in sorted(sample.missing.items()))

    def _mine(self, key: ObjectKey, watched: _Watched) -> None:
        """This replica looks at the brokers; how old the last look is counts even if none ever comes."""
        if not watched.leads:
            watched.leads = True
            self._show_age(key, watched)

    def _others(self, key: ObjectKey, watched: _Watched) -> None:
        """Another replica samples the connection now."""
        if not watched.leads:
            return
        watched.leads = watched.is_own = False
        watched.failing_since = watched.unfollowed_since = None
        self._hide(key)

    def _show_age(self, key: ObjectKey, watched: _Watched) -> None:
        self._metrics.show_age((key.namespace, key.name), watched.complete_at)

    async def _tell(self, key: ObjectKey, handle: ConnectionHandle, watched: _Watched) -> None:
        """Keep the condition LoadFresh, which changes only when brokers or pipeline stay away or come back."""
        body = self._cache.get(key)
        wanted = self._wanted(key, handle, watched)
        if body is None or wanted is None:
            return
        store = StatusStore(self._kube, CONNECTIONS, body, self._observe)
        shown = find_condition(store.status, wanted.kind)
        if shown.get("reason") == wanted.reason:
            return
        status = with_aspects(store.status, (wanted,), generation=body["metadata"]["generation"], now=timestamp_now())
        try:
            await store.write(status)
        except (KubeError, StaleStatus) as error:
            logger.info("%s: LoadFresh is not written yet: %s", key, error)

    def _wanted(self, key: ObjectKey, handle: ConnectionHandle, watched: _Watched) -> Aspect | None:
        """What is to be shown; None while it is too early to tell."""
        for since in (watched.failing_since, watched.unfollowed_since):
            if since is not None and time.monotonic() - since < _SHOWN_AFTER_SECONDS:
                return None
        if watched.failing_since is not None:
            return Aspect("LoadFresh", False, "BrokersMissing", watched.why)
        if watched.unfollowed_since is not None:
            reason, message = self._pipelines.why_not_fresh(key)
            return Aspect("LoadFresh", False, reason, f"brokers are sampled directly: {message or 'it is starting'}")
        return Aspect("LoadFresh", True, "Sampled" if handle.spec.load.source == "Direct" else "PipelineFollowed", "")

    def _observe(self, written: Body) -> None:
        self._cache.observe(CONNECTIONS, written)

    def _forget(self, key: ObjectKey) -> None:
        watched = self._watched.pop(key, None)
        if watched is not None:
            self._hide(key)
            if watched.work is not None:
                watched.work.cancel()

    def _hide(self, key: ObjectKey) -> None:
        self._metrics.hide_load((key.namespace, key.name))


def _all_missing(sample: LoadSample, handle: ConnectionHandle) -> bool:
    """Whether no broker could be asked itself: a listed name may not be one that leads there from here."""
    return handle.probe is not None and sample.missing.keys() >= set(handle.probe.brokers)
