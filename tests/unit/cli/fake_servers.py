"""A gateway and an API server on loopback that answer what a test tells them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from typer.testing import CliRunner, Result

from scalable_topics_operator.cli.main import app
from tests.unit.cli.kubeconfig_file import write_kubeconfig

TOKEN = "callers-t0ken"
REQUESTED = "requested-t0ken"


@dataclass
class Servers:
    """Both servers, and a user with a kubeconfig.

    Args:
        answer: of the gateway.
        asked: path with query, and Authorization header, of each request to the gateway.
        token_requests: paths and bodies of requests to service accounts.
        environment: of the command.
        gateway_url: where the gateway is.
    """

    answer: web.Response | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    token_requests: list[tuple[str, Any]] = field(default_factory=list)
    environment: dict[str, str | None] = field(default_factory=dict)
    gateway_url: str = ""

    async def gateway(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.raw_path, request.headers.get("Authorization")))
        if self.answer is None:
            await asyncio.sleep(30)
        return self.answer or web.Response()

    async def topic(self, request: web.Request) -> web.Response:
        if request.match_info["name"] != "orders":
            return web.json_response({"message": 'scalabletopics "nothing" not found'}, status=404)
        spec = {"topic": "acme/shop/orders", "connectionRef": {"name": "pulsar"}}
        metadata = {"name": "orders", "namespace": request.match_info["namespace"]}
        return web.json_response({"metadata": metadata, "spec": spec})

    async def token(self, request: web.Request) -> web.Response:
        self.token_requests.append((request.path, await request.json()))
        if "/serviceaccounts/dashboard/" not in request.path:
            return web.json_response({"message": "serviceaccounts is forbidden"}, status=403)
        return web.json_response({"status": {"token": REQUESTED}}, status=201)

    async def run(self, *arguments: str, **environment: str | None) -> Result:
        """Run the command in a thread, since it has an event loop of its own."""
        runner = CliRunner()
        variables = {**self.environment, **environment}
        return await asyncio.to_thread(runner.invoke, app, list(arguments), env=variables)


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[Servers]:
    """Start both."""
    found = Servers()
    gateway = web.Application()
    gateway.router.add_get("/{tail:.*}", found.gateway)
    api = web.Application()
    path = "/apis/scalabletopics.io/v1alpha1/namespaces/{namespace}/scalabletopics/{name}"
    api.router.add_get(path, found.topic)
    api.router.add_post("/api/v1/namespaces/{tail:.*}", found.token)
    async with TestServer(gateway) as gateway_server, TestServer(api) as api_server:
        kubeconfig = write_kubeconfig(folder, api_server.port or 0)
        found.gateway_url = f"http://127.0.0.1:{gateway_server.port}"
        found.environment = {
            "KUBECONFIG": str(kubeconfig),
            "STOPICS_GATEWAY": found.gateway_url,
            "STOPICS_TOKEN": TOKEN,
            "STOPICS_SERVICE_ACCOUNT": None,
            # Wide enough for every table.
            "COLUMNS": "200",
        }
        yield found
