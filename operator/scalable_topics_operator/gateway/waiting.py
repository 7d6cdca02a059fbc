"""Waiting for an object to become as wanted, as the watch tells of it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway.refusal import Refusal

T = TypeVar("T")

WAIT_SECONDS = 30.0
"""After so long a caller is told that the rest goes on without (R32)."""

_MOST_WAITING = 256


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[T]):
    found: Callable[[Body | None], T | None]
    answer: asyncio.Future[T | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def answer_with(self, result: T | None) -> None:
        if not self.answer.done():
            self.answer.set_result(result)


class ObjectWaits:
    """Lets callers wait for what becomes of objects.

    Args:
        cache: the objects.
        resources: kinds that are waited for.
        seconds: how long at most.
        most: how many may wait at a time.
    """

    def __init__(
        self,
        cache: ObjectCache,
        resources: Iterable[Resource],
        seconds: float = WAIT_SECONDS,
        most: int = _MOST_WAITING,
    ) -> None:
        self._cache = cache
        self._seconds = seconds
        self._most = most
        self._waiting: defaultdict[ObjectKey, set[_Waiting[Any]]] = defaultdict(set)
        self._count = 0
        for resource in resources:
            cache.listen(resource, self._changed)

    def require_room(self) -> None:
        """Raises Refusal: 429 while too many wait: to be asked before anything is begun."""
        if self._count >= self._most:
            raise Refusal(429, f"{self._count} requests are waiting at this replica already; try again")

    def latest(self, key: ObjectKey) -> Body | None:
        """An object as it was last seen."""
        return self._cache.get(key)

    async def until(self, key: ObjectKey, found: Callable[[Body | None], T | None]) -> T | None:
        """What `found` finds in an object as soon as that is something; None if it takes too long.

        Args:
            key: of the object.
            found: asked at once and at every change, however short; given None while there is no such object.
        """
        result = found(self._cache.get(key))
        if result is not None:
            return result
        waiting = _Waiting(found)
        self._waiting[key].add(waiting)
        self._count += 1
        try:
            return await asyncio.wait_for(waiting.answer, self._seconds)
        except TimeoutError:
            return None
        finally:
            self._count -= 1
            self._waiting[key].discard(waiting)
            if not self._waiting[key]:
                del self._waiting[key]

    async def close(self) -> None:
        """Let nobody wait any longer."""
        for waiting in [one for found in self._waiting.values() for one in found]:
            waiting.answer_with(None)

    def _changed(self, key: ObjectKey, body: Body | None) -> None:
        for waiting in list(self._waiting.get(key, ())):
            result = waiting.found(body)
            if result is not None:
                waiting.answer_with(result)
