"""Traffic through layout changes, and whether the guarantees held: for tests of every issue that moves segments.

Producers send numbered messages without pause, queue consumers acknowledge them one by one, and a seeded plan of
changes runs meanwhile through a callback, whoever carries them out. Afterwards every segment is read back without the
library.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulsar

from scalable_topics.layout import HashRange
from scalable_topics.sdk import Client, OutgoingMessage, Producer, QueueConsumer
from tests.support.guarantee_checker import Findings, Latencies, Numbered, by_segment, check, near_changes
from tests.support.guarantee_plan import PlannedChange
from tests.support.stored_messages import payloads_on

Change = Callable[[PlannedChange], Awaitable[None]]
Segments = Callable[[], Awaitable[Mapping[int, tuple[str, HashRange]]]]

_BURST_SECONDS = 0.02
_AFTER_CHANGE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """How much traffic.

    Args:
        producers: how many; each numbers its messages by key.
        consumers: how many share the subscription.
        keys: how many keys take turns, the same for all producers.
        messages_per_second: of each producer.
        payload_bytes: of each message.
        subscription: its name.
        producer_options: settings of `ProducerOptions`, by name.
        drain_seconds: how long consumers may take afterwards.
    """

    producers: int = 3
    consumers: int = 2
    keys: int = 20
    messages_per_second: int = 500
    payload_bytes: int = 100
    subscription: str = "guarantee"
    producer_options: Mapping[str, Any] = field(default_factory=dict)
    drain_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came out.

    Args:
        seed: repeats the plan of changes.
        findings: what is wrong.
        failures: errors of sends that were not reported as stored.
        sent: how many messages were handed over.
        acknowledged: how many were reported as stored.
        deliveries: how many messages consumers got, repeated ones included.
        changes: what was done, with when it began and ended.
        near_changes: latencies of sends during changes and right after.
        quiet: latencies of all others.
    """

    seed: int
    findings: Findings
    failures: Sequence[Exception]
    sent: int
    acknowledged: int
    deliveries: int
    changes: Sequence[tuple[PlannedChange, float, float]]
    near_changes: Latencies
    quiet: Latencies

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.sent} sent, {self.acknowledged} acknowledged, {len(self.failures)} failed "
            f"{self.failures[:3]}, {self.deliveries} deliveries, {len(self.changes)} changes; {self.findings}\n"
            f"  near changes: {self.near_changes}\n  quiet: {self.quiet}"
        )


class _NumberedProducer:
    """Sends at a steady rate, every key in turn."""

    def __init__(self, producer: Producer, load: Load) -> None:
        self._producer = producer
        self._load = load
        self.sends: list[tuple[Numbered, float, OutgoingMessage]] = []
        self.took_seconds: dict[OutgoingMessage, float] = {}

    async def send_until(self, stopping: asyncio.Event) -> None:
        begun_at = time.monotonic()
        while not stopping.is_set():
            due = int((time.monotonic() - begun_at) * self._load.messages_per_second)
            while len(self.sends) < due and not stopping.is_set():
                await self._send(len(self.sends))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _BURST_SECONDS)
        await self._producer.flush()

    async def _send(self, number: int) -> None:
        key = f"key-{number % self._load.keys}"
        message = Numbered(self._producer.name, key, number // self._load.keys)
        called_at = time.monotonic()
        outgoing = await self._producer.submit(message.payload(self._load.payload_bytes), key=key)
        self.sends.append((message, called_at, outgoing))
        outgoing.add_done_callback(lambda done: self.took_seconds.setdefault(done, time.monotonic() - called_at))


class _Receiver:
    """Receives and acknowledges one by one."""

    def __init__(self, consumer: QueueConsumer) -> None:
        self._consumer = consumer
        self.received: list[Numbered] = []

    async def receive_until(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                for message in await self._consumer.receive_many(500, 0.5):
                    self.received.append(Numbered.parse(message.data))
                    await self._consumer.acknowledge(message)


async def run_guarantee(
    client: Client,
    topic: str,
    *,
    seed: int,
    seconds: float,
    plan: Sequence[PlannedChange],
    change: Change,
    segments: Segments,
    service_url: str,
    token: str,
    load: Load | None = None,
) -> Report:
    """Run traffic with changes, and check it.

    Args:
        client: makes the producers and consumers.
        topic: the scalable topic; its subscription exists or is made at the earliest message.
        seed: what `plan` was made from; shown by the report.
        seconds: how long to send, at least; a change that takes longer is waited for.
        plan: the changes, in order of time.
        change: carries one out and returns when it is done.
        segments: every segment there has ever been: full topic name and range by id.
        service_url: to read the segments back.
        token: of a role that may.
        load: how much traffic.
    """
    load = load or Load()
    sending_ends, receiving_ends = asyncio.Event(), asyncio.Event()
    receivers = [_Receiver(await _consumer(client, topic, load)) for _ in range(load.consumers)]
    producers = [_NumberedProducer(await _producer(client, topic, load), load) for _ in range(load.producers)]
    async with asyncio.TaskGroup() as receiving:
        for receiver in receivers:
            receiving.create_task(receiver.receive_until(receiving_ends))
        try:
            async with asyncio.TaskGroup() as sending:
                for producer in producers:
                    sending.create_task(producer.send_until(sending_ends))
                try:
                    done = await _carry_out(plan, change, seconds)
                finally:
                    sending_ends.set()
            acknowledged = [m for p in producers for m, _, out in p.sends if out.exception() is None]
            await _until_received(receivers, acknowledged, load.drain_seconds)
        finally:
            receiving_ends.set()
    there = await segments()
    payloads = await payloads_on(service_url, token, {number: name for number, (name, _) in there.items()})
    stored = {
        number: None if found is None else [Numbered.parse(payload) for payload in found]
        for number, found in payloads.items()
    }
    sends = [(message, at, out, p.took_seconds[out]) for p in producers for message, at, out in p.sends]
    received = [message for receiver in receivers for message in receiver.received]
    near, quiet = near_changes(
        [(at, took) for _, at, _, took in sends], [(begin, end) for _, begin, end in done], _AFTER_CHANGE_SECONDS
    )
    return Report(
        seed=seed,
        findings=check(
            [message for message, *_ in sends],
            acknowledged,
            by_segment(stored, {number: covered for number, (_, covered) in there.items()}),
            received,
        ),
        failures=[error for _, _, out, _ in sends if (error := out.exception()) is not None],
        sent=len(sends),
        acknowledged=len(acknowledged),
        deliveries=len(received),
        changes=done,
        near_changes=near,
        quiet=quiet,
    )


async def _producer(client: Client, topic: str, load: Load) -> Producer:
    return await client.producer(topic, **load.producer_options)


async def _consumer(client: Client, topic: str, load: Load) -> QueueConsumer:
    return await client.queue_consumer(topic, load.subscription, initial_position=pulsar.InitialPosition.Earliest)


async def _carry_out(
    plan: Sequence[PlannedChange], change: Change, seconds: float
) -> list[tuple[PlannedChange, float, float]]:
    begun_at = time.monotonic()
    done = []
    for planned in plan:
        await asyncio.sleep(max(0.0, begun_at + planned.at_seconds - time.monotonic()))
        change_begun_at = time.monotonic()
        await change(planned)
        done.append((planned, change_begun_at, time.monotonic()))
    await asyncio.sleep(max(0.0, begun_at + seconds - time.monotonic()))
    return done


async def _until_received(receivers: Sequence[_Receiver], wanted: Sequence[Numbered], within_seconds: float) -> None:
    """Wait for the consumers; what they still lack afterwards is a finding."""
    missing = set(wanted)
    seen = [0] * len(receivers)
    deadline = time.monotonic() + within_seconds
    while missing and time.monotonic() < deadline:
        for index, receiver in enumerate(receivers):
            missing.difference_update(receiver.received[seen[index] :])
            seen[index] = len(receiver.received)
        await asyncio.sleep(0.05)
