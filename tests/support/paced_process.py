"""Runs as a process: a producer of the client library that sends one message after the other, and a queue consumer.

`paced_process.py SERVICE_URL TOKEN_FILE TOPIC SUBSCRIPTION PER_SECOND SIZE_BYTES KEYS`. It says `ready`, sends until
its input is closed, waits for what was stored to come back, and prints one JSON object: `sends`, when each message was
handed over and how long it took, in seconds of the monotonic clock; `lost`, those stored and not received; `repeated`.
`dev/v5/KeyedSender.java` does the same with Pulsar's V5 client.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pulsar

from scalable_topics.sdk import Client, Producer, QueueConsumer
from tests.support.guarantee_checker import Numbered

_ROOT = Path(__file__).parents[2]
_AT_ONCE = 50
_START_SECONDS = 60.0
_DRAIN_SECONDS = 60.0
_END_SECONDS = 90.0
_LONGEST_LINE_BYTES = 64 * 1024 * 1024


class PacedProcess:
    """One such process; made by `started`."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def stop(self) -> dict[str, Any]:
        """Have it end; answers what it has to say."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        async with asyncio.timeout(_END_SECONDS):
            found: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return found


@asynccontextmanager
async def started(*arguments: object) -> AsyncIterator[PacedProcess]:
    """Start a process with these arguments; it sends already, and ends with the block at the latest."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.paced_process", *map(str, arguments)),
        stdin=PIPE,
        stdout=PIPE,
        limit=_LONGEST_LINE_BYTES,
        cwd=_ROOT,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline()
        assert line == b"ready\n", f"the process says {line!r}"
        yield PacedProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _receive(consumer: QueueConsumer, received: Counter[Numbered]) -> None:
    while True:
        messages = await consumer.receive_many(_AT_ONCE)
        received.update(Numbered.parse(message.data) for message in messages)
        await consumer.acknowledge_many(messages)


async def _send(
    producer: Producer, keys: int, per_second: float, size_bytes: int, stopping: asyncio.Event
) -> tuple[list[Numbered], list[tuple[float, float]]]:
    sent: list[Numbered] = []
    sends: list[tuple[float, float]] = []
    began = time.monotonic()
    while not stopping.is_set():
        await asyncio.sleep(max(0.0, began + len(sent) / per_second - time.monotonic()))
        message = Numbered("paced", f"key-{len(sent) % keys}", len(sent) // keys)
        called = time.monotonic()
        await producer.send(message.payload(size_bytes), key=message.key)
        sends.append((called, time.monotonic() - called))
        sent.append(message)
    return sent, sends


async def _run(service_url: str, token_file: str, topic: str, subscription: str, *numbers: str) -> None:
    per_second, size_bytes, keys = float(numbers[0]), int(numbers[1]), int(numbers[2])
    token = await asyncio.to_thread(Path(token_file).read_text)
    received: Counter[Numbered] = Counter()
    stopping = asyncio.Event()
    async with Client(service_url, pulsar.AuthenticationToken(token)) as client:
        consumer = await client.queue_consumer(topic, subscription, initial_position=pulsar.InitialPosition.Earliest)
        receiving = asyncio.create_task(_receive(consumer, received))
        producer = await client.producer(topic, batching_enabled=False)
        sending = asyncio.create_task(_send(producer, keys, per_second, size_bytes, stopping))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        stopping.set()
        sent, sends = await sending
        deadline = time.monotonic() + _DRAIN_SECONDS
        while any(message not in received for message in sent) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        receiving.cancel()
    lost = sum(message not in received for message in sent)
    repeated = sum(times > 1 for times in received.values())
    print(json.dumps({"sends": sends, "lost": lost, "repeated": repeated}), flush=True)


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))
