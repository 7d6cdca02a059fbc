"""Runs as a process: a client that uses topics that come and go, each for a moment, for hours.

`visiting_process.py SERVICE_URL TOKEN_FILE`. Each line of its input is a JSON object: `topic`; `send`, how many
messages to send and to receive; or `again`, how many others to receive instead, as after a seek. It makes a producer
and a queue consumer, uses and closes them, and answers with a line: `missing`, how many did not come in time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pulsar

from scalable_topics.sdk import Client, ConnectError

C = TypeVar("C")

VISITORS = "visitors"
"""Name of its subscriptions."""
_WITHIN_SECONDS = 120.0
_AT_ONCE = 200
_AGAIN_SECONDS = 1.0
_WAIT_SECONDS = 1.0
_KEYS = 16


async def _visit(client: Client, topic: str, send: int = 0, again: int = 0) -> dict[str, int]:
    begin = pulsar.InitialPosition.Earliest
    consumer = await _made(lambda: client.queue_consumer(topic, VISITORS, initial_position=begin))
    async with consumer, await _made(lambda: client.producer(topic)) as producer:
        visit = uuid.uuid4().hex
        payloads = [f"{visit}/{number}".encode() for number in range(send)]
        outcomes = [
            await producer.submit(payload, key=f"key-{number % _KEYS}") for number, payload in enumerate(payloads)
        ]
        await producer.flush()
        for outcome in outcomes:
            outcome.result()
        received: set[bytes] = set()
        deadline = time.monotonic() + _WITHIN_SECONDS
        # What earlier visits sent may come again, if a broker has died before it kept their acknowledgements.
        while _lacking(payloads, again, received) and time.monotonic() < deadline:
            with suppress(TimeoutError):
                messages = await consumer.receive_many(_AT_ONCE, _WAIT_SECONDS)
                received.update(message.data for message in messages)
                await consumer.acknowledge_many(messages)
        return {"missing": _lacking(payloads, again, received)}


def _lacking(payloads: Sequence[bytes], again: int, received: set[bytes]) -> int:
    return len(set(payloads) - received) + max(0, again - len(received))


async def _made(make: Callable[[], Awaitable[C]]) -> C:
    """Connecting may have to wait for a broker that has just died."""
    deadline = time.monotonic() + _WITHIN_SECONDS
    while True:
        try:
            return await make()
        except ConnectError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_AGAIN_SECONDS)


async def _run(service_url: str, token_file: str) -> None:
    # pulsar-client says on standard output what goes wrong, amid our answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    token = await asyncio.to_thread(Path(token_file).read_text)
    async with Client(service_url, pulsar.AuthenticationToken(token)) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _visit(client, **json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))
