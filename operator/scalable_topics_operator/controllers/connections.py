"""Connections: probe a Pulsar cluster, say how it stands, and hand its backend to the topics (R2, R3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import ValidationError

from scalable_topics_operator.api.common import first_problem
from scalable_topics_operator.api.connection import ScalableTopicConnection, ScalableTopicConnectionSpec
from scalable_topics_operator.backends.admin.cluster_api import ClusterProbe
from scalable_topics_operator.backends.admin.http import AdminHttp, HttpSettings
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.retry import RetryPolicy
from scalable_topics_operator.backends.classic.backend import ClassicBackend
from scalable_topics_operator.backends.native.backend import V5_MARK, NativeBackend
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.conditions import Standing, apply_standing, find_condition
from scalable_topics_operator.controllers.connection_credentials import SecretCredentials
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.operations.errors import AccessDenied, BackendRefused, BackendUnavailable
from scalable_topics_operator.operations.native.protocols import ScalableBackend
from scalable_topics_operator.operations.protocols import TopicBackend
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

CLASSIC, NATIVE = "Classic", "Native"
NOT_PROBED = "not probed yet"
_RETRY_SECONDS = 5.0
# A probe repeats itself anyway; with all repeats of its calls it would take minutes to say that nobody is there.
_PROBE_REQUESTS = 2


@dataclass(slots=True)
class ConnectionHandle:
    """A connection as topics use it.

    Args:
        uid: of the object.
        generation: of the spec the client was made from.
        spec: the parsed spec.
        admin: the client.
        credentials: its source of credentials.
        superuser: the client for what takes a superuser, where the spec has credentials of their own for that.
        superuser_credentials: its source of credentials.
        backend: for topics whose layouts the operator owns; None until the first successful probe.
        native: for those whose layouts the brokers own; None where brokers own none.
        ordinary: for what is to become one of those; None where brokers own none.
        backend_of_new: who owns the layouts of topics made now (R2).
        probe: the last successful probe.
        problem: why it is down; empty while it is up.
        reason: code of the last finding; empty before the first.
    """

    uid: str
    generation: int
    spec: ScalableTopicConnectionSpec
    admin: PulsarAdmin
    credentials: SecretCredentials
    superuser: PulsarAdmin | None = None
    superuser_credentials: SecretCredentials | None = None
    backend: TopicBackend | None = None
    native: ScalableBackend | None = None
    ordinary: TopicBackend | None = None
    backend_of_new: str = CLASSIC
    probe: ClusterProbe | None = None
    problem: str = NOT_PROBED
    reason: str = ""

    @property
    def privileged(self) -> PulsarAdmin:
        """The client for what takes a superuser."""
        return self.superuser or self.admin

    async def close(self) -> None:
        """Close the clients."""
        await self.admin.close()
        if self.superuser is not None:
            await self.superuser.close()


class NamespacePolicies(Protocol):
    """Policies that are stored with Pulsar namespaces where brokers own layouts."""

    async def settle(
        self, connection: ObjectKey, backend: ScalableBackend, before: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Store what is wanted; answers `status.namespacePolicies` as it is now, given what it was."""


class ConnectionController:
    """Keeps one handle a connection and its status up to date.

    Args:
        kube: the API server.
        cache: objects as last seen.
        events: tells people.
        metrics: shows whether connections are up.
        shards: lets only the leader write what is found into a connection's status; all replicas probe it.
        on_finding: called with a connection's key when it was found up, down, or down for another reason: topics
            that wait for it have to go on, or to say why they wait.
        policies: are stored with Pulsar namespaces where brokers own layouts.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        events: EventRecorder,
        metrics: Metrics,
        shards: ShardWork,
        on_finding: Callable[[ObjectKey], None],
        policies: NamespacePolicies,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._events = events
        self._metrics = metrics
        self._shards = shards
        self._on_finding = on_finding
        self._policies = policies
        self._handles: dict[ObjectKey, ConnectionHandle] = {}

    def handle(self, key: ObjectKey) -> ConnectionHandle | None:
        """The handle of a connection; None if there is no such object or it was never looked at."""
        return self._handles.get(key)

    async def close(self) -> None:
        """Close all clients."""
        for handle in self._handles.values():
            await handle.close()
        self._handles.clear()

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Probe a connection and write its status if that changed; answers when to look again, in seconds."""
        body = self._cache.get(key)
        if body is None:
            await self._forget(key)
            return None
        store = StatusStore(self._kube, CONNECTIONS, body, lambda written: _observe(self._cache, written))
        try:
            handle = await self._opened(key, body)
        except ValidationError as error:
            with suppress(NotLed):
                invalid = Standing.stuck("InvalidSpec", first_problem(error))
                await self._shards.run(key, self._write(store, invalid, None))
            return None
        standing = await self._probe(handle)
        is_news = standing.reason != handle.reason
        handle.problem, handle.reason = "" if standing.ready else standing.message, standing.reason
        self._metrics.connection_up.labels(key.namespace, key.name).set(1 if standing.ready else 0)
        if is_news:
            # Before anything that may fail: those that wait for it would not be told again.
            self._on_finding(key)
        with suppress(NotLed):
            await self._shards.run(key, self._tell(key, store, standing, handle))
        return _RETRY_SECONDS if standing.reconciling else float(handle.spec.probe_interval_seconds)

    async def _opened(self, key: ObjectKey, body: Body) -> ConnectionHandle:
        metadata = body["metadata"]
        handle = self._handles.get(key)
        if handle is not None and (handle.uid, handle.generation) == (
            metadata["uid"],
            metadata["generation"],
        ):
            return handle
        spec = ScalableTopicConnection.model_validate(body).spec
        await self._forget(key)
        credentials = SecretCredentials(self._kube, key.namespace, spec)
        admin = self._client(spec, credentials)
        handle = ConnectionHandle(metadata["uid"], metadata["generation"], spec, admin, credentials)
        if spec.superuser_auth is not None:
            handle.superuser_credentials = SecretCredentials(self._kube, key.namespace, spec, superuser=True)
            handle.superuser = self._client(spec, handle.superuser_credentials)
        self._handles[key] = handle
        return handle

    def _client(self, spec: ScalableTopicConnectionSpec, credentials: SecretCredentials) -> PulsarAdmin:
        settings = HttpSettings(
            admin_url=spec.admin_url,
            trusted_brokers=spec.trusted_brokers,
            max_concurrent_requests=spec.limits.max_concurrent_requests,
            request_timeout_seconds=float(spec.limits.request_timeout_seconds),
            retry=RetryPolicy(attempts=spec.limits.max_retries + 1),
        )
        return PulsarAdmin(AdminHttp(settings, credentials, observe=self._metrics.observe_admin_call))

    async def _forget(self, key: ObjectKey) -> None:
        handle = self._handles.pop(key, None)
        if handle is not None:
            self._metrics.connection_up.remove_by_labels({"namespace": key.namespace, "name": key.name})
            await handle.close()

    async def _probe(self, handle: ConnectionHandle) -> Standing:
        try:
            async with asyncio.timeout(_PROBE_REQUESTS * handle.spec.limits.request_timeout_seconds):
                probe = await probe_cluster(handle)
        except TimeoutError:
            return Standing.working("Unreachable", f"{handle.spec.admin_url} does not answer in time")
        except AccessDenied as error:
            return Standing.stuck("AccessDenied", str(error))
        except BackendRefused as error:
            return Standing.stuck("Refused", str(error))
        except BackendUnavailable as error:
            return Standing.working("Unreachable", str(error))
        if handle.spec.backend == NATIVE and (why := why_not_native(probe)):
            return Standing.stuck("BackendUnavailable", f"{why}; set spec.backend to Classic or Auto")
        handle.probe = probe
        owns_layouts = not why_not_native(probe)
        handle.backend_of_new = NATIVE if owns_layouts and handle.spec.backend != CLASSIC else CLASSIC
        if handle.backend is None:
            handle.backend = ClassicBackend(handle.admin, protection=handle.spec.inactive_topic_protection)
        if owns_layouts and handle.native is None:
            handle.native = NativeBackend(handle.admin, handle.privileged)
            handle.ordinary = ClassicBackend(
                handle.admin, protection=handle.spec.inactive_topic_protection, client_mark=V5_MARK
            )
        missing = "; ".join(probe.missing_rights)
        return Standing.healthy(f"lacks rights: {missing}" if missing else "")

    async def _tell(self, key: ObjectKey, store: StatusStore, standing: Standing, handle: ConnectionHandle) -> None:
        if standing.reason != find_condition(store.status, "Ready").get("reason"):
            tell = self._events.normal if standing.ready else self._events.warning
            await tell(store.body, standing.reason, standing.message or "the cluster answers")
        stored = None
        if handle.native is not None and standing.ready:
            before = store.status.get("namespacePolicies") or []
            stored = await self._policies.settle(key, handle.native, before)
        await self._write(store, standing, handle, stored)

    async def _write(
        self,
        store: StatusStore,
        standing: Standing,
        handle: ConnectionHandle | None,
        namespace_policies: list[dict[str, Any]] | None = None,
    ) -> None:
        status = dict(store.status)
        if namespace_policies is not None:
            status.pop("namespacePolicies", None)
            if namespace_policies:
                status["namespacePolicies"] = namespace_policies
        generation = store.body["metadata"]["generation"]
        status["observedGeneration"] = generation
        status["conditions"] = apply_standing(
            status.get("conditions", ()), standing, generation=generation, now=timestamp_now()
        )
        if handle is not None and handle.probe is not None and standing.ready:
            probe = handle.probe
            status |= {
                "version": probe.version,
                "clusterName": probe.cluster_name,
                "clusterId": probe.cluster_id,
                "backend": handle.backend_of_new,
                "brokers": sorted(probe.brokers),
                "rights": {"superuser": probe.superuser, "missing": list(probe.missing_rights)},
            }
        await store.write(status)


async def probe_cluster(handle: ConnectionHandle) -> ClusterProbe:
    """Find out what cluster it is and what the credentials may do. Raises BackendError.

    A rotated Secret is used from the next call on, not only once the old token is refused. What takes a superuser is
    asked with the credentials that are meant for that.
    """
    await handle.credentials.refresh()
    if handle.superuser is None or handle.superuser_credentials is None:
        return await handle.admin.probe()
    await handle.superuser_credentials.refresh()
    # That the ordinary credentials are accepted is told at once, not by the first topic.
    await handle.admin.cluster.version()
    probe = await handle.superuser.probe()
    if probe.superuser:
        return probe
    return replace(
        probe, missing_rights=("superuserAuth is not a superuser's, though it is there for that", *probe.missing_rights)
    )


def why_not_native(probe: ClusterProbe) -> str:
    """Why brokers own no layouts that can be used; empty if they do. Pure."""
    if not probe.scalable_api:
        return f"the brokers (version {probe.version}) have no scalable topics of their own; they come with Pulsar 5"
    if "-M" in probe.version:
        return f"brokers of version {probe.version} route keys by other bits than released ones"
    return ""


def _observe(cache: ObjectCache, written: Body) -> None:
    cache.observe(CONNECTIONS, written)
