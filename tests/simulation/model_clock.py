"""Time that passes only when the simulation says so."""

from __future__ import annotations

import asyncio

START_MS = 1_800_000_000_000


class ModelClock:
    """Implements `Clock`: a sleep takes no real time."""

    def __init__(self) -> None:
        self._now_ms = START_MS

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._now_ms

    def monotonic_seconds(self) -> float:
        """All processes of a simulation see the same time."""
        return self.seconds

    @property
    def seconds(self) -> float:
        """Seconds since 1970."""
        return self._now_ms / 1000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ms += round(seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        """Let time pass for the caller and for everybody else."""
        self.advance(seconds)
        await asyncio.sleep(0)
