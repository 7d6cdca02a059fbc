"""Producers and consumers of Pulsar's V5 client, the reference for native scalable topics, as tests see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dev.v5.process import V5Error, V5Process
from tests.support.consumption import Kind, Receipt
from tests.support.guarantee_checker import Latencies
from tests.support.v5_reports import Received, Sent, acknowledge, read_latencies, read_received


class V5Client(V5Process):
    """A process with a client. Made by `connected`."""

    async def produce(self, topic: str, name: str, keys: Sequence[str | None]) -> list[int]:
        """Send a message to each of these keys, many at a time; answers the segment of each.

        Args:
            topic: `topic://` and the name of a scalable topic.
            name: of the list, as its messages tell it; those of each key are numbered from 0.
            keys: None for a message without a key, of which they are numbered together.

        Raises:
            V5Error: one of them failed.
        """
        reply = await self.call("produce", topic=topic, name=name, keys=list(keys))
        segments: list[int] = reply["segments"]
        return segments

    async def producer(
        self,
        topic: str,
        name: str,
        keys: Sequence[str],
        *,
        total: int,
        per_second: float = 0.0,
        size_bytes: int = 0,
        producer_name: str = "",
    ) -> V5Producer:
        """Start a producer that sends to the keys in turn, one message after the other.

        Args:
            topic: `topic://` and the name of a scalable topic.
            name: as its messages tell it; no other of this client has it.
            keys: the messages of each are numbered from 0.
            total: it ends after so many.
            per_second: messages; 0 for as many as it can.
            size_bytes: that each message has at least.
            producer_name: as brokers know it; empty to have it named by them.
        """
        producer = V5Producer(self, name)
        self.listen(name, producer.hear)
        told = {
            "total": total,
            "perSecond": per_second,
            "sizeBytes": size_bytes,
            "producerName": producer_name,
        }
        await self.call("send", topic=topic, name=name, keys=list(keys), **told)
        return producer

    async def consumer(self, kind: Kind, topic: str, subscription: str, name: str) -> V5Consumer:
        """Start a stream or a queue consumer, from the earliest message on if the subscription is new.

        Args:
            kind: a stream consumer acknowledges up to what it has received, a queue consumer each message.
            topic: `topic://` and the name of a scalable topic.
            subscription: its name.
            name: of the consumer; no other of this client has it.
        """
        consumer = V5Consumer(self, name)
        self.listen(name, consumer.hear)
        await self.call(kind.value, topic=topic, subscription=subscription, name=name)
        return consumer


class V5Producer:
    """A producer that sends one message after the other; made by `V5Client.producer`."""

    def __init__(self, client: V5Client, name: str) -> None:
        self._client = client
        self.name = name
        self._sent: list[Sent] = []
        self._failure: V5Error | None = None
        self._latencies: Latencies | None = None

    @property
    def sent(self) -> tuple[Sent, ...]:
        """What it was told is stored, in order."""
        return tuple(self._sent)

    async def until(self, more: int, within_seconds: float = 60.0) -> None:
        """Wait until so many more are stored. Raises V5Error if one fails, AssertionError if it ends before."""
        wanted = len(self._sent) + more
        await self._client.until(
            lambda: len(self._sent) >= wanted or self._latencies is not None,
            lambda: f"{self.name} has sent {len(self._sent)} of {wanted}",
            within_seconds,
        )
        self._raise_failure()
        assert len(self._sent) >= wanted, f"{self.name} has ended with {len(self._sent)} of {wanted} messages"

    async def ended(self, within_seconds: float = 120.0) -> Latencies:
        """Wait until it has sent all; answers how long sends took. Raises V5Error if one has failed."""
        await self._client.until(
            lambda: self._latencies is not None, lambda: f"{self.name} has sent {len(self._sent)}", within_seconds
        )
        self._raise_failure()
        assert self._latencies is not None
        return self._latencies

    async def stop(self) -> Latencies:
        """Send no more; answers how long sends took. Raises V5Error if one has failed."""
        await self._client.call("stop", name=self.name)
        return await self.ended()

    def hear(self, report: dict[str, Any]) -> None:
        """Note a report."""
        match report["is"]:
            case "sent":
                self._sent.append(Sent.read(report))
            case "failed":
                self._failure = V5Error.read(report)
            case "ended":
                self._latencies = read_latencies(report)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


class V5Consumer:
    """A stream or queue consumer; made by `V5Client.consumer`."""

    def __init__(self, client: V5Client, name: str) -> None:
        self._client = client
        self.name = name
        self._received: list[Received] = []
        self._acknowledged = 0
        self._failure: V5Error | None = None

    @property
    def received(self) -> tuple[Received, ...]:
        """What it has received, in order."""
        return tuple(self._received)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The same for the judges. Raises ValueError if a message has no key."""
        return tuple(one.receipt(self.name) for one in self._received)

    async def until(self, total: int, within_seconds: float = 60.0) -> None:
        """Wait until so many messages have been received, and acknowledged. Raises V5Error if it has failed."""
        await self._client.until(
            lambda: self._acknowledged >= total or self._failure is not None,
            lambda: f"{self.name} has received {len(self._received)} of {total}",
            within_seconds,
        )
        self._raise_failure()

    async def stop(self) -> tuple[Received, ...]:
        """Close it; answers all it has received. Raises V5Error if it has failed."""
        await self._client.call("stop", name=self.name)
        self._raise_failure()
        return self.received

    def hear(self, report: dict[str, Any]) -> None:
        """Note a report."""
        match report["is"]:
            case "received":
                self._received.extend(read_received(report))
            case "acknowledged":
                acknowledge(self._received, report)
                self._acknowledged += report["count"]
            case "failed":
                self._failure = V5Error.read(report)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
