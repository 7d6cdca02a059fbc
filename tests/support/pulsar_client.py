"""An application's Pulsar client, awaitable: pulsar-client blocks, so each call runs in a thread."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pulsar

_TIMEOUT_SECONDS = 20


class PulsarClient:
    """One client; whatever it made is closed with it.

    Args:
        service_url: address for clients.
        token: whose client it is.
    """

    def __init__(self, service_url: str, token: str) -> None:
        self._client = pulsar.Client(
            service_url,
            authentication=pulsar.AuthenticationToken(token),
            operation_timeout_seconds=_TIMEOUT_SECONDS,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A producer whose topic was sealed under it has closed itself; the client tells that, having closed the rest.
        with suppress(pulsar.AlreadyClosed):
            self._client.close()

    async def producer(self, topic: str, **options: Any) -> Any:
        """Attach a producer."""
        return await asyncio.to_thread(self._client.create_producer, topic, **options)

    async def consumer(self, topic: str, subscription: str, **options: Any) -> Any:
        """Attach a consumer."""
        return await asyncio.to_thread(self._client.subscribe, topic, subscription, **options)

    async def reader(self, topic: str) -> Any:
        """Attach a Reader at the earliest message."""
        return await asyncio.to_thread(self._client.create_reader, topic, pulsar.MessageId.earliest)

    async def send(self, topic: str, *messages: str, key: str | None = None) -> None:
        """Send messages with a producer of their own, one entry each."""
        producer = await self.producer(topic, batching_enabled=False)
        for message in messages:
            await asyncio.to_thread(producer.send, message.encode(), partition_key=key)
        await close(producer)

    async def receive(self, topic: str, subscription: str, count: int) -> list[str]:
        """Receive and acknowledge so many messages of a subscription."""
        consumer = await self.consumer(topic, subscription)
        received = []
        for _ in range(count):
            message = await asyncio.to_thread(consumer.receive, timeout_millis=_TIMEOUT_SECONDS * 1000)
            received.append(message.data().decode())
            await asyncio.to_thread(consumer.acknowledge, message)
        await close(consumer)
        return received


async def close(client_object: Any) -> None:
    """Close a producer, consumer or reader; one whose connection or topic is gone at that moment is closed, too."""
    with suppress(pulsar.NotConnected, pulsar.AlreadyClosed):
        await asyncio.to_thread(client_object.close)
