"""The operator's client of the API server, with a model in the place of HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from multidict import CIMultiDict

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import KubeEndpoint

Ask = Callable[[str, str, Mapping[str, str], str | None, float], Awaitable[tuple[int, str]]]
"""Answers method, path, query and body within so many seconds, with a status and a text. Raises TimeoutError."""

_ENDPOINT = KubeEndpoint("http://model", None, {}, "default")


class ModelKubeClient(KubeClient):
    """A client.

    Args:
        ask: takes its requests.
        how: as for `KubeClient`.
    """

    def __init__(self, ask: Ask, **how: Any) -> None:
        super().__init__(_ENDPOINT, **how)
        self._ask = ask

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def _exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        headers: CIMultiDict[str],
        data: str | None,
        timeout_seconds: float,
    ) -> tuple[int, str]:
        return await self._ask(method, path, params, data, timeout_seconds)
