"""A process of its own: one consumer, which can be killed, and a log of all it received and acknowledged.

SIGTERM has it leave properly. See `tests.support.consumption` for the log.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pulsar

from scalable_topics.sdk import (
    CheckpointConsumer,
    Client,
    ConnectError,
    GatewayOptions,
    Part,
    QueueConsumer,
    ReceivedMessage,
    StreamConsumer,
    StreamMessage,
)
from tests.support.consumption import Kind, acknowledged_line, committed_line, received_line

C = TypeVar("C")
_AGAIN_SECONDS = 1.0
_AT_ONCE = 50
_WAIT_SECONDS = 0.5
_COMMIT_SECONDS = 1.0
_EARLIEST = pulsar.InitialPosition.Earliest


class _Log:
    """Writes at once: nothing is acknowledged that is not on record."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def received(self, messages: Sequence[ReceivedMessage]) -> None:
        """Messages have come."""
        for message in messages:
            where = message.message_id
            place = (where.ledger_id, where.entry_id, where.batch_index)
            self._file.write(received_line(message.data, _part(message), place))
        self._file.flush()

    def write(self, line: str) -> None:
        """Anything else."""
        self._file.write(line)
        self._file.flush()


def _part(message: ReceivedMessage) -> Part:
    return message.part if isinstance(message, StreamMessage) else Part(message.segment_id)


async def _consume_messages(
    consumer: StreamConsumer | QueueConsumer,
    acknowledge: Callable[[Sequence[Any]], Awaitable[None]],
    log: _Log,
    stopping: asyncio.Event,
    handling_ms: float,
) -> None:
    while not stopping.is_set():
        try:
            messages = await consumer.receive_many(_AT_ONCE, _WAIT_SECONDS)
        except TimeoutError:
            continue
        log.received(messages)
        if handling_ms:
            await asyncio.sleep(handling_ms * len(messages) / 1000)
        log.write(acknowledged_line(len(messages)))
        await acknowledge(messages)


async def _consume_checkpoints(consumer: CheckpointConsumer, log: _Log, stopping: asyncio.Event) -> None:
    committed_at = time.monotonic()
    while not stopping.is_set():
        with suppress(TimeoutError):
            log.received(await consumer.receive_many(_AT_ONCE, _WAIT_SECONDS))
        if time.monotonic() - committed_at >= _COMMIT_SECONDS:
            await _commit(consumer, log)
            committed_at = time.monotonic()
    await _commit(consumer, log)


async def _commit(consumer: CheckpointConsumer, log: _Log) -> None:
    checkpoint = consumer.checkpoint()
    log.write(committed_line(checkpoint.positions))
    await consumer.commit(checkpoint)


async def _consume(
    kind: Kind, client: Client, topic: str, subscription: str, name: str, log: _Log, handling_ms: float
) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    options = {"consumer_name": name, "initial_position": _EARLIEST}
    match kind:
        case Kind.STREAM:
            made = await _made(lambda: client.stream_consumer(topic, subscription, **options), stopping)
            await _consume_messages(made, lambda got: made.acknowledge_cumulative(got[-1]), log, stopping, handling_ms)
        case Kind.QUEUE:
            shared = await _made(lambda: client.queue_consumer(topic, subscription, **options), stopping)
            await _consume_messages(shared, shared.acknowledge_many, log, stopping, handling_ms)
        case Kind.CHECKPOINT:
            kept = await _made(lambda: client.checkpoint_consumer(topic, subscription, **options), stopping)
            await _consume_checkpoints(kept, log, stopping)


async def _made(make: Callable[[], Awaitable[C]], stopping: asyncio.Event) -> C:
    """Try as often as it takes: it may begin while a broker is dead, as a pod would be started again until it can."""
    while not stopping.is_set():
        try:
            return await make()
        except ConnectError:
            await asyncio.sleep(_AGAIN_SECONDS)
    sys.exit(0)


async def run(arguments: list[str]) -> None:
    """Consume until told to end."""
    kind, service_url, token_file, gateway_url, gateway_token_file, topic, subscription, name, *others = arguments
    log_file, handling_ms = others
    token = await asyncio.to_thread(Path(token_file).read_text)
    gateway = GatewayOptions(gateway_url, token_file=gateway_token_file)
    file = await asyncio.to_thread(open, log_file, "a")
    with file:
        async with Client(service_url, pulsar.AuthenticationToken(token), gateway=gateway) as client:
            await _consume(Kind(kind), client, topic, subscription, name, _Log(file), float(handling_ms))


def main(arguments: list[str], output: Path) -> None:
    """What the process does.

    Args:
        arguments: kind of the consumer, service URL, token file, gateway's URL and token file, topic, subscription,
            name of the consumer, log file, and how many milliseconds it takes for each message before acknowledging it.
        output: file for whatever it says.
    """
    with output.open("wb") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    asyncio.run(run(arguments))
