"""Answers that are kept for a while, and asked for once however many wait for them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key, each for the same time, so many at most; the oldest goes first.

    Args:
        keep_seconds: how long a value counts.
        most: how many are kept.
    """

    def __init__(self, keep_seconds: float, most: int) -> None:
        self._keep_seconds = keep_seconds
        self._most = most
        # In the order of their times.
        self._values: dict[K, tuple[float, V]] = {}

    def get(self, key: K, now_seconds: float, within_seconds: float = math.inf) -> V | None:
        """The value, unless it is too old, for itself or for whoever asks."""
        found = self._values.get(key)
        if found is None or now_seconds - found[0] >= min(self._keep_seconds, within_seconds):
            return None
        return found[1]

    def put(self, key: K, value: V, since_seconds: float) -> None:
        """Keep a value, which was true at `since_seconds`."""
        self._values.pop(key, None)
        if len(self._values) >= self._most:
            del self._values[next(iter(self._values))]
        self._values[key] = since_seconds, value

    def drop(self, key: K) -> None:
        """Keep nothing for a key."""
        self._values.pop(key, None)


class ReviewCache(Generic[K, V]):
    """Asks for what is not known, once for all who want it at the same time; errors are not kept.

    Refusals are kept apart and for a shorter time: a flood of bad tokens drives out nobody's good one, and a right
    that was just given counts soon.

    Args:
        is_granted: tells a good answer from a refusal.
        granted_seconds: how long a good answer counts, from when it was asked for.
        refused_seconds: how long a refusal does.
        most: how many of each are kept.
        monotonic: clock.
    """

    def __init__(
        self,
        is_granted: Callable[[V], bool],
        *,
        granted_seconds: float = 60.0,
        refused_seconds: float = 5.0,
        most: int = 4096,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_granted = is_granted
        self._granted: Kept[K, V] = Kept(granted_seconds, most)
        self._refused: Kept[K, tuple[V]] = Kept(refused_seconds, most)
        self._monotonic = monotonic
        self._asking: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[V]], *, granted_within_seconds: float = math.inf) -> V:
        """The answer; a good one no older than that. Raises what `ask` raises, to everybody who waits for the same."""
        now_seconds = self._monotonic()
        granted = self._granted.get(key, now_seconds, granted_within_seconds)
        if granted is not None:
            return granted
        refused = self._refused.get(key, now_seconds)
        if refused is not None:
            return refused[0]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, ask))
            task.add_done_callback(lambda done: self._asked(key, done))
        # Whoever asked first may give up while others still wait.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Give up what is being asked for."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _ask(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        asked_at = self._monotonic()
        answer = await ask()
        if self._is_granted(answer):
            self._granted.put(key, answer, asked_at)
        else:
            # Somebody may have asked anew while an earlier answer still counted.
            self._granted.drop(key)
            self._refused.put(key, (answer,), asked_at)
        return answer

    def _asked(self, key: K, task: asyncio.Task[V]) -> None:
        del self._asking[key]
        if not task.cancelled():
            # If nobody waits any more, nobody else takes note of it.
            task.exception()
