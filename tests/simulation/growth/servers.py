"""Servers and processors that do one thing after the other, in virtual time."""

from __future__ import annotations

import asyncio


class Line:
    """Whoever comes is served in turn; with several servers that much faster.

    Args:
        servers: how many serve at once, as a share of time: two halve every service.
    """

    def __init__(self, servers: float = 1.0) -> None:
        self._servers = servers
        self._free_at = 0.0
        self.busy_seconds = 0.0

    def claim(self, seconds: float) -> float:
        """Ask for so much service; answers the time, by the loop's clock, at which it is done."""
        loop = asyncio.get_running_loop()
        self.busy_seconds += seconds
        self._free_at = max(loop.time(), self._free_at) + seconds / self._servers
        return self._free_at

    async def use(self, seconds: float, *, at_least_seconds: float = 0.0) -> None:
        """Wait until so much service is done, and for a while at least: what the way there and back takes."""
        done_at = self.claim(seconds)
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(max(done_at - now, at_least_seconds))
