"""examples/fastapi_producer.py as a process: the container of examples/producer.yaml with other values."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.support.examples import EXAMPLES
from tests.support.manifests import Manifest
from tests.support.waiting import eventually

MANIFESTS = "producer.yaml"
_SECONDS = 30.0


def container_of(deployment: Manifest) -> Manifest:
    """The one container of a Deployment's pods."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found: Manifest = container
    return found


def _container() -> Manifest:
    documents = yaml.safe_load_all((EXAMPLES / MANIFESTS).read_text())
    return container_of(next(one for one in documents if one["kind"] == "Deployment"))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service said."""

    status: int
    body: Any
    retry_after: str | None


@dataclass(frozen=True, slots=True)
class OrderService:
    """One that runs.

    Args:
        process: it.
        http: a client of it.
        log_file: all it says.
    """

    process: asyncio.subprocess.Process
    http: aiohttp.ClientSession
    log_file: Path

    async def get(self, path: str) -> Answer:
        """GET a path."""
        async with self.http.get(path) as answer:
            return await _answer(answer)

    async def order(self, body: Mapping[str, Any] | bytes) -> Answer:
        """POST an order, or anything."""
        data = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with self.http.post("/orders", headers={"Content-Type": "application/json"}, **data) as answer:
            return await _answer(answer)

    async def until_ready(self) -> None:
        """Wait until it can take orders."""
        await eventually(lambda: self.get("/readyz"), lambda answer: answer.status == 200, what="the service is ready")

    async def stop(self) -> str:
        """Have it end as Kubernetes does; answers all it has said."""
        self.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(self.process.wait(), _SECONDS)
        return self.log_file.read_text()


@asynccontextmanager
async def order_service(folder: Path, **environment: str) -> AsyncIterator[OrderService]:
    """Start one, with a log in a folder; it is killed at the end. Every variable that the manifest sets is to be given,
    and no other.
    """
    container = _container()
    assert environment.keys() == {variable["name"] for variable in container["env"]}
    program, *arguments = container["command"]
    assert program == "python"
    log_file = folder / "order-service.log"
    with log_file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            # The last ones win.
            *("--host=127.0.0.1", "--port=0"),
            cwd=EXAMPLES,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:

        async def address() -> str | None:
            assert process.returncode is None, log_file.read_text()
            found = re.search(r"running on (http://\S+)", log_file.read_text(errors="replace"))
            return found[1] if found else None

        url = await eventually(address, what="the service listens")
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with aiohttp.ClientSession(url, timeout=timeout) as http:
            yield OrderService(process, http, log_file)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _answer(answer: aiohttp.ClientResponse) -> Answer:
    body = await (answer.json() if answer.content_type == "application/json" else answer.text())
    return Answer(answer.status, body, answer.headers.get("Retry-After"))
