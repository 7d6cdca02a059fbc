"""One reading of something large, shared by all who ask for it together."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Entry(Generic[T]):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asked_at: float = float("-inf")
    values: list[T] = field(default_factory=list)


class SharedReading(Generic[T]):
    """Reads each key at most once for callers that ask together or accept the same age.

    Args:
        read: reads one key.
        monotonic: replaceable for tests.
    """

    def __init__(self, read: Callable[[str], Awaitable[T]], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._monotonic = monotonic
        self._entries: dict[str, _Entry[T]] = defaultdict(_Entry)

    async def get(self, key: str, *, max_age_seconds: float = 0.0) -> T:
        """The value as read at most that long ago; with 0, by a reading that began after this call.

        Raises what `read` raises; a failed reading is shared with nobody.
        """
        called_at = self._monotonic()
        entry = self._entries[key]
        # Whoever waits here behind a reading in progress began after it did: the first of them reads again,
        # and that reading, begun after all of them called, serves the others.
        async with entry.lock:
            if not entry.values or entry.asked_at < called_at - max_age_seconds:
                asked_at = self._monotonic()
                entry.values = [await self._read(key)]
                entry.asked_at = asked_at
            return entry.values[0]

    def latest(self, key: str) -> T | None:
        """What was read last, however long ago; None before anything was."""
        entry = self._entries.get(key)
        return entry.values[0] if entry is not None and entry.values else None
