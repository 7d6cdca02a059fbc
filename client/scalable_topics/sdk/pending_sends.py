"""The sends of a producer that have no outcome yet: their bounds, their time, and flushing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from scalable_topics.sdk.errors import ClientError
from scalable_topics.sdk.segment_lane import Send


class PendingSends:
    """Keeps a producer's memory bounded over all its segments (hazard A5-26151), whatever the brokers do.

    A send counts from when it is admitted until nothing holds it any more, which may be later than the application is
    told: pulsar-client keeps what it was given until a broker answers.

    Args:
        loop: the event loop.
        max_messages: sends admitted at a time.
        max_bytes: their size.
        admit: called with each send that had to wait, once there is room for it.
        expire: called with each send whose deadline has passed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        max_messages: int,
        max_bytes: int,
        admit: Callable[[Send], None],
        expire: Callable[[Send], None],
    ) -> None:
        self._loop = loop
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._admit = admit
        self._expire = expire
        self._messages = 0
        self._bytes = 0
        self._untold: deque[Send] = deque()
        self._waiting: deque[tuple[Send, asyncio.Future[None] | None]] = deque()
        self._flushes: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._pauses: list[asyncio.Future[None]] = []

    @property
    def messages(self) -> int:
        """How many sends are admitted."""
        return self._messages

    @property
    def bytes(self) -> int:
        """Their size."""
        return self._bytes

    @property
    def untold(self) -> list[Send]:
        """The sends whose outcome the application has not been told, in order."""
        return [send for send in self._untold if not send.is_told]

    @property
    def waiting(self) -> list[Send]:
        """The sends that wait to be admitted, in order."""
        return [send for send, _ in self._waiting]

    @property
    def is_flushing(self) -> bool:
        """Whether somebody waits in `flush`."""
        return bool(self._flushes)

    def has_room(self, size_bytes: int) -> bool:
        """Whether a send of this size would be admitted at once. One that is larger than the bound goes alone."""
        return not self._waiting and self._fits(size_bytes)

    def add(self, send: Send) -> bool:
        """Take a send; true if there is room for it at once, else it is admitted after those that came before."""
        self._untold.append(send)
        if self._timer is None:
            self._timer = self._loop.call_at(send.deadline, self._look_at_the_clock)
        size_bytes = self._bytes + send.size_bytes
        fits = self._messages < self._max_messages and (size_bytes <= self._max_bytes or not self._messages)
        if fits and not self._waiting:
            send.is_admitted = True
            self._messages += 1
            self._bytes = size_bytes
            return True
        self._waiting.append((send, None))
        return False

    def admission(self, send: Send) -> asyncio.Future[None] | None:
        """What to await until the send that was added last is admitted; None if it is."""
        if not self._waiting or self._waiting[-1][0] is not send:
            return None
        admitted: asyncio.Future[None] = self._loop.create_future()
        self._waiting[-1] = (send, admitted)
        return admitted

    def tell(self, send: Send, error: ClientError | None) -> None:
        """Tell the application that a send failed, or (None) is stored, unless it has been told already."""
        if not send.is_told:
            send.is_told = True
            send.error = error
            send.wake()
            self._forget_told()
            self._forget_given_up()

    def release(self, send: Send) -> None:
        """Nothing holds the send any more: its room is free."""
        send.is_admitted = False
        self._messages -= 1
        self._bytes -= send.size_bytes
        self._freed()

    def finish(self, stored: Sequence[Send]) -> None:
        """Tell and release sends that were stored: as one by one, only faster."""
        size_bytes = 0
        for send in stored:
            size_bytes += send.size_bytes
            send.is_admitted = False
            if not send.is_told:
                send.is_told = True
                send.wake()
        self._messages -= len(stored)
        self._bytes -= size_bytes
        self._forget_told()
        self._freed()

    async def pause(self, seconds: float, most_messages: int) -> None:
        """Wait until nothing is admitted, for `seconds` at most; only a turn of the loop where more than
        `most_messages` are, since their outcomes are far away then."""
        if not 0 < self._messages <= most_messages:
            await asyncio.sleep(0)
            return
        pause: asyncio.Future[None] = self._loop.create_future()
        self._pauses.append(pause)
        await asyncio.wait((pause,), timeout=seconds)
        if not pause.done():
            self._pauses.remove(pause)

    async def flush(self) -> None:
        """Wait until the application has been told the outcome of every send added so far (hazard A5-26287)."""
        if self._untold:
            done: asyncio.Future[None] = self._loop.create_future()
            self._flushes.append((self._untold[-1].order, done))
            await done

    def close(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _freed(self) -> None:
        if self._waiting:
            self._admit_waiting()
        if self._pauses and not self._messages:
            pauses, self._pauses = self._pauses, []
            for pause in pauses:
                pause.set_result(None)

    def _fits(self, size_bytes: int) -> bool:
        return self._messages < self._max_messages and (
            self._bytes + size_bytes <= self._max_bytes or not self._messages
        )

    def _admit_waiting(self) -> None:
        self._forget_given_up()
        while self._waiting and self._fits(self._waiting[0][0].size_bytes):
            send, admitted = self._waiting.popleft()
            send.is_admitted = True
            self._messages += 1
            self._bytes += send.size_bytes
            self._admit(send)
            if admitted is not None and not admitted.done():
                admitted.set_result(None)
            self._forget_given_up()

    def _forget_given_up(self) -> None:
        """Let go of those that waited in vain, so that they do not pile up while nothing is released."""
        while self._waiting and self._waiting[0][0].is_told:
            _, admitted = self._waiting.popleft()
            if admitted is not None and not admitted.done():
                admitted.set_result(None)

    def _forget_told(self) -> None:
        untold = self._untold
        while untold and untold[0].is_told:
            untold.popleft()
        if self._flushes:
            first = untold[0].order if untold else None
            while self._flushes and (first is None or self._flushes[0][0] < first):
                _, done = self._flushes.popleft()
                if not done.done():
                    done.set_result(None)

    def _look_at_the_clock(self) -> None:
        self._timer = None
        now = self._loop.time()
        for send in [send for send in self._untold if send.deadline <= now and not send.is_told]:
            self._expire(send)
        if self._untold:
            self._timer = self._loop.call_at(self._untold[0].deadline, self._look_at_the_clock)
