"""Waiting for effects instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(
    read: Callable[[], Awaitable[T]],
    holds: Callable[[T], bool] = bool,
    *,
    what: str,
    within_seconds: float = 30.0,
    every_seconds: float = 0.1,
) -> T:
    """Read until `holds`; answers what was read. Raises AssertionError with the last reading."""
    deadline = time.monotonic() + within_seconds
    while True:
        value = await read()
        if holds(value):
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {within_seconds:.0f} s; last seen: {value!r}")
        await asyncio.sleep(every_seconds)


async def until(
    holds: Callable[[], bool], *, what: str, within_seconds: float = 30.0, every_seconds: float = 0.1
) -> None:
    """Wait until something in this process holds. Raises AssertionError."""

    async def read() -> bool:
        return holds()

    await eventually(read, what=what, within_seconds=within_seconds, every_seconds=every_seconds)
