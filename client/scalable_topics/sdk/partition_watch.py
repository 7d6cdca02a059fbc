"""Counts the partitions of an ordinary topic, again and again (R25)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pulsar

from scalable_topics.layout import TopicName
from scalable_topics.sdk.errors import ClientError, ConnectError
from scalable_topics.sdk.options import ConnectionOptions
from scalable_topics.sdk.pulsar_binding import close_client

_LEAST_PAUSE_SECONDS = 0.2


class PartitionWatch:
    """Counts from `start` to `close`, every `partitions_refresh_seconds`. Belongs to one event loop.

    Args:
        topic: the topic.
        options: how Pulsar is reached.
        counted: called with the number of partitions: 0 for a topic that is not partitioned, or for none at all, which
            brokers do not tell apart.
        failed: called with the error for the application where it cannot be found out; it is tried again.
    """

    def __init__(
        self,
        topic: TopicName,
        options: ConnectionOptions,
        *,
        counted: Callable[[int], None],
        failed: Callable[[ClientError], None],
    ) -> None:
        self._topic = topic
        self._options = options
        self._counted = counted
        self._failed = failed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if it has not begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep_counting())

    def stop(self) -> None:
        """Count no more."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Count no more, and wait until the connection is closed."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep_counting(self) -> None:
        client = self._options.connect()
        try:
            await self._count_with(client)
        finally:
            await asyncio.to_thread(close_client, client)

    async def _count_with(self, client: pulsar.Client) -> None:
        every_seconds = self._options.partitions_refresh_seconds
        pause_seconds = min(_LEAST_PAUSE_SECONDS, every_seconds)
        while True:
            try:
                count = await asyncio.to_thread(self._count, client)
            except pulsar.PulsarException as error:
                self._failed(ConnectError(f"cannot count the partitions of {self._topic}: {type(error).__name__}"))
                pause_seconds = min(2 * pause_seconds, every_seconds)
            else:
                self._counted(count)
                pause_seconds = every_seconds
            await asyncio.sleep(random.uniform(0.8 * pause_seconds, pause_seconds))

    def _count(self, client: pulsar.Client) -> int:
        name = self._topic.persistent
        try:
            found = client.get_topic_partitions(name)
        except pulsar.TopicNotFound:
            return 0
        return 0 if found == [name] else len(found)
