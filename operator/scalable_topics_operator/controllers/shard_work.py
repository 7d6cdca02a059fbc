"""Only the leader of an object's shard works on it, and only as long as it may (R5, R6)."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from scalable_topics_operator.cluster.election import Purpose
from scalable_topics_operator.cluster.leadership import Leadership
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.operations.acting import acting_until
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

T = TypeVar("T")

_OUTCOMES = {True: "ok", False: "failed"}


class NotLed(Exception):
    """Another replica leads the object, or will in a moment; what was begun has been cancelled."""


class Fleet(Protocol):
    """The objects, as far as leadership is concerned."""

    def shard_of(self, key: ObjectKey) -> int:
        """The shard of an object."""

    def keys_of(self, shard: int) -> Iterable[ObjectKey]:
        """The objects of a shard that are known."""

    def highest_term_of(self, shard: int) -> int:
        """The highest term that records of a shard's objects carry."""

    def begin(self, keys: Iterable[ObjectKey]) -> None:
        """Objects are to be worked on from now on."""

    def forget(self, keys: Iterable[ObjectKey]) -> None:
        """Others work on these objects from now on: what is remembered of them is worth nothing."""


class ShardWork:
    """Lets work on an object run while this replica leads its shard. Implements `LeadershipEvents`.

    Args:
        fleet: the objects.
        metrics: tell of leadership.
        hand_over_seconds: how long running work may take to end before a shard is handed over without it.
    """

    def __init__(self, fleet: Fleet, metrics: Metrics, hand_over_seconds: float) -> None:
        self._fleet = fleet
        self._metrics = metrics
        for purpose in Purpose:
            for outcome in _OUTCOMES.values():
                # From the beginning, so that the first is seen to be one more than none.
                metrics.lease_writes.labels(purpose.value, outcome)
        self._hand_over_seconds = hand_over_seconds
        self._leadership: Leadership | None = None
        self._terms: dict[int, int] = {}
        self._running: defaultdict[int, set[asyncio.Task[Any]]] = defaultdict(set)
        # Shards whose work is being ended so that others can have them.
        self._leaving: set[int] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def follow(self, leadership: Leadership) -> None:
        """Ask this for shards."""
        self._leadership = leadership

    def term_of(self, key: ObjectKey) -> int:
        """The term under which this replica works on an object. Raises NotLed."""
        term = self._terms.get(self._fleet.shard_of(key))
        if term is None:
            raise NotLed(str(key))
        return term

    def leads(self, key: ObjectKey) -> bool:
        """Whether this replica works on an object."""
        shard = self._fleet.shard_of(key)
        return shard in self._terms and self._leadership is not None and self._leadership.hold(shard) is not None

    def keeps(self, key: ObjectKey) -> bool:
        """Whether an object is this replica's, even while it may not act because a renewal is late."""
        return self._fleet.shard_of(key) in self._terms

    @property
    def kept(self) -> tuple[int, ...]:
        """The shards that are this replica's, even while it may not act because a renewal is late."""
        return tuple(self._terms)

    def leader_of(self, key: ObjectKey) -> Peer | None:
        """The replica that works on an object, this one or another; None while nobody is known to."""
        return self._leadership.leader_of(self._fleet.shard_of(key)) if self._leadership is not None else None

    def raise_term(self, key: ObjectKey, above: int) -> None:
        """A record of an object carries a higher term than this replica leads under (R5)."""
        if self._leadership is not None:
            self._leadership.raise_term(self._fleet.shard_of(key), above)

    async def run(self, key: ObjectKey, work: Coroutine[Any, Any, T]) -> T:
        """Work on an object under its shard's deadline. Raises NotLed when another replica leads it, or will."""
        shard = self._fleet.shard_of(key)
        leadership = self._leadership
        if leadership is None or not self.leads(key):
            work.close()
            raise NotLed(str(key))
        term = self._terms[shard]
        with acting_until(lambda: leadership.acting_until_seconds(shard, term)):
            task = asyncio.create_task(work)
        self._running[shard].add(task)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        finally:
            self._running[shard].discard(task)
        if task.cancelled():
            raise NotLed(str(key))
        return task.result()

    def gained(self, shard: int, term: int) -> None:
        """This replica leads a shard: begin its work, unless its records say that the term is not the highest."""
        assert self._leadership is not None
        highest = self._fleet.highest_term_of(shard)
        if highest >= term:
            logger.warning("the Lease of shard %d has term %d, but its records %d: it is raised", shard, term, highest)
            self._leadership.raise_term(shard, highest)
            return
        logger.info("leading shard %d in term %d", shard, term)
        self._terms[shard] = term
        self._show()
        self._fleet.begin(list(self._fleet.keys_of(shard)))

    def lost(self, shard: int) -> None:
        """This replica does not lead a shard any more."""
        if self._terms.pop(shard, None) is None and shard not in self._leaving:
            return
        self._leaving.discard(shard)
        logger.warning("shard %d is lost", shard)
        self._metrics.shards_lost.inc()
        self._show()
        # At once, since the shard may be gained again before a task would run.
        self._cancel(shard)

    def handing_over(self, shard: int) -> None:
        """Another replica is to have a shard: end its work, then release it."""
        if self._terms.pop(shard, None) is None:
            return
        logger.info("handing shard %d over", shard)
        self._metrics.shards_handed_over.inc()
        self._show()
        self._leaving.add(shard)
        task = asyncio.create_task(self._hand_over(shard))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def wrote(self, purpose: Purpose, *, succeeded: bool) -> None:
        """Count a write of a Lease."""
        self._metrics.lease_writes.labels(purpose.value, _OUTCOMES[succeeded]).inc()

    def stop(self) -> None:
        """End all work."""
        for shard in list(self._terms):
            del self._terms[shard]
            self._cancel(shard)
        self._show()

    async def _hand_over(self, shard: int) -> None:
        running = tuple(self._running[shard])
        if running:
            await asyncio.wait(running, timeout=self._hand_over_seconds)
        if shard in self._leaving:
            self._cancel(shard)
        if running:
            await asyncio.wait(running)
        # Lost meanwhile, it may have been gained again under another term.
        if shard in self._leaving and self._leadership is not None:
            self._leaving.discard(shard)
            self._leadership.release(shard)

    def _cancel(self, shard: int) -> None:
        for task in self._running[shard]:
            task.cancel()
        self._fleet.forget(list(self._fleet.keys_of(shard)))

    def _show(self) -> None:
        self._metrics.shards_held.set(len(self._terms))
