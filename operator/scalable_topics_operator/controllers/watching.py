"""kopf's part: it watches and frames; handlers only put news into the cache and the queue (R39)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import kopf

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.kube_login import login
from scalable_topics_operator.controllers.object_cache import ObjectCache, ObjectKey, key_of


def make_registry(
    cache: ObjectCache,
    resources: Sequence[Resource],
    on_change: Callable[[ObjectKey], None],
    on_listing: Callable[[], None],
) -> kopf.OperatorRegistry:
    """Handlers for every event of the given kinds.

    Args:
        cache: takes in the objects.
        resources: kinds to watch.
        on_change: called with the key of each object that is news or gone.
        on_listing: called when kopf lists (again), which is also when its watch had a gap.
    """
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry, id="login")
    def log_in(**_: Any) -> kopf.ConnectionInfo | None:
        return login()

    for resource in resources:
        _register(registry, resource, cache, on_change, on_listing)
    return registry


async def watch(registry: kopf.OperatorRegistry, namespaces: Sequence[str], take_signals: Callable[[], None]) -> None:
    """Watch until cancelled.

    Args:
        registry: the handlers.
        namespaces: namespaces watched; empty for all.
        take_signals: called once kopf has started; it has then taken the process's signals for itself, and would
            end only after waiting five seconds for tasks of ours that it takes for its own.
    """
    earlier = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=_make_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    take_signals()
    await kopf.run_tasks(tasks, ignored=earlier)


def _make_settings() -> kopf.OperatorSettings:
    """kopf tuned for ten thousand objects, and told to write nothing of its own."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.connect_timeout = 10
    settings.watching.client_timeout = 300
    settings.watching.server_timeout = 240
    settings.networking.request_timeout = 60
    settings.networking.error_backoffs = [1, 1, 2]
    return settings


def _register(
    registry: kopf.OperatorRegistry,
    resource: Resource,
    cache: ObjectCache,
    on_change: Callable[[ObjectKey], None],
    on_listing: Callable[[], None],
) -> None:
    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=f"watch-{resource.plural}")
    async def watched(event: Any, **_: Any) -> None:
        body: Body = dict(event["object"])
        body.setdefault("apiVersion", resource.api_version)
        body.setdefault("kind", resource.kind)
        key = key_of(resource, body)
        if event["type"] is None:
            on_listing()
        if event["type"] == "DELETED":
            if cache.remove(key, body["metadata"]["uid"]):
                on_change(key)
        elif cache.observe(resource, body):
            on_change(key)
