"""What a shell offers at the tab key: names out of the cluster, if that answers soon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import typer

from scalable_topics_operator.cli.faults import CliError
from scalable_topics_operator.cli.kubernetes import api_server, find_object
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import TOPICS

# People wait for it with a finger on the key.
_TIMEOUT_SECONDS = 2.0


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    """ScalableTopics of the namespace that begin so."""
    namespace = ctx.params.get("namespace")

    async def names(kube: KubeClient) -> list[str]:
        return [body["metadata"]["name"] for body in await kube.list_all(TOPICS, namespace or kube.default_namespace)]

    return _offered(names, incomplete)


def complete_subscription(ctx: typer.Context, incomplete: str) -> list[str]:
    """Subscriptions of the topic before it that begin so."""
    name, namespace = ctx.params.get("name"), ctx.params.get("namespace")

    async def names(kube: KubeClient) -> list[str]:
        body = await find_object(kube, name or "", namespace)
        return [one["name"] for one in (body.get("status") or {}).get("subscriptions") or ()]

    return _offered(names, incomplete) if name else []


def _offered(look: Callable[[KubeClient], Coroutine[Any, Any, list[str]]], beginning: str) -> list[str]:
    async def ask() -> list[str]:
        # Credentials are waited for outside of the event loop, which the timeout does not reach.
        async with asyncio.timeout(_TIMEOUT_SECONDS), api_server(_TIMEOUT_SECONDS) as kube:
            return await look(kube)

    try:
        return sorted(name for name in asyncio.run(ask()) if name.startswith(beginning))
    except (CliError, TimeoutError):
        # A message would stand in the middle of what is being typed.
        return []
