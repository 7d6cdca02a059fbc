"""Count orders by customer, with positions kept beside the counts: `checkpoint_consumer.py pulsar://broker:6650
topic://t/ns/orders http://gateway:8081 state.json`.

Run it again to go on from there. Needs what stream_consumer.py needs.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path

import pulsar

from scalable_topics.sdk import Checkpoint, Client, GatewayOptions


async def main(service_url: str, topic: str, gateway_url: str, state_file: str) -> None:
    """Count until nothing has come for ten seconds."""
    token = os.environ.get("PULSAR_TOKEN")
    authentication = pulsar.AuthenticationToken(token) if token else None
    gateway = GatewayOptions(gateway_url, token_file=os.environ["GATEWAY_TOKEN_FILE"])
    counts, file = await asyncio.to_thread(read_counts, Path(state_file)), Path(state_file)
    async with (
        Client(service_url, authentication, gateway=gateway) as client,
        await client.checkpoint_consumer(
            topic, "counting", initial_position=pulsar.InitialPosition.Earliest
        ) as consumer,
    ):
        while True:
            try:
                messages = await consumer.receive_many(100, timeout_seconds=10)
            except TimeoutError:
                return
            counts.update(str(message.key) for message in messages)
            checkpoint = consumer.checkpoint()
            await asyncio.to_thread(keep, file, counts, checkpoint)
            # Only what is kept is not needed any more.
            await consumer.commit(checkpoint)
            print(*(f"{customer}: {count}" for customer, count in sorted(counts.items())), sep=", ")


def read_counts(file: Path) -> Counter[str]:
    """The counts that were kept, if any."""
    return Counter(json.loads(file.read_text())["counts"] if file.exists() else {})


def keep(file: Path, counts: Counter[str], checkpoint: Checkpoint) -> None:
    """Write both in one step."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"counts": counts, "checkpoint": checkpoint.serialize().decode()}))
    new.replace(file)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
