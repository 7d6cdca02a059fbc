"""An event loop in a thread, for callers without asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from scalable_topics.admin.errors import AdminError

T = TypeVar("T")


class LoopThread:
    """Runs coroutines of any thread in one loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scalable-topics-admin", daemon=True)
        self._lock = threading.Lock()
        self._ended = False
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop and wait for it. Raises AdminError once the loop has ended."""
        with self._lock:
            if self._ended:
                work.close()
                raise AdminError("the client is closed")
            doing = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return doing.result()
        except CancelledError:
            raise AdminError("the client was closed meanwhile") from None
        except BaseException:
            # An interrupted call must not go on unseen.
            doing.cancel()
            raise

    def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Take no more work, cancel what is under way, do one last thing, and end the loop."""
        with self._lock:
            if self._ended:
                last.close()
                return
            self._ended = True
        try:
            asyncio.run_coroutine_threadsafe(_end(last), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _end(last: Coroutine[Any, Any, None]) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await last
    await asyncio.get_running_loop().shutdown_default_executor()
