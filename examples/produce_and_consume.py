"""Send to a scalable topic and receive from it: `produce_and_consume.py pulsar://localhost:6650 topic://t/ns/orders`.

Needs `pip install scalable-topics[client]`; a token is taken from PULSAR_TOKEN if it is set.
"""

import asyncio
import os
import sys

import pulsar

from scalable_topics.sdk import Client


async def main(service_url: str, topic: str) -> None:
    """Send ten orders of three customers, each customer's in order, and receive them."""
    token = os.environ.get("PULSAR_TOKEN")
    authentication = pulsar.AuthenticationToken(token) if token else None
    async with (
        Client(service_url, authentication) as client,
        await client.queue_consumer(topic, "billing", initial_position=pulsar.InitialPosition.Earliest) as consumer,
        await client.producer(topic) as producer,
    ):
        sent = [await producer.submit(b"order %d" % number, key=f"customer-{number % 3}") for number in range(10)]
        for message in sent:
            print("stored at", await message)
        for _ in sent:
            received = await consumer.receive(timeout_seconds=30)
            print(received.key, received.data.decode(), "from segment", received.segment_id)
            await consumer.acknowledge(received)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
