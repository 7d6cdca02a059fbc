"""The examples in `examples/` do what they say."""

from __future__ import annotations

from pathlib import Path

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from tests.integration.sdk.conftest import MakeCoordinator, MakeLeader
from tests.support.examples import run_example


async def test_produce_and_consume(lead: MakeLeader, pulsar: PulsarAccess) -> None:
    leader = await lead(segments=2)
    lines = await run_example(
        "produce_and_consume.py", pulsar.service_url, str(leader.topic), PULSAR_TOKEN=pulsar.superuser_token
    )
    assert sum("stored at MessageId(segment " in line for line in lines) == 10
    assert {line.split(" from ")[0] for line in lines if " from segment " in line} == {
        f"customer-{number % 3} order {number}" for number in range(10)
    }
    stored = [await leader.messages_in(leader.segment_topic(segment_id)) for segment_id in (0, 1)]
    assert sum(stored) == 10


async def test_stream_consumer(
    lead: MakeLeader, coordinate: MakeCoordinator, client: Client, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    leader = await lead(segments=2)
    coordinator = await coordinate(leader)
    async with await client.producer(str(leader.topic)) as producer:
        for number in range(30):
            await producer.submit(b"order %d" % number, key=f"customer-{number % 3}")
    (tmp_path / "token").write_text("of-the-application")
    lines = await run_example(
        "stream_consumer.py",
        pulsar.service_url,
        str(leader.topic),
        coordinator.url,
        PULSAR_TOKEN=pulsar.superuser_token,
        GATEWAY_TOKEN_FILE=str(tmp_path / "token"),
    )
    assert "reading segments 0 1" in lines
    for customer in range(3):
        found = [line.split(" from ")[0] for line in lines if line.startswith(f"customer-{customer} ")]
        assert found == [f"customer-{customer} order {number}" for number in range(customer, 30, 3)]
