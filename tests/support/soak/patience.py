"""Clients of the run's own that wait while the servers they talk to are being killed."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import aiohttp

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeUnavailable
from tests.support.pulsar_view import PulsarView

_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.5
# Of a broker that is dying, being taken over from, or that has just begun.
_SERVER_ERROR = re.compile(r": (5\d\d|412|307) |redirected in circles")


class PatientKube(KubeClient):
    """Asks again until the API server is back."""

    async def _call(self, method: str, path: str, what: str, *, body: Body | None = None, **how: Any) -> Body:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        is_repeated = False
        while True:
            try:
                return await super()._call(method, path, what, body=body, **how)
            except KubeUnavailable:
                if time.monotonic() > deadline:
                    raise
                is_repeated = True
                await asyncio.sleep(_PAUSE_SECONDS)
            except KubeConflict:
                name = (body or {}).get("metadata", {}).get("name")
                if not (is_repeated and method == "POST" and name):
                    raise
                # The first one was carried out, and its reply lost.
                return await super()._call("GET", f"{path}/{name}", what)


class PatientView(PulsarView):
    """Asks again until the brokers are back."""

    async def _send(self, method: str, url: str, body: Any, allow: tuple[int, ...] = ()) -> str | int:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return await super()._send(method, url, body, allow)
            except (TimeoutError, aiohttp.ClientError):
                if time.monotonic() > deadline:
                    raise
            except AssertionError as error:
                if time.monotonic() > deadline or not _SERVER_ERROR.search(str(error)):
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)
