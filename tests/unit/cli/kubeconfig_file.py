"""A kubeconfig for an API server of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer


def write_kubeconfig(folder: Path, port: int) -> Path:
    """Write one, whose default namespace is `shop`; answers its path."""
    file = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u", "namespace": "shop"}
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {"token": "kubeconfigs-t0ken"}}],
                "contexts": [{"name": "x", "context": context}],
                "current-context": "x",
            }
        )
    )
    return file


@asynccontextmanager
async def answering(
    folder: Path, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> AsyncIterator[Path]:
    """Start an API server all of whose requests `handle` answers; answers a kubeconfig for it."""
    api = web.Application()
    api.router.add_route("*", "/{tail:.*}", handle)
    async with TestServer(api) as server:
        yield write_kubeconfig(folder, server.port or 0)
