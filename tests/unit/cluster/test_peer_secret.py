"""The replicas' token: made once, by whoever comes first."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeForbidden, KubeInvalid
from scalable_topics_operator.cluster.kube_login import KubeEndpoint
from scalable_topics_operator.cluster.peer_secret import SECRET_NAME, find_peer_token


@asynccontextmanager
async def secrets_of(found: dict[str, Any], *, refuse: bool = False) -> AsyncIterator[KubeClient]:
    """An API server that keeps Secrets in `found`, by path."""

    async def read(request: web.Request) -> web.Response:
        body = found.get(request.path)
        # So that replicas which start together all see that it is missing.
        await asyncio.sleep(0.05)
        return web.json_response(body or {"message": "no"}, status=200 if body else 404)

    async def create(request: web.Request) -> web.Response:
        body = await request.json()
        path = f"{request.path}/{body['metadata']['name']}"
        if refuse:
            return web.json_response({"message": "secrets is forbidden"}, status=403)
        if path in found:
            return web.json_response({"message": "exists"}, status=409)
        found[path] = body
        return web.json_response(body, status=201)

    app = web.Application()
    app.router.add_get("/{tail:.*}", read)
    app.router.add_post("/{tail:.*}", create)
    async with (
        TestServer(app) as server,
        KubeClient(KubeEndpoint(f"http://127.0.0.1:{server.port}", None, {}, "default")) as kube,
    ):
        yield kube


async def test_all_replicas_have_the_token_of_the_first() -> None:
    found: dict[str, Any] = {}
    async with secrets_of(found) as kube:
        tokens = await asyncio.gather(*(find_peer_token(kube, "ops") for _ in range(5)))
        assert len(set(tokens)) == 1
        assert len(base64.urlsafe_b64decode(tokens[0] + "=")) == 32
        assert list(found) == [f"/api/v1/namespaces/ops/secrets/{SECRET_NAME}"]
        assert await find_peer_token(kube, "ops") == tokens[0]


@pytest.mark.parametrize(
    "data", [None, {}, {"token": ""}, {"token": "c2hvcnQ="}, {"token": "%%"}, {"token": "/////w=="}]
)
async def test_what_is_no_token_is_refused_and_not_quoted(data: dict[str, str] | None) -> None:
    path = f"/api/v1/namespaces/ops/secrets/{SECRET_NAME}"
    async with secrets_of({path: {"metadata": {"name": SECRET_NAME}, "data": data}}) as kube:
        with pytest.raises(KubeInvalid, match=r"ops/scalable-topics-peers: .* delete the Secret") as error:
            await find_peer_token(kube, "ops")
        assert "short" not in str(error.value)


async def test_a_missing_right_is_told() -> None:
    async with secrets_of({}, refuse=True) as kube:
        with pytest.raises(KubeForbidden, match="create secrets ops/scalable-topics-peers: 403 secrets is forbidden"):
            await find_peer_token(kube, "ops")
