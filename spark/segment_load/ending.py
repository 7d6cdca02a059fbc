"""When a process of the pipeline is to end: when it is told to, or when whoever started it is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType


def told_to_end(*, with_stdin: bool) -> threading.Event:
    """An event that SIGTERM and SIGINT set; and the end of standard input, which comes however the parent ends.

    Args:
        with_stdin: whether to read standard input for that; nothing else may read it.
    """
    event = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if with_stdin:

        def read() -> None:
            while os.read(sys.stdin.fileno(), 4096):
                pass
            event.set()

        threading.Thread(target=read, name="standard input", daemon=True).start()
    return event
