"""Waiting until the brokers show what was written: topic policies arrive late (R27)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.operations.errors import BackendUnavailable


@dataclass(frozen=True, slots=True)
class Settling:
    """How long to wait for an effect to show.

    Args:
        timeout_seconds: bound of the wait; > 0.
        first_wait_seconds: first pause between two looks; doubles up to 0.5 s.
    """

    timeout_seconds: float = 5.0
    first_wait_seconds: float = 0.02

    async def until(self, what: str, read: Callable[[], Awaitable[Any]], accept: Callable[[Any], bool]) -> None:
        """Look again and again until `accept` holds for what `read` answers.

        Raises BackendUnavailable, naming `what`, when it does not within the bound.
        """
        deadline = time.monotonic() + self.timeout_seconds
        wait = self.first_wait_seconds
        while True:
            if accept(await read()):
                return
            if time.monotonic() + wait > deadline:
                raise BackendUnavailable(f"{what} does not show after {self.timeout_seconds:g} s")
            await asyncio.sleep(wait)
            wait = min(0.5, wait * 2)
