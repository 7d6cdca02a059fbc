"""The supervisor of load pipelines as a child of the operator, where it is no container of its own (R34)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import time
from pathlib import Path

from scalable_topics_operator.load.back_off import BackOff

logger = logging.getLogger(__name__)

_END_SECONDS = 1.0


class SupervisorProcess:
    """Keeps the child running. It ends with this process however that ends, as it sees its standard input close.

    Args:
        command: of `segment_load supervise`, as a shell would have it.
        folder: shared with it.
    """

    def __init__(self, command: str, folder: Path) -> None:
        self._command = (*shlex.split(command), "--end-with-stdin", "--folder", str(folder))

    async def run(self) -> None:
        """Run it for ever, again whenever it ends."""
        back_off = BackOff()
        while True:
            began = time.monotonic()
            why = await self._run_once()
            pause_seconds = back_off.after(time.monotonic() - began)
            logger.error("the supervisor of pipelines has ended (%s); again in %.0f s", why, pause_seconds)
            await asyncio.sleep(pause_seconds)

    async def _run_once(self) -> str:
        try:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=asyncio.subprocess.PIPE)
        except OSError as error:
            return f"{self._command[0]}: {error.strerror}"
        try:
            return f"exit code {await process.wait()}"
        finally:
            if process.returncode is None:
                process.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _END_SECONDS)
