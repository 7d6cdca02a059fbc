"""What the probe makes of clusters and rights that the test cluster does not have."""

from typing import Any

import pytest
from aiohttp import web

from scalable_topics_operator.backends.admin import PulsarAdmin

from .scripted_server import ScriptedServer, connect, serve

DENIED = web.HTTPUnauthorized


def _cluster(answers: dict[str, Any]) -> Any:
    async def reply(request: web.Request) -> web.Response:
        if request.path not in answers:
            return web.Response(status=404, text="<html><title>Error 404 Not Found</title></html>")
        answer = answers[request.path]
        if answer is DENIED:
            return web.json_response({"reason": "Unauthorized to validateBothSuperuserAndX"}, status=401)
        return web.json_response(answer)

    return reply


ALL: dict[str, Any] = {
    "/admin/v2/brokers/version": "4.2.4",
    "/admin/v2/brokers": ["b:8080", "a:8080"],
    "/admin/v2/clusters": ["west", "east", "global"],
    "/admin/v2/brokers/configuration/runtime": {"clusterName": "east"},
    "/admin/v2/clusters/east": {"serviceUrl": "http://East.example:8080/"},
}


async def _probe(server: ScriptedServer) -> Any:
    async with PulsarAdmin(connect(server)) as admin:
        return await admin.probe()


async def test_the_local_one_of_several_clusters_is_found() -> None:
    async with serve(_cluster(ALL)) as server:
        probe = await _probe(server)
    assert (probe.version, probe.cluster_name, probe.brokers) == ("4.2.4", "east", ("a:8080", "b:8080"))
    assert probe.cluster_id == "east@http://east.example:8080"
    assert (probe.superuser, probe.missing_rights, probe.scalable_api) == (True, (), False)


async def test_without_superuser_several_clusters_leave_the_name_open() -> None:
    denied = {**ALL, "/admin/v2/brokers": DENIED, "/admin/v2/brokers/configuration/runtime": DENIED}
    async with serve(_cluster(denied)) as server:
        probe = await _probe(server)
        assert (probe.cluster_name, probe.cluster_id, probe.superuser) == ("", f"@{server.url}", False)


async def test_pulsar_5_denies_the_list_of_clusters_to_others() -> None:
    """Measured on 5.0.1."""
    denied = {**ALL, "/admin/v2/brokers": DENIED, "/admin/v2/clusters": DENIED}
    async with serve(_cluster(denied)) as server:
        probe = await _probe(server)
        assert (probe.cluster_name, probe.cluster_id) == ("", f"@{server.url}")
    assert len(probe.missing_rights) == 2


@pytest.mark.parametrize("answer", [[], DENIED])
async def test_r2_brokers_with_the_scalable_api_are_told_from_others(answer: Any) -> None:
    async with serve(_cluster({**ALL, "/admin/v2/scalable/public/default": answer})) as server:
        assert (await _probe(server)).scalable_api
