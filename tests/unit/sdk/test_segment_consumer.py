"""The consumer of one segment, where pulsar-client's threads and the event loop meet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from scalable_topics.layout import HashRange
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.attachments import Attach
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.layout_message import FollowedSegment
from scalable_topics.sdk.segment_consumer import Received, SegmentConsumer

TIMEOUT_SECONDS = 10
SEGMENT = FollowedSegment(0, HashRange.parse_descriptor("0000-ffff"), "persistent://t/n/x-segment-0000-ffff-0")


class Attached:
    """A consumer as a listener of pulsar-client gets it."""

    def __init__(self) -> None:
        self.is_running = True
        self._consumer = self

    def pause_message_listener(self) -> None:
        self.is_running = False

    def resume_message_listener(self) -> None:
        self.is_running = True

    def close(self) -> None:
        """Detach."""


class Client:
    """A pulsar-client whose attaching takes until it is told."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Pulsar:
    """Stands for the connection and for the consumer's options."""

    def __init__(self, on_subscribe: Callable[[Callable[[Any, Any], None], Attached], None]) -> None:
        self.clients: list[Client] = []
        self.attached = Attached()
        self._on_subscribe = on_subscribe

    def connect(self) -> Client:
        self.clients.append(Client())
        return self.clients[-1]

    def subscribe(self, *_: Any, listener: Callable[[Any, Any], None], **__: Any) -> Attached:
        self._on_subscribe(listener, self.attached)
        return self.attached


def make(pulsar: Pulsar) -> tuple[SegmentConsumer, Arrivals[Received], BlockingCalls]:
    """A consumer that may keep one message waiting here."""
    arrivals: Arrivals[Received] = Arrivals(asyncio.get_running_loop(), lambda: None)
    threads = BlockingCalls()
    options: Any = pulsar
    consumer = SegmentConsumer(
        Attach(SEGMENT, 2, False),
        "s",
        "persistent://t/n/x-s-DLQ",
        connection=options,
        options=options,
        schema=None,
        threads=threads,
        arrivals=arrivals,
    )
    return consumer, arrivals, threads


async def test_a_message_taken_before_attaching_has_returned_resumes_the_listener() -> None:
    """pulsar-client calls the listener while `subscribe` is still on its way back."""
    delivered, proceed = threading.Event(), threading.Event()

    def deliver(listener: Callable[[Any, Any], None], attached: Attached) -> None:
        listener(attached, "message")
        delivered.set()
        assert proceed.wait(TIMEOUT_SECONDS)

    pulsar = Pulsar(deliver)
    consumer, arrivals, threads = make(pulsar)
    attaching = asyncio.create_task(consumer.attach())
    assert await asyncio.to_thread(delivered.wait, TIMEOUT_SECONDS)
    assert not pulsar.attached.is_running
    arrivals.items.popleft()
    consumer.taken()
    assert pulsar.attached.is_running
    proceed.set()
    await attaching
    await consumer.close()
    threads.close()


async def test_closing_while_attaching_leaves_nothing_attached() -> None:
    """The thread that attaches cannot be stopped; whatever it made is closed, and it makes nothing afterwards."""
    under_way, proceed = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        under_way.set()
        assert proceed.wait(TIMEOUT_SECONDS)

    pulsar = Pulsar(wait)
    consumer, _, threads = make(pulsar)
    consumer.keep_attaching()
    assert await asyncio.to_thread(under_way.wait, TIMEOUT_SECONDS)
    await consumer.close()
    proceed.set()
    assert [client.closed for client in pulsar.clients] == [1]
    await consumer.attach()
    assert len(pulsar.clients) == 1
    threads.close()


async def test_nothing_is_made_after_closing() -> None:
    """The thread may come to it only then; nobody would close what it makes."""
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar)
    await consumer.close()
    await consumer.attach()
    assert pulsar.clients == []
    threads.close()
