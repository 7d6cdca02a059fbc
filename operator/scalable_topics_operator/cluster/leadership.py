"""Leadership of shards, kept by a thread of its own: a busy event loop cannot lose it (R5, R6)."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from scalable_topics_operator.cluster.election import Election, LeaseTimes, Purpose, Write
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeError, KubeNotFound
from scalable_topics_operator.cluster.kube_login import NoKubernetes
from scalable_topics_operator.cluster.lease_record import LEASES, PART_LABEL, LeaseRecord
from scalable_topics_operator.cluster.peers import Peer

logger = logging.getLogger(__name__)

_LEAVE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Hold:
    """A shard this replica leads.

    Args:
        term: its term.
        deadline_seconds: monotonic time until which it may act.
        handing_over: nothing new is to be begun.
    """

    term: int
    deadline_seconds: float
    handing_over: bool


class LeadershipEvents(Protocol):
    """Told in the event loop."""

    def gained(self, shard: int, term: int) -> None:
        """This replica leads a shard."""

    def lost(self, shard: int) -> None:
        """It does not any more, and may be too late already."""

    def handing_over(self, shard: int) -> None:
        """It is to call `Leadership.release` as soon as its work on the shard has ended."""

    def wrote(self, purpose: Purpose, *, succeeded: bool) -> None:
        """A Lease was written, or not."""


class Leadership:
    """This replica's shards.

    Args:
        namespace: where the Leases are.
        identity: unique for each start of a process.
        shards: how many there are.
        times: how long leadership lasts.
        events: told what happens.
        gateway: host and port at which other replicas reach this one's gateway; empty if they cannot.
        nobody_led_until_seconds: monotonic time before which nobody else can have led anything.
    """

    def __init__(
        self,
        namespace: str,
        identity: str,
        shards: int,
        times: LeaseTimes,
        events: LeadershipEvents,
        gateway: str = "",
        *,
        nobody_led_until_seconds: float = -math.inf,
    ) -> None:
        self._namespace = namespace
        self._times = times
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._election = Election(identity, shards, times, gateway, nobody_led_until_seconds=nobody_led_until_seconds)
        # Replaced, never changed, so that every thread sees a whole one.
        self._holds: Mapping[int, Hold] = {}
        self._leaders: Mapping[int, Peer] = {}
        self._requests: deque[Callable[[], Iterable[Write]]] = deque()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)

    def start(self) -> None:
        """Begin to stand for election."""
        self._thread.start()

    def hold(self, shard: int) -> Hold | None:
        """The hold of a shard, if this replica leads it and may still act."""
        hold = self._holds.get(shard)
        return hold if hold is not None and time.monotonic() < hold.deadline_seconds else None

    def acting_until_seconds(self, shard: int, term: int) -> float:
        """Monotonic time until which work begun in a term may act; the past once the term is over."""
        hold = self._holds.get(shard)
        return hold.deadline_seconds if hold is not None and hold.term == term else 0.0

    def leader_of(self, shard: int) -> Peer | None:
        """Who leads a shard, as of this replica's last look at the Leases; None while nobody is known to."""
        leader = self._leaders.get(shard)
        return None if leader is not None and leader.is_me and self.hold(shard) is None else leader

    def release(self, shard: int) -> None:
        """Let others have a shard whose work has ended here."""
        self._ask(lambda: self._election.release([shard]))

    def raise_term(self, shard: int, above: int) -> None:
        """Give up a shard and acquire it under a term above this one, which its records carry (R5)."""

        def raised() -> list[Write]:
            self._election.raise_term(shard, above)
            return []

        self._ask(raised)

    async def ended(self) -> None:
        """Wait until it stands for election no more. Raises what ended it, unless that was `stop`."""
        await asyncio.shield(self._ended)

    async def stop(self) -> None:
        """Release everything and be gone; the work must have ended. Takes a second at most, API server or not."""
        self._stopping = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join, 2 * _LEAVE_SECONDS)
        self._holds = {}
        self._leaders = {}

    def _ask(self, request: Callable[[], Iterable[Write]]) -> None:
        self._requests.append(request)
        self._wake.set()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            asyncio.run(self._elect())
        except Exception as unexpected:
            error = unexpected
        self._call(self._end, error)

    def _end(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None) if error is None else self._ended.set_exception(error)

    async def _elect(self) -> None:
        async with self._connect() as kube:
            while not self._stopping:
                began = time.monotonic()
                try:
                    await self._turn(kube)
                except (KubeError, NoKubernetes) as error:
                    # A token that is being replaced cannot be read for a moment.
                    logger.warning("leadership: %s", error)
                self._show(self._election.expire(time.monotonic()))
                pause_seconds = max(0.0, began + self._times.renew_seconds - time.monotonic())
                await self._pause(pause_seconds)
            try:
                async with asyncio.timeout(_LEAVE_SECONDS):
                    releases = self._election.release(list(self._election.held))
                    # Whoever asks is told of no leader here before another one can be.
                    self._show(())
                    await self._write_all(kube, releases)
                    await self._write_all(kube, self._election.leave())
            except TimeoutError:
                logger.warning(
                    "leadership: not released in %.0f s; others take over when it has run out", _LEAVE_SECONDS
                )

    def _connect(self) -> KubeClient:
        return KubeClient(timeout_seconds=self._times.renew_seconds, tries=1)

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until there is something to do."""
        await asyncio.to_thread(self._wake.wait, seconds)
        self._wake.clear()

    async def _turn(self, kube: KubeClient) -> None:
        # What ran out while the process slept is lost, and gained anew under another term if nobody has taken it.
        self._show(self._election.expire(time.monotonic()))
        while self._requests:
            writes = self._requests.popleft()()
            self._show(())
            await self._write_all(kube, writes)
        await self._write_all(kube, self._election.renewals())
        leases = [LeaseRecord.parse(body) for body in await self._list(kube)]
        self._election.observe((lease for lease in leases if lease is not None), time.monotonic())
        self._show(())
        await self._write_all(kube, self._election.decide(time.monotonic()))

    async def _list(self, kube: KubeClient) -> list[dict[str, object]]:
        return [
            item
            async for page, _ in kube.list_pages(LEASES, self._namespace, label_selector=PART_LABEL)
            for item in page
        ]

    async def _write_all(self, kube: KubeClient, writes: Iterable[Write]) -> None:
        await asyncio.gather(*(self._write(kube, write) for write in writes))
        self._show(())

    async def _write(self, kube: KubeClient, write: Write) -> None:
        sent_at = time.monotonic()
        lease = write.lease
        try:
            if write.purpose is Purpose.FORGET:
                await kube.delete(LEASES, self._namespace, lease.name)
                self._election.written(write, lease, sent_at)
            else:
                body = lease.body(self._namespace, acquired=write.purpose is Purpose.ACQUIRE)
                if lease.version:
                    answer = await kube.replace(LEASES, self._namespace, body)
                else:
                    answer = await kube.create(LEASES, self._namespace, body)
                written = LeaseRecord.parse(answer)
                if written is not None:
                    self._election.written(write, written, sent_at)
        except (KubeConflict, KubeNotFound):
            # Somebody was faster; the next list tells who.
            self._tell_wrote(write.purpose, succeeded=False)
        except KubeError as error:
            logger.warning("leadership: %s", error)
            self._tell_wrote(write.purpose, succeeded=False)
        else:
            self._tell_wrote(write.purpose, succeeded=True)

    def _show(self, expired: Iterable[int]) -> None:
        """Let the event loop see what is held now, and tell it what changed."""
        for shard in expired:
            logger.warning("shard %d could not be renewed in time; its work stops", shard)
        before = self._holds
        after = {
            shard: Hold(held.lease.term, held.deadline_seconds, held.handing_over)
            for shard, held in self._election.held.items()
        }
        self._holds = after
        self._leaders = self._election.leaders(time.monotonic())
        for shard, hold in before.items():
            if shard not in after or after[shard].term != hold.term:
                self._call(self._events.lost, shard)
        for shard, hold in after.items():
            known = before.get(shard)
            if known is None or known.term != hold.term:
                self._call(self._events.gained, shard, hold.term)
            elif hold.handing_over and not known.handing_over:
                self._call(self._events.handing_over, shard)

    def _tell_wrote(self, purpose: Purpose, *, succeeded: bool) -> None:
        self._call(lambda: self._events.wrote(purpose, succeeded=succeeded))

    def _call(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            # The process ends: its loop is closed.
            logger.debug("nobody is left to tell")
