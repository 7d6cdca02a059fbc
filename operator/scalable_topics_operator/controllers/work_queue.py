"""A level-triggered, deduplicating work queue: one key at a time, bounded workers, back-off per key (R39)."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from scalable_topics_operator.controllers.fair_share import FairShare

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses before a failed key is tried again: doubling from `first_seconds` to `last_seconds`, with jitter."""

    first_seconds: float = 0.5
    last_seconds: float = 60.0

    def pause_seconds(self, failures: int) -> float:
        """The pause after so many failures in a row, 1 or more."""
        ceiling = min(self.last_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))
        return random.uniform(ceiling / 2, ceiling)


class WorkQueue(Generic[K]):
    """Keys that want work.

    A key added while it waits is not added twice; a key added while it is worked on is worked on again
    afterwards, never at the same time. Keys wait in the order they came, and no group of keys can take all
    workers (`FairShare`), so nobody delays others for long.

    Args:
        backoff: pauses after failures.
        monotonic: the clock.
        group_of: the group that a key shares its luck with; None for keys without one.
    """

    def __init__(
        self,
        backoff: Backoff | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        group_of: Callable[[K], Hashable | None] = lambda _: None,
    ) -> None:
        self._backoff = backoff or Backoff()
        self._monotonic = monotonic
        self._group_of = group_of
        self._ready: deque[K] = deque()
        self._parked: defaultdict[Hashable, deque[K]] = defaultdict(deque)
        self._since: dict[K, float] = {}
        self._working: dict[K, float] = {}
        self._again: set[K] = set()
        self._later: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[K, int] = {}
        # Workers that wait, each for a call of its own: were all of them called, most would find nothing.
        self._idle: deque[asyncio.Future[None]] = deque()
        self._taken_at = -math.inf
        self._share: FairShare[Hashable] = FairShare(1)

    def add(self, key: K) -> None:
        """Work on a key as soon as a worker is free."""
        self._cancel_later(key)
        if key in self._working:
            self._again.add(key)
        elif key not in self._since:
            self._since[key] = self._monotonic()
            self._ready.append(key)
            self._call_worker()

    def add_after(self, key: K, seconds: float) -> None:
        """Work on a key in `seconds`; of several such wishes the earliest counts."""
        when = self._monotonic() + max(0.0, seconds)
        known = self._later.get(key)
        if known is not None and known[0] <= when:
            return
        self._cancel_later(key)
        handle = asyncio.get_running_loop().call_later(max(0.0, seconds), self._due, key)
        self._later[key] = (when, handle)

    def failed(self, key: K, *, group_suffers: bool = False) -> float:
        """Work on a key again after its back-off; answers the pause in seconds.

        Args:
            key: the key.
            group_suffers: what went wrong will go wrong for all of its group.
        """
        group = self._group_of(key)
        if group_suffers and group is not None:
            self._share.suffers(group)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = self._backoff.pause_seconds(failures)
        self.add_after(key, pause)
        return pause

    def succeeded(self, key: K) -> None:
        """Forget a key's failures."""
        self._failures.pop(key, None)
        group = self._group_of(key)
        if group is not None:
            self._share.recovers(group)

    def passed_on(self, key: K) -> None:
        """Somebody else works on a key: its failures here say nothing any more, and its group has shown nothing."""
        self._failures.pop(key, None)

    @property
    def waiting(self) -> int:
        """Keys that wait for a worker, those included that wait for one of their group to be done."""
        return len(self._ready) + sum(len(parked) for parked in self._parked.values())

    @property
    def ready(self) -> int:
        """Keys that the next free workers take: without those that wait for one of their group to be done."""
        return len(self._ready)

    @property
    def oldest_wait_seconds(self) -> float:
        """How long the first waiting key has waited, those left out that wait for their own group."""
        return self._monotonic() - self._since[self._ready[0]] if self._ready else 0.0

    @property
    def untaken_seconds(self) -> float:
        """How long no worker has taken any of the keys that wait.

        After a start with many topics the last of them wait for long, and all is well as long as the queue moves.
        """
        return min(self.oldest_wait_seconds, self._monotonic() - self._taken_at)

    @property
    def longest_work_seconds(self) -> float:
        """How long the longest running key has been worked on."""
        return self._monotonic() - min(self._working.values()) if self._working else 0.0

    async def run(self, work: Callable[[K], Awaitable[None]], workers: int) -> None:
        """Work until cancelled, on `workers` keys at a time. `work` must not raise; what it raises ends the queue."""
        self._share = FairShare(workers)
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(work))

    async def _worker(self, work: Callable[[K], Awaitable[None]]) -> None:
        while True:
            key, group = await self._next()
            del self._since[key]
            self._working[key] = self._taken_at = self._monotonic()
            try:
                await work(key)
            finally:
                del self._working[key]
                if group is not None:
                    self._share.leave(group)
                    self._unpark(group)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    async def _next(self) -> tuple[K, Hashable | None]:
        """The next key that may be worked on, with the group that holds a worker for it."""
        while True:
            while self._ready:
                key = self._ready.popleft()
                group = self._group_of(key)
                if group is None:
                    return key, None
                if self._share.free(group):
                    self._share.enter(group)
                    return key, group
                self._parked[group].append(key)
            await self._called()

    async def _called(self) -> None:
        """Wait for a key."""
        call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(call)
        try:
            await call
        except asyncio.CancelledError:
            if call.done() and not call.cancelled():
                # The call was meant for somebody.
                self._call_worker()
            raise

    def _call_worker(self) -> None:
        while self._idle:
            call = self._idle.popleft()
            if not call.done():
                call.set_result(None)
                return

    def _unpark(self, group: Hashable) -> None:
        parked = self._parked.get(group)
        if parked is None:
            return
        for _ in range(min(self._share.free(group), len(parked))):
            key = parked.popleft()
            self._since[key] = self._monotonic()
            self._ready.append(key)
            self._call_worker()
        if not parked:
            del self._parked[group]

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _cancel_later(self, key: K) -> None:
        known = self._later.pop(key, None)
        if known is not None:
            known[1].cancel()
