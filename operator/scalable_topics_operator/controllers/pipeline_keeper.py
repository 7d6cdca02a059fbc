"""Keeps one pipeline a connection at work, and follows what it writes (R34, R35)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.backends.admin.credentials import Credentials
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeForbidden
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.pipeline_lease import PipelineLease
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.controllers.connections import ConnectionController, ConnectionHandle
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.load.pipeline_job import PipelineJob, RunnerPhase, RunnerState
from scalable_topics_operator.load.pipeline_runner import PipelineRunner
from scalable_topics_operator.load.record_follower import RecordFollower
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.load.topic_load import stale_after_seconds
from scalable_topics_operator.operations.errors import BackendError, NamespaceMissing
from scalable_topics_operator.telemetry.pipeline_metrics import PipelineMetrics

logger = logging.getLogger(__name__)

_TICK_SECONDS = 1.0
_KEEP_SECONDS = 2.0
_CLEAR_SECONDS = 10.0
_MOST_CALL_SECONDS = 10
_RECORDS_NAMESPACE = "scalable-topics/load"
_STARTING = RunnerState(RunnerPhase.STARTING, "PipelineStarting")
_NO_ADDRESS = RunnerState(
    RunnerPhase.FAILED,
    "ServiceUrlUnknown",
    "the cluster does not tell its address for clients: set spec.serviceUrl",
)

ThresholdsOf = Callable[[ObjectKey], Awaitable[bytes]]
"""The file of thresholds of a connection's topics."""


def records_topic(connection: Body, installation: str) -> str:
    """Where a connection's records go if its spec does not say: no other connection of any cluster has the same."""
    metadata = connection["metadata"]
    # Namespaces of Kubernetes have no dot, so that it cannot be read in two ways.
    return f"persistent://{_RECORDS_NAMESPACE}/{metadata['namespace']}.{metadata['name']}.{installation}"


@dataclass(slots=True)
class _Kept:
    """The pipeline of one connection.

    Args:
        uid: of the object.
        generation: of its spec.
        lease: that it is the only one.
        runner: name of the runner; empty if no pipeline is wanted.
        state: how it stands.
        follower: reads its records; None until their topic is there.
        credentials: as last read.
        due: monotonic time of the next look.
        is_clear: what other runners may have left has been taken away.
    """

    uid: str
    generation: int
    lease: PipelineLease
    runner: str
    credentials: Credentials = field(default_factory=Credentials)
    state: RunnerState = _STARTING
    follower: RecordFollower | None = None
    due: float = 0.0
    is_clear: bool = False
    work: asyncio.Task[None] | None = field(default=None, repr=False)


class PipelineKeeper:
    """Has runners run what connections ask for, on the replica that leads a connection.

    Args:
        kube: the API server.
        cache: objects as last seen.
        connections: handles of the connections.
        shards: tells which connections this replica leads.
        runners: by the names of `spec.load.runner`.
        thresholds: what is told to pipelines.
        metrics: show how pipelines stand.
        identity: of this replica, in Leases.
        installation: short name of this installation, for the topics of records.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        connections: ConnectionController,
        shards: ShardWork,
        runners: Mapping[str, PipelineRunner],
        thresholds: ThresholdsOf,
        metrics: PipelineMetrics,
        identity: str,
        installation: str,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._connections = connections
        self._shards = shards
        self._runners = runners
        self._thresholds = thresholds
        self._metrics = metrics
        self._identity = identity
        self._installation = installation
        self._kept: dict[ObjectKey, _Kept] = {}

    def fresh_sample(self, connection: ObjectKey) -> tuple[LoadSample, float] | None:
        """What the pipeline of a connection says, and the monotonic time that it is of; None unless it is fresh."""
        kept, handle = self._kept.get(connection), self._connections.handle(connection)
        if kept is None or kept.follower is None or handle is None:
            return None
        followed = kept.follower.followed
        if followed.sample is None or time.monotonic() - followed.came_at_seconds > _most_age_seconds(handle):
            return None
        return followed.sample, followed.came_at_seconds

    def why_not_fresh(self, connection: ObjectKey) -> tuple[str, str]:
        """Reason and message for a condition, while there is no fresh sample."""
        kept = self._kept.get(connection)
        if kept is None:
            return _STARTING.reason, _STARTING.message
        if kept.state.phase is not RunnerPhase.RUNNING:
            return kept.state.reason, kept.state.message
        if kept.follower is None:
            return "PipelineStale", "the pipeline has not made its topic of records yet"
        followed = kept.follower.followed
        if followed.problem or not followed.came_at_seconds:
            return "PipelineStale", followed.problem
        age_seconds = time.monotonic() - followed.came_at_seconds
        return "PipelineStale", f"the pipeline wrote nothing for {age_seconds:.0f} s"

    async def run(self) -> None:
        """Keep pipelines for ever."""
        try:
            while True:
                self._begin_due()
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            await self._end_all()

    def _begin_due(self) -> None:
        keys = {key for key, _ in self._cache.all(CONNECTIONS)}
        for key in keys | self._kept.keys():
            handle, body, kept = self._connections.handle(key), self._cache.get(key), self._kept.get(key)
            if kept is not None and kept.work is not None:
                continue
            # A renewal of the shard's Lease that is late ends no pipeline: it has a Lease of its own.
            if body is None or handle is None or not self._shards.keeps(key):
                if kept is not None:
                    self._start(key, kept, self._leave(key, kept))
                continue
            if handle.probe is None or not self._shards.leads(key):
                continue
            if kept is not None and kept.uid != handle.uid:
                # Another of the same name: the one before has gone.
                self._start(key, kept, self._leave(key, kept))
                continue
            if kept is None or kept.generation != handle.generation:
                if kept is not None:
                    self._stop_following(kept)
                load = handle.spec.load
                lease = kept.lease if kept is not None else PipelineLease(self._kube, body, self._identity)
                runner = load.runner if load.source == "Pipeline" else ""
                kept = self._kept[key] = _Kept(handle.uid, handle.generation, lease, runner)
            if time.monotonic() >= kept.due and (kept.runner or not kept.is_clear):
                kept.due = time.monotonic() + _KEEP_SECONDS
                self._start(key, kept, self._shards.run(key, self._keep(key, body, handle, kept)))

    def _start(self, key: ObjectKey, kept: _Kept, work: Coroutine[Any, Any, None]) -> None:
        kept.work = asyncio.create_task(self._guarded(key, kept, work))

    async def _guarded(self, key: ObjectKey, kept: _Kept, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except NotLed:
            pass
        except (KubeError, BackendError, OSError) as error:
            self._failed(key, kept, RunnerState(RunnerPhase.FAILED, "PipelineNotKept", str(error)))
        except Exception:
            # Whatever goes wrong is this connection's alone.
            logger.exception("%s: its pipeline is not kept", key)
            self._failed(key, kept, RunnerState(RunnerPhase.FAILED, "PipelineNotKept", "see the operator's log"))
        finally:
            kept.work = None
            self._show(key, kept)

    def _show(self, key: ObjectKey, kept: _Kept) -> None:
        connection = key.namespace, key.name
        if not kept.runner or self._kept.get(key) is not kept:
            self._metrics.hide_pipeline(connection)
            return
        batch_seconds = kept.follower.followed.took_seconds if kept.follower is not None else None
        is_up = kept.state.phase is RunnerPhase.RUNNING
        self._metrics.show_pipeline(connection, is_up=is_up, batch_seconds=batch_seconds)

    def _failed(self, key: ObjectKey, kept: _Kept, state: RunnerState) -> None:
        if kept.state != state:
            logger.warning("%s: its pipeline is not kept: %s", key, state.message)
        kept.state, kept.due = state, time.monotonic() + _CLEAR_SECONDS

    async def _keep(self, key: ObjectKey, body: Body, handle: ConnectionHandle, kept: _Kept) -> None:
        if not kept.is_clear:
            await self._clear(key, kept)
        if not kept.runner:
            await kept.lease.release()
            return
        if not await kept.lease.hold():
            await self._runners[kept.runner].release(key)
            kept.state = RunnerState(
                RunnerPhase.STARTING, "PipelineElsewhere", "the pipeline of another replica may still be at work"
            )
            return
        job = self._job(body, handle)
        if job is None:
            kept.state = RunnerState(
                RunnerPhase.FAILED,
                "ServiceUrlUnknown",
                "the cluster does not tell its address for clients: set spec.serviceUrl",
            )
            return
        kept.credentials = await handle.credentials.current()
        state = await self._runners[kept.runner].keep(body, job, kept.credentials, await self._thresholds(key))
        # Messages may tell of seconds, and would be logged as often as that.
        if (state.phase, state.reason) != (kept.state.phase, kept.state.reason):
            logger.info("%s: its pipeline: %s %s %s", key, state.phase.value, state.reason, state.message)
        kept.state = state
        if kept.follower is None and await _exists(handle, job.records_topic):
            kept.follower = RecordFollower(job.service_url, job.records_topic, lambda: kept.credentials)
            kept.follower.start()

    def _job(self, body: Body, handle: ConnectionHandle) -> PipelineJob | None:
        spec, metadata = handle.spec, body["metadata"]
        service_url = spec.service_url or (handle.probe.service_url if handle.probe is not None else "")
        if not service_url:
            return None
        history = spec.load.history
        return PipelineJob(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            admin_url=spec.admin_url,
            service_url=service_url,
            records_topic=spec.load.records_topic or records_topic(body, self._installation),
            interval_seconds=spec.load.interval_seconds,
            timeout_seconds=min(_MOST_CALL_SECONDS, spec.limits.request_timeout_seconds),
            history_path=history.path if history is not None else "",
            history_retention_days=history.retention_days if history is not None else 1,
            verify_hostname=spec.tls is None or spec.tls.verify_hostname,
        )

    async def _clear(self, key: ObjectKey, kept: _Kept) -> None:
        """Take away what the spec does not ask for any more, if only since before this process."""
        for name, runner in self._runners.items():
            if name != kept.runner:
                # Where it may not be read or deleted, nothing can have been made.
                with suppress(KubeForbidden):
                    await runner.remove(key)
        kept.is_clear = True

    async def _leave(self, key: ObjectKey, kept: _Kept) -> None:
        """Another replica leads the connection, or it is gone: its objects go with it."""
        self._stop_following(kept)
        self._kept.pop(key, None)
        if kept.runner and await self._runners[kept.runner].release(key) and self._cache.get(key) is not None:
            await kept.lease.release()

    @staticmethod
    def _stop_following(kept: _Kept) -> None:
        if kept.follower is not None:
            kept.follower.stop()

    async def _end_all(self) -> None:
        works = [kept.work for kept in self._kept.values() if kept.work is not None]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        leaving = [self._leave(key, kept) for key, kept in list(self._kept.items())]
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK_SECONDS):
                await asyncio.gather(*leaving, return_exceptions=True)


def _most_age_seconds(handle: ConnectionHandle) -> float:
    return stale_after_seconds(handle.spec.load.interval_seconds)


async def _exists(handle: ConnectionHandle, topic: str) -> bool:
    try:
        return await handle.admin.topics.partitions(topic) == 0
    except NamespaceMissing:
        return False
