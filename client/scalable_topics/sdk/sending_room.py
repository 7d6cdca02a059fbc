"""Keeps threads from running ahead of the event loop that sends for them."""

from __future__ import annotations

import threading


class SendingRoom:
    """Room for messages and their bytes, which threads take and the loop gives back.

    Args:
        max_messages: messages at a time.
        max_bytes: their size; one message that is larger goes alone.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._messages = 0
        self._bytes = 0
        self._changed = threading.Condition()

    def take(self, size_bytes: int) -> None:
        """Take room for a message; blocks until there is some."""
        with self._changed:
            while not self._fits(size_bytes):
                self._changed.wait()
            self._messages += 1
            self._bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Give the room of a message back. Does not block."""
        with self._changed:
            self._messages -= 1
            self._bytes -= size_bytes
            # All of them: a large message that still does not fit must not swallow the wake-up of a small one.
            self._changed.notify_all()

    def _fits(self, size_bytes: int) -> bool:
        return not self._messages or (
            self._messages < self._max_messages and self._bytes + size_bytes <= self._max_bytes
        )
