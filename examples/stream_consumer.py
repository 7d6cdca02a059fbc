"""Read a topic in the order of each key: `stream_consumer.py pulsar://broker:6650 topic://t/ns/orders http://gateway:8081`.

Start it several times to divide the topic's segments. Needs `pip install scalable-topics[client]`, and the operator's
gateway: a token for it is in the file GATEWAY_TOKEN_FILE. One for Pulsar is taken from PULSAR_TOKEN if it is set.
"""

import asyncio
import os
import sys

import pulsar

from scalable_topics.sdk import Client, GatewayOptions


async def main(service_url: str, topic: str, gateway_url: str) -> None:
    """Receive until nothing has come for ten seconds."""
    token = os.environ.get("PULSAR_TOKEN")
    authentication = pulsar.AuthenticationToken(token) if token else None
    gateway = GatewayOptions(gateway_url, token_file=os.environ["GATEWAY_TOKEN_FILE"])
    async with (
        Client(service_url, authentication, gateway=gateway) as client,
        await client.stream_consumer(
            topic,
            "billing",
            initial_position=pulsar.InitialPosition.Earliest,
            assignment_listener=lambda segment_ids: print("reading segments", *segment_ids),
        ) as consumer,
    ):
        while True:
            try:
                messages = await consumer.receive_many(100, timeout_seconds=10)
            except TimeoutError:
                return
            for message in messages:
                print(message.key, message.data.decode(), "from segment", message.segment_id)
            # Everything received so far, on whatever segments.
            await consumer.acknowledge_cumulative(messages[-1])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
