"""Follows the layout topic of a scalable topic (docs/contract.md, R20)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pulsar

from scalable_topics.layout import TopicName, layout_topic_name
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.errors import ClientError, ClosedError, ConnectError, ScalableTopicNotFoundError
from scalable_topics.sdk.layout_message import LayoutMessage, parse_layout_message
from scalable_topics.sdk.options import ConnectionOptions, create_reader
from scalable_topics.sdk.pulsar_binding import close_client

_READ_MS = 1000
_MOST_SECONDS_WITHOUT_CONNECTION = 60.0
_LEAST_PAUSE_SECONDS = 0.2
_MOST_PAUSE_SECONDS = 15.0

Listener = Callable[[LayoutMessage], None]


class LayoutFollower:
    """Reads one layout topic for as long as it is not closed, and tells listeners of every message that wins.

    The Reader has a thread and connections of its own: whatever happens to other connections (a refused send makes
    pulsar-client drop a whole one), the next layout arrives. A reader that stays without connection is replaced by a
    new one that starts with the full state again.

    Args:
        topic: the scalable topic.
        options: how Pulsar is reached.
    """

    def __init__(self, topic: TopicName, options: ConnectionOptions) -> None:
        self.topic = topic
        self._name = layout_topic_name(topic)
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._arrivals: Arrivals[bytes | ClientError] = Arrivals(self._loop, self._arrived)
        self._latest: LayoutMessage | None = None
        self._first: asyncio.Future[LayoutMessage] = self._loop.create_future()
        self._listeners: list[Listener] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"layout of {topic}", daemon=True)
        self._thread.start()

    async def first(self) -> LayoutMessage:
        """The first layout.

        Raises:
            ScalableTopicNotFoundError: there is no layout topic, or nothing on it.
            ConnectError: it cannot be read.
            LayoutMessageError: this release cannot follow what is on it.
        """
        return await asyncio.shield(self._first)

    @property
    def latest(self) -> LayoutMessage | None:
        """The newest layout seen."""
        return self._latest

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` in the event loop with every further message that wins."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Call it no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def close(self) -> None:
        """Stop following."""
        self._closing.set()
        await asyncio.to_thread(self._thread.join)
        if self._first.done():
            # An error nobody has asked for is not worth a warning of the event loop.
            self._first.exception()
        else:
            self._first.set_exception(ClosedError(f"the client of {self.topic} was closed before its layout arrived"))
            self._first.exception()

    def _arrived(self) -> None:
        while self._arrivals.items:
            item = self._arrivals.items.popleft()
            try:
                if isinstance(item, ClientError):
                    raise item
                message = parse_layout_message(item)
            except ClientError as error:
                # Once there is a layout, one that cannot be read changes nothing: traffic goes on (R7).
                if not self._first.done():
                    self._first.set_exception(error)
                continue
            if message.supersedes(self._latest):
                self._latest = message
                if not self._first.done():
                    self._first.set_result(message)
                for listener in tuple(self._listeners):
                    listener(message)

    def _follow(self) -> None:
        try:
            client = self._options.connect()
        except Exception as error:
            # pulsar-client refuses settings with errors of many kinds.
            self._arrivals.put(self._explain(error))
            return
        pause_seconds = _LEAST_PAUSE_SECONDS
        try:
            while not self._closing.is_set():
                try:
                    reader = create_reader(
                        client,
                        self._name,
                        pulsar.MessageId.latest,
                        start_message_id_inclusive=True,
                        receiver_queue_size=100,
                    )
                    with contextlib.closing(reader):
                        if self._read(reader):
                            pause_seconds = _LEAST_PAUSE_SECONDS
                except pulsar.PulsarException as error:
                    self._arrivals.put(self._explain(error))
                self._closing.wait(random.uniform(pause_seconds / 2, pause_seconds))
                pause_seconds = min(2 * pause_seconds, _MOST_PAUSE_SECONDS)
        finally:
            close_client(client)

    def _read(self, reader: Any) -> bool:
        """Read until the reader has been without connection for long; answers whether anything was there."""
        # Only this call makes pulsar-client go back to the latest message instead of waiting for the next one.
        if not reader.has_message_available():
            self._arrivals.put(_not_found(self.topic))
            return False
        connected_at = time.monotonic()
        while not self._closing.is_set():
            try:
                self._arrivals.put(reader.read_next(_READ_MS).data())
            except pulsar.Timeout:
                if reader.is_connected():
                    connected_at = time.monotonic()
                elif time.monotonic() - connected_at > _MOST_SECONDS_WITHOUT_CONNECTION:
                    break
        return True

    def _explain(self, error: Exception) -> ClientError:
        if isinstance(error, pulsar.TopicNotFound):
            return _not_found(self.topic)
        return ConnectError(f"cannot read the layout of {self.topic}: {type(error).__name__}")


def _not_found(topic: TopicName) -> ScalableTopicNotFoundError:
    return ScalableTopicNotFoundError(
        f"there is no scalable topic {topic}: nothing is published on {layout_topic_name(topic)}. Topics on a Native "
        "connection have no layout topic: this library serves Classic ones, use the Java V5 client there"
    )
