"""What the doctor says to those who see a part of what there is, and to those whose clock is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.cli import doctor_command
from scalable_topics_operator.cli.api_server import ApiServer
from scalable_topics_operator.cli.doctor_command import examine
from scalable_topics_operator.cli.findings import Finding, Level
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cluster.kube_login import KubeEndpoint
from scalable_topics_operator.cluster.lease_record import (
    REPLICA,
    SHARD,
    LeaseRecord,
    replica_lease_name,
    shard_lease_name,
)

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
CONNECTION: dict[str, Any] = {
    "metadata": {"name": "pulsar", "namespace": "ops"},
    "spec": {"load": {"intervalSeconds": 60}},
    "status": READY,
}
TOPIC: dict[str, Any] = {
    "metadata": {"name": "orders", "namespace": "team"},
    "spec": {"topic": "topic://acme/shop/orders", "connectionRef": {"name": "pulsar", "namespace": "ops"}},
    "status": {**READY, "layout": {"segments": [{}]}},
}


class Cluster:
    """An API server, and a gateway that tells how old the load is."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {"scalabletopics": [TOPIC], "scalabletopicconnections": []}
        self.connection: dict[str, Any] | None = CONNECTION
        self.forbidden: set[str] = set()
        self.leases: list[dict[str, Any]] = []
        self.looks = 0
        self.url = ""

    async def listed(self, request: web.Request) -> web.Response:
        plural = request.match_info["plural"]
        if plural in self.forbidden:
            return web.json_response({"message": f"{plural} is forbidden"}, status=403)
        return web.json_response({"items": self.objects.get(plural, [])})

    async def one(self, _: web.Request) -> web.Response:
        if self.connection is None:
            return web.json_response({"message": "forbidden"}, status=403)
        return web.json_response(self.connection)

    async def review(self, _: web.Request) -> web.Response:
        return web.json_response({"status": {"allowed": True}}, status=201)

    async def shards(self, _: web.Request) -> web.Response:
        if not self.leases:
            return web.json_response({"message": "not found"}, status=404)
        return web.json_response({"data": {"shards": "1"}})

    async def list_leases(self, _: web.Request) -> web.Response:
        """Each look at them finds those of living replicas renewed."""
        self.looks += 1
        for body in self.leases:
            if body["spec"]["holderIdentity"] != "dead":
                body["metadata"]["resourceVersion"] = str(self.looks)
        return web.json_response({"items": self.leases})

    async def version(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.34.1"})

    async def gateway(self, request: web.Request) -> web.Response:
        if request.path == "/openapi.json":
            return web.json_response({"info": {"version": "1"}})
        return web.json_response({"scaling": {"loadAgeSeconds": 45.0}})

    async def found(self, namespace: str | None) -> dict[str, Finding]:
        """What the doctor finds, by what it is about."""
        async with ApiServer(KubeEndpoint(self.url, None, {}, "team"), tries=1) as kube:
            options = GatewayOptions(url=self.url, operator_namespace="ops")
            return {one.about: one for one in (await examine(kube, namespace, options)).found}


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    monkeypatch.setenv("STOPICS_TOKEN", "t0ken")
    monkeypatch.setattr(doctor_command, "_LEASE_LOOK_SECONDS", 0.01)
    made = Cluster()
    app = web.Application()
    app.router.add_get("/version", made.version)
    app.router.add_post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", made.review)
    app.router.add_get("/api/v1/namespaces/ops/configmaps/{name}", made.shards)
    app.router.add_get("/apis/coordination.k8s.io/v1/namespaces/ops/leases", made.list_leases)
    app.router.add_get("/api/v1/namespaces/ops/{plural}", made.listed)
    ours = "/apis/scalabletopics.io/v1alpha1"
    app.router.add_get(f"{ours}/{{plural}}", made.listed)
    app.router.add_get(f"{ours}/namespaces/team/{{plural}}", made.listed)
    app.router.add_get(f"{ours}/namespaces/ops/scalabletopicconnections/pulsar", made.one)
    app.router.add_get("/{tail:.*}", made.gateway)
    async with TestServer(app) as server:
        made.url = f"http://127.0.0.1:{server.port}"
        yield made


async def test_a_connection_in_another_namespace_is_looked_at(cluster: Cluster) -> None:
    found = await cluster.found("team")
    assert (found["connections"].level, found["connections"].message) == (Level.OK, "all 1 are ready")
    assert found["load"].message == "of 1 topics that were asked the oldest is 45s old", "three intervals are 180 s"


async def test_of_a_connection_that_is_not_shown_nothing_is_said_and_no_load_is_called_old(cluster: Cluster) -> None:
    cluster.connection = None
    cluster.forbidden = {"scalabletopicconnections"}
    found = await cluster.found("team")
    assert "not shown to you" in found["connection ops/pulsar"].message
    assert found["gateway"].level is Level.OK
    assert not {"connections", "load", "load of team/orders"} & found.keys()


async def test_topics_that_are_not_shown_are_not_called_ready(cluster: Cluster) -> None:
    cluster.forbidden = {"scalabletopics"}
    found = await cluster.found(None)
    assert "not shown to you" in found["scalabletopics"].message
    assert "topics" not in found
    assert found["connections"].message == "there is none"


async def test_one_namespace_without_connections_says_nothing_of_others(cluster: Cluster) -> None:
    cluster.objects["scalabletopics"] = []
    assert "connections" not in await cluster.found("team")


@pytest.mark.parametrize("clock_seconds", [-60, 60])
@pytest.mark.parametrize("leader", ["a", "dead"])
async def test_a_wrong_clock_hides_no_replica_and_makes_none_alive(
    cluster: Cluster, leader: str, clock_seconds: float
) -> None:
    records = [
        LeaseRecord(shard_lease_name(0), SHARD, leader, 1, 1.0, "0"),
        *(LeaseRecord(replica_lease_name(one), REPLICA, one, 0, 1.0, "0") for one in "abc"),
    ]
    cluster.leases = [record.body("ops", acquired=True) for record in records]
    renewed = (datetime.now(UTC) - timedelta(seconds=clock_seconds)).isoformat()
    for body in cluster.leases:
        body["spec"]["renewTime"] = renewed
    # Of somebody else, and not waited for.
    of_other = {"leaseDurationSeconds": 3600, "holderIdentity": "dead"}
    cluster.leases.append({"metadata": {"name": "other", "resourceVersion": "1"}, "spec": of_other})
    found = await cluster.found(None)
    if leader == "dead":
        assert found["leaders"].message == "shards 0 of 1 have no leader"
    else:
        assert found["leaders"].message == "1 shards are led by a"
        assert found["replicas"].message == "3 show themselves"
