"""Runs as a process: one consumer, which can be killed, and a log of all it received and acknowledged.

`consuming_process.py KIND SERVICE_URL TOKEN_FILE GATEWAY_URL GATEWAY_TOKEN_FILE TOPIC SUBSCRIPTION NAME LOG_FILE`, with
KIND `stream` or `queue`. SIGTERM has it leave properly. See `tests.support.consumption` for the log.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TextIO

import pulsar

from scalable_topics.sdk import Client, GatewayOptions
from tests.support.consumption import Kind, acknowledged_line, received_line

_AT_ONCE = 50
_WAIT_SECONDS = 0.5
_EARLIEST = pulsar.InitialPosition.Earliest


async def _consume(kind: Kind, client: Client, topic: str, subscription: str, name: str, log: TextIO) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    if kind is Kind.STREAM:
        stream = await client.stream_consumer(topic, subscription, consumer_name=name, initial_position=_EARLIEST)
        receive_many = stream.receive_many
    else:
        queue = await client.queue_consumer(topic, subscription, initial_position=_EARLIEST)
        receive_many = queue.receive_many  # type: ignore[assignment]
    while not stopping.is_set():
        try:
            messages = await receive_many(_AT_ONCE, _WAIT_SECONDS)
        except TimeoutError:
            continue
        for message in messages:
            log.write(received_line(message.data, message.segment_id))
        # Nothing is acknowledged that is not on record.
        log.flush()
        if kind is Kind.STREAM:
            await stream.acknowledge_cumulative(messages[-1])
        else:
            await queue.acknowledge_many(messages)
        log.write(acknowledged_line(len(messages)))
        log.flush()


async def run(arguments: list[str]) -> None:
    """Consume until told to end."""
    kind, service_url, token_file, gateway_url, gateway_token_file, topic, subscription, name, log_file = arguments
    token = await asyncio.to_thread(Path(token_file).read_text)
    gateway = GatewayOptions(gateway_url, token_file=gateway_token_file)
    log = await asyncio.to_thread(open, log_file, "a")
    with log:
        async with Client(service_url, pulsar.AuthenticationToken(token), gateway=gateway) as client:
            await _consume(Kind(kind), client, topic, subscription, name, log)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1:]))
