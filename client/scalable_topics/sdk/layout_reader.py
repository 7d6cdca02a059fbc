"""Reads the layout topic of a scalable topic in a thread (docs/contract.md, R20)."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pulsar

from scalable_topics.layout import TopicName, layout_topic_name
from scalable_topics.sdk.errors import ClientError, ConnectError
from scalable_topics.sdk.options import ConnectionOptions, create_reader
from scalable_topics.sdk.pulsar_binding import close_client

_READ_MS = 1000
_LEAST_PAUSE_SECONDS = 0.2
_MOST_PAUSE_SECONDS = 15.0


class LayoutReader:
    """Reads for as long as it is not closed.

    The Reader has a thread and connections of its own: whatever happens to other connections (a refused send makes
    pulsar-client drop a whole one), the next layout arrives. A Reader that stays without connection is replaced by a
    new one that starts with the full state again.

    Args:
        topic: the scalable topic.
        options: how Pulsar is reached.
        arrived: called in the thread with each message; with None where there is no layout topic or nothing on it; with
            the error for the application where it cannot be read.
        most_seconds_without_connection: after this long a Reader is replaced.

    Attributes:
        most_seconds_without_connection: the same, from now on.
    """

    def __init__(
        self,
        topic: TopicName,
        options: ConnectionOptions,
        arrived: Callable[[bytes | ClientError | None], None],
        *,
        most_seconds_without_connection: float,
    ) -> None:
        self._topic = topic
        self._options = options
        self._tell = arrived
        self.most_seconds_without_connection = most_seconds_without_connection
        self._is_closing = False
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"layout of {topic}", daemon=True)
        self._thread.start()

    def look_now(self) -> None:
        """Do not wait before looking again whether there is a layout topic. May be called in any thread."""
        self._wanted.set()

    def close(self) -> None:
        """End. Blocks."""
        self._is_closing = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            client = self._options.connect()
        except Exception as error:
            # pulsar-client refuses settings with errors of many kinds.
            self._tell(self._unreadable(error))
            return
        pause_seconds = _LEAST_PAUSE_SECONDS
        try:
            while not self._is_closing:
                try:
                    reader = create_reader(
                        client,
                        layout_topic_name(self._topic),
                        pulsar.MessageId.latest,
                        start_message_id_inclusive=True,
                        receiver_queue_size=100,
                    )
                    with contextlib.closing(reader):
                        if self._read(reader):
                            pause_seconds = _LEAST_PAUSE_SECONDS
                except pulsar.TopicNotFound:
                    self._tell(None)
                except pulsar.PulsarException as error:
                    self._tell(self._unreadable(error))
                if self._wanted.wait(random.uniform(pause_seconds / 2, pause_seconds)):
                    self._wanted.clear()
                    pause_seconds = _LEAST_PAUSE_SECONDS
                else:
                    pause_seconds = min(2 * pause_seconds, _MOST_PAUSE_SECONDS)
        finally:
            close_client(client)

    def _read(self, reader: Any) -> bool:
        """Read until the Reader has been without connection for long; answers whether anything was there."""
        has_read = False
        looked_at = -_MOST_PAUSE_SECONDS
        connected_at = time.monotonic()
        while not self._is_closing:
            if not has_read and (self._wanted.is_set() or time.monotonic() - looked_at >= _MOST_PAUSE_SECONDS):
                looked_at = time.monotonic()
                # Only this call makes pulsar-client go back to the latest message instead of waiting for the next one.
                if not reader.has_message_available():
                    self._tell(None)
            try:
                self._tell(reader.read_next(_READ_MS).data())
                has_read = True
            except pulsar.Timeout:
                now = time.monotonic()
                if reader.is_connected():
                    connected_at = now
                elif now - connected_at > self.most_seconds_without_connection or self._wanted.is_set():
                    break
                self._wanted.clear()
        return has_read

    def _unreadable(self, error: Exception) -> ConnectError:
        return ConnectError(f"cannot read the layout of {self._topic}: {type(error).__name__}")
