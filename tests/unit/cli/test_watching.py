"""What comes from the API server for as long as it is listened to: logins run out, and connections die silently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.cli import api_server
from scalable_topics_operator.cli.api_server import ApiServer
from scalable_topics_operator.cli.faults import Refused
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.watch_command import WatchOptions, watch
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeUnavailable
from scalable_topics_operator.cluster.kube_login import KubeEndpoint
from scalable_topics_operator.cluster.resources import TOPICS
from tests.unit.cli.kubeconfig_file import answering

PATH = "/apis/scalabletopics.io/v1alpha1/namespaces/shop/scalabletopics"
LOG_PATH = "/api/v1/namespaces/ops/pods/pod-a/log"
BODY: dict[str, Any] = {
    "metadata": {"name": "orders", "namespace": "shop", "resourceVersion": "7"},
    "spec": {"topic": "topic://acme/shop/orders", "connectionRef": {"name": "pulsar"}},
    "status": {
        "conditions": [{"type": "Ready", "status": "False", "reason": "NameTaken", "message": "by \x1b[2Jsomebody"}]
    },
}


class Issuer:
    """Gives out logins, of which only the second, or none, is known to the API server."""

    def __init__(self, known: str = "login-2") -> None:
        self.issued = 0
        self.known = known
        self.url = ""

    def log_in(self) -> KubeEndpoint:
        self.issued += 1
        return KubeEndpoint(self.url, None, {"Authorization": f"Bearer login-{self.issued}"}, "shop")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """A watch of one event, or a log of one line."""
        if request.headers["Authorization"] != f"Bearer {self.known}":
            return web.json_response({"message": "Unauthorized"}, status=401)
        if request.path == LOG_PATH:
            return web.Response(text="a line")
        return web.Response(text=json.dumps({"type": "ADDED", "object": BODY}) + "\n")


async def _hang(request: web.Request) -> web.StreamResponse:
    """The head of an answer, and then nothing, as from a machine that is not there any more."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.sleep(30)
    return response


@asynccontextmanager
async def _serving(handler: Callable[[web.Request], Any], issuer: Issuer) -> AsyncIterator[ApiServer]:
    app = web.Application()
    app.router.add_get("/{tail:.*}", handler)
    async with TestServer(app) as server:
        issuer.url = f"http://127.0.0.1:{server.port}"
        async with ApiServer(login=issuer.log_in) as kube:
            yield kube


async def _watched(kube: ApiServer) -> list[str]:
    return [kind async for kind, _ in kube.watch(TOPICS, "shop", "7")]


async def test_who_is_known_no_more_logs_in_again_once() -> None:
    issuer = Issuer()
    async with _serving(issuer.answer, issuer) as kube:
        assert await _watched(kube) == ["ADDED"]
        assert await kube.pod_log("ops", "pod-a", "operator", lines=1) == "a line"
    assert issuer.issued == 2
    issuer = Issuer(known="nobody")
    async with _serving(issuer.answer, issuer) as kube:
        with pytest.raises(KubeError, match="401 Unauthorized"):
            await _watched(kube)
    assert issuer.issued == 2


async def test_a_connection_on_which_nothing_comes_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "_WATCH_SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(api_server, "_LOG_SILENCE_SECONDS", 0.2)
    async with _serving(_hang, Issuer()) as kube:
        with pytest.raises(KubeUnavailable):
            await _watched(kube)
        with pytest.raises(KubeUnavailable):
            await kube.pod_log("ops", "pod-a", "operator", lines=1)


@pytest.mark.parametrize("output", [Output.JSON, Output.TABLE])
async def test_a_topic_without_a_layout_is_watched_with_the_reason(
    output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answer(request: web.Request) -> web.Response:
        if "watch" in request.query:
            return web.Response(text=json.dumps({"type": "DELETED", "object": BODY}) + "\n")
        listed = {"items": [BODY], "metadata": {"resourceVersion": "7"}}
        return web.json_response(listed if request.path == PATH else BODY)

    async with answering(tmp_path, answer) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        with pytest.raises(Refused, match="shop/orders was deleted"):
            await watch(WatchOptions("orders", None, False, output, 60.0, None), None)
    (line,) = capsys.readouterr().out.splitlines()
    if output is Output.JSON:
        found = json.loads(line)
        assert (found["topic"], found["epoch"]) == ("topic://acme/shop/orders", None)
        assert "has no layout: NameTaken: by \x1b[2Jsomebody" in found["problem"]
    else:
        assert line == "ScalableTopic shop/orders has no layout: NameTaken: by ?[2Jsomebody"
