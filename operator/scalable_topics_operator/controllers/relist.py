"""Lists of our own beside kopf's watches: what a watch does not tell (R39, hazards C30 and C38).

kopf says neither when its first list is complete nor which objects vanished while a watch was broken. A list at
start, after kopf listed again, and every few minutes is compared with the cache; only what differs is worked on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.controllers.object_cache import ObjectCache

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_SETTLE_SECONDS = 1.0


class Relister:
    """Keeps the cache complete for some kinds.

    Args:
        kube: the API server.
        cache: what to compare with.
        resources: the kinds.
        namespaces: namespaces watched; empty for all.
        interval_seconds: time between two lists.
        on_change: called with each key that is news or gone.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        resources: Sequence[Resource],
        namespaces: Sequence[str],
        interval_seconds: float,
        on_change: Callable[[ObjectKey], None],
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._resources = resources
        self._namespaces: Sequence[str | None] = list(namespaces) or [None]
        self._interval_seconds = interval_seconds
        self._on_change = on_change
        self._asked = asyncio.Event()
        self._last_complete = time.monotonic()

    def ask(self) -> None:
        """List again soon: a watch was re-established and may have missed deletes."""
        self._asked.set()

    @property
    def seconds_since_complete(self) -> float:
        """Age of the last complete round of lists."""
        return time.monotonic() - self._last_complete

    async def first_round(self) -> None:
        """List everything once, for as long as it takes."""
        while not await self.round():
            await asyncio.sleep(random.uniform(_RETRY_SECONDS / 2, _RETRY_SECONDS))

    async def run(self) -> None:
        """List on the interval and when asked, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(random.uniform(0.9, 1.1) * self._interval_seconds):
                    await self._asked.wait()
                # Watches of several kinds come back together: one round serves them all.
                await asyncio.sleep(_SETTLE_SECONDS)
            except TimeoutError:
                pass
            self._asked.clear()
            if not await self.round():
                self._asked.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def round(self) -> bool:
        """List every kind once; answers whether all lists were complete."""
        complete = True
        for resource in self._resources:
            complete &= await self._list(resource)
        if complete:
            self._last_complete = time.monotonic()
        return complete

    async def _list(self, resource: Resource) -> bool:
        try:
            for namespace in self._namespaces:
                listed: set[ObjectKey] = set()
                version = ""
                # Page by page: what is known already is never in memory twice, and others have their turn in between.
                async for page, page_version in self._kube.list_pages(resource, namespace):
                    version = page_version
                    listed.update(self._take(resource, item) for item in page)
                for key in self._cache.drop_unlisted(resource, namespace, listed, version):
                    self._on_change(key)
        except KubeError as error:
            logger.warning("%s", error)
            return False
        self._cache.mark_synced(resource)
        return True

    def _take(self, resource: Resource, item: Body) -> ObjectKey:
        """Take in one object of a list; items of a list carry neither kind nor apiVersion."""
        key = key_of(resource, item)
        if self._cache.observe(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **item}):
            self._on_change(key)
        return key
