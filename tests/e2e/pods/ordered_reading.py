"""Runs in a pod: two stream consumers beside a producer, and the judgement of what they were given.

`ordered_reading.py SERVICE_URL GATEWAY_URL TOPIC SUBSCRIPTION MESSAGES` sends keyed messages at a steady pace, receives
them with both consumers, and prints what it found as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path

import pulsar

from scalable_topics.sdk import Client, GatewayOptions, StreamConsumer

PULSAR_TOKEN, GATEWAY_TOKEN = Path("/var/run/pulsar/token"), Path("/var/run/gateway/token")
STARTED = "started"
PER_SECOND, KEYS = 40.0, 25
_WHOLE_SECONDS = 120.0


async def run(service_url: str, gateway_url: str, topic: str, subscription: str, messages: int) -> None:
    """Send, receive and print what came of it."""
    token = await asyncio.to_thread(PULSAR_TOKEN.read_text)
    gateway = GatewayOptions(gateway_url, token_file=GATEWAY_TOKEN)
    received: defaultdict[str, list[int]] = defaultdict(list)
    by: defaultdict[str, int] = defaultdict(int)
    done = asyncio.Event()

    async def read(consumer: StreamConsumer, name: str) -> None:
        while True:
            message = await consumer.receive()
            received[str(message.key)].append(int(message.data))
            by[name] += 1
            await consumer.acknowledge_cumulative(message)
            if len({number for numbers in received.values() for number in numbers}) == messages:
                done.set()

    async with Client(service_url, pulsar.AuthenticationToken(token), gateway=gateway) as client:
        producer = await client.producer(topic)
        consumers = {
            name: await client.stream_consumer(topic, subscription, consumer_name=name) for name in ("one", "another")
        }
        readers = [asyncio.create_task(read(consumer, name)) for name, consumer in consumers.items()]
        print(STARTED, flush=True)
        for number in range(messages):
            await producer.send(str(number).encode(), key=f"key-{number % KEYS}")
            await asyncio.sleep(1 / PER_SECOND)
        async with asyncio.timeout(_WHOLE_SECONDS):
            await done.wait()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    numbers = [number for key in received for number in received[key]]
    found = {
        "lost": messages - len(set(numbers)),
        "disordered": sum(list(dict.fromkeys(one)) != sorted(set(one)) for one in received.values()),
        "consumers": sum(count > 0 for count in by.values()),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    service_url, gateway_url, topic, subscription, messages = sys.argv[1:]
    asyncio.run(run(service_url, gateway_url, topic, subscription, int(messages)))
