"""Calls about the cluster itself, and the probe that tells what a connection can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout.json_members import each_member
from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import segment_of_path
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.backends.admin.topic_api import texts_of
from scalable_topics_operator.operations.errors import AccessDenied, BackendUnavailable

_SUPERUSER = "superuser"
_PERSISTENT = "persistent"
_DEPTH = len(("namespace", "bundle", "domain", "topic"))
# Some milliseconds of the event loop.
_MEMBERS_AT_ONCE = 200
# What is packed in a few kilobytes may be gigabytes; ten thousand consumers of a topic are five megabytes.
_MOST_CHARACTERS_OF_A_TOPIC = 16_000_000


@dataclass(frozen=True, slots=True)
class ClusterProbe:
    """What a connection found.

    Args:
        version: the broker's version text.
        cluster_name: name of the Pulsar cluster; empty when it cannot be told.
        cluster_id: identifies the cluster whichever connection leads to it.
        brokers: `host:port` of the active brokers; empty when they may not be listed.
        superuser: whether the credentials are a superuser's.
        missing_rights: what they may not do and what that costs, in words.
        scalable_api: whether the brokers have `/admin/v2/scalable` (Pulsar 5).
        service_url: their address for clients, with TLS where the admin API has it; empty when it is not told.
    """

    version: str
    cluster_name: str
    cluster_id: str
    brokers: tuple[str, ...]
    superuser: bool
    missing_rights: tuple[str, ...]
    scalable_api: bool
    service_url: str = ""


class ClusterApi:
    """Calls about the cluster that a connection leads to."""

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def version(self) -> str:
        """The broker's version, for example `4.2.4`."""
        call = self._call("get-version", "/admin/v2/brokers/version")
        return (await self._http.send(call)).text.strip().strip('"')

    async def clusters(self) -> tuple[str, ...]:
        """Names of all clusters of the instance, sorted."""
        call = self._call("list-clusters", "/admin/v2/clusters")
        return tuple(sorted(texts_of(await self._http.send(call), call.what)))

    async def cluster_data(self, cluster: str) -> dict[str, Any]:
        """A cluster's URLs and settings; needs superuser."""
        path = f"/admin/v2/clusters/{segment_of_path(cluster)}"
        found = await self._get("get-cluster", path, right=_SUPERUSER)
        return found if isinstance(found, dict) else {}

    async def brokers(self) -> tuple[str, ...]:
        """`host:port` of the active brokers of the local cluster, sorted; needs superuser."""
        call = self._call("list-brokers", "/admin/v2/brokers", right=_SUPERUSER)
        return tuple(sorted(texts_of(await self._http.send(call), call.what)))

    async def runtime_configuration(self) -> dict[str, str]:
        """The answering broker's configuration; needs superuser."""
        call = self._call("get-configuration", "/admin/v2/brokers/configuration/runtime", right=_SUPERUSER)
        answer = await self._http.send(call)
        return answer.read(call.what, lambda found: {str(key): str(value) for key, value in (found or {}).items()})

    async def topic_loads(self, broker: str = "") -> AsyncIterator[tuple[str, Any]]:
        """Persistent topics and their statistics by `/broker-stats/topics` of one broker; needs superuser.

        One by one: those of ten thousand scalable topics are a text of 40 MB, which is unpacked as it is read. All at
        once would take ten times that, and a second of the event loop.

        Args:
            broker: `host:port` as the cluster lists it; empty for whoever answers at the admin URL.

        Raises BackendUnavailable for an answer that is not as brokers give it, in the middle of it, too.
        """
        call = Call(
            "get-broker-stats",
            "GET",
            "/admin/v2/broker-stats/topics",
            broker or self._http.admin_url,
            About.CLUSTER,
            right=_SUPERUSER,
            broker=broker,
            is_large=True,
            is_kept_packed=True,
        )
        answer = await self._http.send(call)
        since_last = 0

        def parts() -> Iterator[str]:
            nonlocal since_last
            for part in answer.packed.parts():
                since_last += len(part)
                if since_last > _MOST_CHARACTERS_OF_A_TOPIC:
                    raise ValueError(f"there are {_MOST_CHARACTERS_OF_A_TOPIC} characters without a topic")
                yield part

        try:
            for number, (path, statistics) in enumerate(each_member(parts(), _DEPTH)):
                since_last = 0
                if number % _MEMBERS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                _, _, domain, topic = path
                if domain == _PERSISTENT:
                    yield topic, statistics
        except ValueError as error:
            raise BackendUnavailable(f"{call.what}: the answer is not as brokers give it: {error}") from None

    async def has_scalable_api(self) -> bool:
        """Whether the brokers have the scalable-topics admin API."""
        # A broker without it answers 404 from the web server; one with it lists or denies (measured).
        path = "/admin/v2/scalable/public/default"
        call = Call(
            "probe-scalable",
            "GET",
            path,
            "/admin/v2/scalable",
            About.CLUSTER,
            allow=frozenset({401, 403, 404}),
        )
        answer = await self._http.send(call)
        return answer.status != 404

    async def probe(self) -> ClusterProbe:
        """Find out what cluster this is and what the credentials may do; works without superuser.

        Raises AccessDenied when the credentials are not accepted at all.
        """
        version = await self.version()
        missing: list[str] = []
        clusters: tuple[str, ...] = ()
        brokers: tuple[str, ...] = ()
        web_url = service_url = ""
        try:
            brokers = await self.brokers()
            superuser = True
        except AccessDenied:
            superuser = False
            missing.append("list brokers (superuser): redirects are trusted only to trustedBrokers, no bulk load")
        try:
            # Any role may do this on Pulsar 4, only a superuser on Pulsar 5 (measured).
            clusters = await self.clusters()
            cluster_name = await self._local_cluster(clusters, superuser=superuser)
            if cluster_name:
                data = await self.cluster_data(cluster_name)
                web_url = str(data.get("serviceUrl") or data.get("serviceUrlTls") or "")
                is_tls = self._http.admin_url.startswith("https://")
                service_url = str(data.get("brokerServiceUrlTls" if is_tls else "brokerServiceUrl") or "")
        except AccessDenied:
            cluster_name = clusters[0] if len(clusters) == 1 else ""
            missing.append("read the cluster (superuser): the cluster is identified by the admin URL")
        return ClusterProbe(
            version=version,
            cluster_name=cluster_name,
            cluster_id=f"{cluster_name}@{(web_url or self._http.admin_url).rstrip('/').lower()}",
            brokers=brokers,
            superuser=superuser,
            missing_rights=tuple(missing),
            scalable_api=await self.has_scalable_api(),
            service_url=service_url,
        )

    async def _local_cluster(self, clusters: tuple[str, ...], *, superuser: bool) -> str:
        if len(clusters) == 1:
            return clusters[0]
        return (await self.runtime_configuration()).get("clusterName", "") if superuser else ""

    async def _get(self, operation: str, path: str, *, right: str | None = None) -> Any:
        call = self._call(operation, path, right=right)
        return (await self._http.send(call)).json(call.what)

    def _call(self, operation: str, path: str, *, right: str | None = None) -> Call:
        return Call(operation, "GET", path, self._http.admin_url, About.CLUSTER, right=right)
