"""Threads for pulsar-client's blocking calls, so that the event loop never waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_THREADS = 64


class BlockingCalls:
    """Runs blocking calls of one client in threads, which start when they are needed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="scalable-topics")

    async def run(self, call: Callable[..., T], *arguments: Any) -> T:
        """Await a call's answer. Cancelling does not stop the call itself."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def close(self) -> None:
        """Take no more calls; those under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)
