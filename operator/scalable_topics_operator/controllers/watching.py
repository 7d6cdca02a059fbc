"""kopf's part: it watches and frames; handlers only put news into the cache and the queue (R39)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import kopf
from kopf._core.engines.peering import Identity

from scalable_topics_operator.cluster.kube_client import LIST_CHUNK, Body, Resource
from scalable_topics_operator.cluster.kube_login import login
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.controllers.object_cache import ObjectCache

_FIRST_BACKOFFS = (1.0, 1.0, 2.0)
_LAST_BACKOFF_SECONDS = 5.0
_END_SECONDS = 5.0


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


class WatchEnded(Exception):
    """kopf has given up watching, for whatever reason; it cannot be started again in the same process."""


async def watch(registry: kopf.OperatorRegistry, namespaces: Sequence[str], take_signals: Callable[[], None]) -> None:
    """Watch until cancelled.

    Args:
        registry: the handlers.
        namespaces: namespaces watched; empty for all.
        take_signals: called once kopf has started; it has then taken the process's signals for itself.

    Raises WatchEnded when kopf ends by itself. Not run by kopf's own `run_tasks`: that takes every task of the
    process for its own, cancels them when one watch fails, and may then wait for ever.
    """
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=_make_settings(),
        # Of no use standalone; made by kopf from the name of the system's user, who has none in many a container.
        identity=Identity("scalable-topics"),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    take_signals()
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_END_SECONDS)
    errors = [error for task in ended if not task.cancelled() and (error := task.exception()) is not None]
    raise WatchEnded(f"kopf stopped watching: {errors}") from next(iter(errors), None)


class _EndlessBackoffs:
    """Pauses between kopf's tries, without end: an API server that is away, starts or refuses will come back."""

    def __iter__(self) -> Iterator[float]:
        for seconds in _FIRST_BACKOFFS:
            yield random.uniform(seconds / 2, seconds)
        while True:
            yield random.uniform(_LAST_BACKOFF_SECONDS / 2, _LAST_BACKOFF_SECONDS)


class _NothingToCompare(kopf.DiffBaseStorage):
    """No handler asks kopf what has changed, so it need not copy the whole of each object to be able to tell."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        return cast(kopf.BodyEssence, {})

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keep nothing."""


def _make_settings() -> kopf.OperatorSettings:
    """kopf tuned for ten thousand objects, and told to write nothing of its own."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    # In one answer ten thousand topics are 100 MB, and a hundred thousand do not come within any time-out.
    settings.watching.chunk_size = LIST_CHUNK
    settings.watching.connect_timeout = 10
    settings.watching.client_timeout = 300
    settings.watching.server_timeout = 240
    settings.networking.request_timeout = 60
    settings.persistence.diffbase_storage = _NothingToCompare()
    settings.networking.error_backoffs = _EndlessBackoffs()
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
        take_event(event["type"], dict(event["object"]), resource, cache, on_change, on_listing)


def take_event(
    kind: str | None,
    body: Body,
    resource: Resource,
    cache: ObjectCache,
    on_change: Callable[[ObjectKey], None],
    on_listing: Callable[[], None],
) -> None:
    """Take in one event of a watch; its kind is None for an object of a listing."""
    body.setdefault("apiVersion", resource.api_version)
    body.setdefault("kind", resource.kind)
    key = key_of(resource, body)
    if kind is None:
        on_listing()
    if kind == "DELETED":
        if cache.remove(key, body["metadata"]["uid"]):
            on_change(key)
    elif cache.observe(resource, body):
        on_change(key)
