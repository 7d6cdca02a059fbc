"""From pulsar-client's threads to the event loop, with one wake-up for many arrivals."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def call_in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Have the loop call something. Called in any thread; never raises, since that would end the process there."""
    # The loop may be closed by an application that did not close its client: nobody is left to tell.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


class Arrivals(Generic[T]):
    """A queue that threads fill and the loop empties.

    Args:
        loop: the event loop.
        arrived: called in the loop when there is something in `items`; it need not take everything.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, arrived: Callable[[], None]) -> None:
        self.items: deque[T] = deque()
        self._loop = loop
        self._arrived = arrived
        self.is_woken = False

    def put(self, item: T) -> None:
        """Add an item. Called in any thread; never raises."""
        self.items.append(item)
        if not self.is_woken:
            self.wake()

    def wake(self) -> None:
        """Have the loop look at `items`. Called in any thread; never raises."""
        if not self.is_woken:
            self.is_woken = True
            call_in_loop(self._loop, self._wake)

    def _wake(self) -> None:
        # First, so that what is put from here on wakes the loop again.
        self.is_woken = False
        self._arrived()
