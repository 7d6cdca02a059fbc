"""Calls that wait for a message, woken in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Receivers:
    """Coroutines that wait until there is something for them.

    Args:
        waiting: how many items there are, for each of which one of them is woken.
    """

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._waiting = waiting
        self._receivers: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait to be woken; what one was woken for may have been taken by another meanwhile."""
        receiver: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._receivers.append(receiver)
        try:
            await receiver
        except asyncio.CancelledError:
            if receiver.cancelled():
                # Unless it has been passed over already, in the moment between its end and this.
                if receiver in self._receivers:
                    self._receivers.remove(receiver)
            else:
                # It was woken for something that another one may take instead.
                self.wake()
            raise

    def wake(self) -> None:
        """Wake one of them for each item, as long as there are any."""
        items = self._waiting()
        while items and self._receivers:
            receiver = self._receivers.popleft()
            # One that has given up is passed over: the item is for the next.
            if not receiver.done():
                receiver.set_result(None)
                items -= 1

    def wake_all(self) -> None:
        """Wake all of them."""
        while self._receivers:
            receiver = self._receivers.popleft()
            if not receiver.done():
                receiver.set_result(None)
