"""What a message carries arrives, whatever client reads it."""

from __future__ import annotations

import base64
import time
from datetime import timedelta
from typing import Any

import pulsar as pulsar_client
import pytest
from pulsar.schema import JsonSchema, Record, String

from dev.access import PulsarAccess
from scalable_topics.layout import key_hash, segment_hash
from scalable_topics.sdk import Client, MessageId, Producer, QueueConsumer, ReceivedMessage, SendError
from tests.integration.sdk.conftest import MakeLeader
from tests.support.scripted_leader import ScriptedLeader
from tests.support.stored_messages import stored_on

TIMEOUT_SECONDS = 20
EARLIEST = pulsar_client.InitialPosition.Earliest


class Order(Record):  # type: ignore[misc]
    item = String()


async def exchange(client: Client, leader: ScriptedLeader, value: Any, **message: Any) -> ReceivedMessage:
    """Send one message and receive it."""
    async with (
        await client.queue_consumer(str(leader.topic), "s", initial_position=EARLIEST) as consumer,
        await client.producer(str(leader.topic)) as producer,
    ):
        stored = await producer.send(value, **message)
        received = await consumer.receive(TIMEOUT_SECONDS)
        assert received.message_id == stored
        await consumer.acknowledge(received)
        return received


async def test_properties_and_event_time_pass_through(lead: MakeLeader, client: Client) -> None:
    received = await exchange(
        client, await lead(), b"payload", key="k", properties={"a": "1", "ä": "ö"}, event_timestamp_ms=1_700_000_000_000
    )
    assert (received.data, received.key) == (b"payload", "k")
    assert received.properties == {"a": "1", "ä": "ö"}
    assert received.event_timestamp_ms == 1_700_000_000_000
    assert received.redelivery_count == 0


@pytest.mark.parametrize("key", ["text", "", b"bytes", b"\x00\xff", b""])
async def test_R23_keys_decide_the_segment_by_their_own_bytes(
    lead: MakeLeader, client: Client, key: str | bytes
) -> None:
    leader = await lead(segments=4, bucket_budget=4)
    received = await exchange(client, leader, b"x", key=key)
    assert received.segment_id == leader.layout.find_active(segment_hash(key_hash(key))).segment_id
    assert received.key == (key if key != "" else None), "pulsar-client does not tell an empty key from none"
    assert received.ordering_key is None
    assert received.properties == {}


async def test_R23_a_bytes_key_is_hashed_alike_by_key_shared_brokers(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    """Brokers hash the ordering key before the key; without Pulsar's flag they would hash the base64 text."""
    key = b"\x00\xff"
    raw = (await exchange(client, await lead(), b"x", key=key)).raw
    assert raw.partition_key() == base64.b64encode(key).decode()


@pytest.mark.parametrize("ordering_key", ["text", b"\xff\xfe"])
async def test_R23_the_ordering_key_takes_the_keys_place(
    lead: MakeLeader, client: Client, ordering_key: str | bytes
) -> None:
    leader = await lead(segments=4, bucket_budget=4)
    received = await exchange(client, leader, b"x", key="other", ordering_key=ordering_key)
    assert received.segment_id == leader.layout.find_active(segment_hash(key_hash(ordering_key))).segment_id
    assert (received.key, received.ordering_key) == ("other", ordering_key)


async def test_keyless_messages_go_round_robin(lead: MakeLeader, client: Client) -> None:
    leader = await lead(segments=4, bucket_budget=4)
    async with await client.producer(str(leader.topic)) as producer:
        sent = [await producer.submit(b"%d" % number) for number in range(8)]
        assert sorted([(await message).segment_id for message in sent]) == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_R23_keyless_messages_never_share_an_entry_with_keyed_ones(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    leader = await lead()
    async with await client.producer(str(leader.topic), batching_max_publish_delay_ms=200) as producer:
        sent = [(n, await producer.submit(b"%d" % n, key="k" if n % 2 else None)) for n in range(20)]
        entries: dict[tuple[int, int], set[bool]] = {}
        for number, message in sent:
            place = await message
            entries.setdefault((place.ledger_id, place.entry_id), set()).add(bool(number % 2))
    assert len(entries) < 20, "they were batched"
    assert all(len(kinds) == 1 for kinds in entries.values())


async def test_batches_never_mix_entry_buckets(lead: MakeLeader, client: Client) -> None:
    """pip-486: an entry belongs to one bucket, so that one consumer can own it."""
    leader = await lead(segments=1, bucket_budget=4)
    async with await client.producer(str(leader.topic), batching_max_publish_delay_ms=200) as producer:
        sent = [(f"k{n}", await producer.submit(b"x", key=f"k{n}")) for n in range(40)]
        entries: dict[tuple[int, int], set[int]] = {}
        for key, message in sent:
            place = await message
            entries.setdefault((place.ledger_id, place.entry_id), set()).add((key_hash(key) & 0xFFFF) // 0x4000)
    assert len(entries) < 40, "they were batched"
    assert all(len(buckets) == 1 for buckets in entries.values())


async def test_batching_off_stays_off(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    async with await client.producer(str(leader.topic), batching_enabled=False) as producer:
        sent = [await producer.submit(b"x", key="k") for _ in range(20)]
        assert [(await message).batch_index for message in sent] == [-1] * 20


@pytest.mark.parametrize("how", ["at", "after"])
async def test_delayed_messages_are_delivered_later(lead: MakeLeader, client: Client, how: str) -> None:
    """Brokers look once a second (`delayedDeliveryTickTimeMillis`) and may deliver that much too early."""
    leader = await lead()
    when = (
        {"deliver_at_ms": int(time.time() * 1000) + 2500} if how == "at" else {"deliver_after": timedelta(seconds=2.5)}
    )
    started = time.monotonic()
    await exchange(client, leader, b"x", key="k", **when)
    assert time.monotonic() - started > 1.3


async def test_delayed_messages_do_not_overtake_their_key(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    """pulsar-client sends them past its batch, which with deduplication even loses the batch."""
    leader = await lead()
    await leader.deduplicate()
    async with await client.producer(str(leader.topic), batching_max_publish_delay_ms=100) as producer:
        for number in range(40):
            delay = timedelta(milliseconds=1) if number % 4 == 3 else None
            await producer.submit(b"%d" % number, key="k", deliver_after=delay)
    stored = await stored_on(pulsar.service_url, pulsar.superuser_token, [leader.segment_topic(0)])
    assert [message.number for message in stored] == list(range(40))


async def test_null_values_pass_through(lead: MakeLeader, client: Client) -> None:
    received = await exchange(client, await lead(), None, key="k")
    assert received.data == b""
    assert received.raw.has_null_value()


async def test_R28_schemas_pass_through(lead: MakeLeader, client: Client) -> None:
    leader = await lead(segments=2)
    schema = JsonSchema(Order)
    async with (
        await client.queue_consumer(str(leader.topic), "s", schema=schema, initial_position=EARLIEST) as consumer,
        await client.producer(str(leader.topic), schema=schema) as producer,
    ):
        await leader.split(0)
        for number in range(4):
            await producer.send(Order(item=f"tea {number}"), key=f"k{number}")
        received = [await consumer.receive(TIMEOUT_SECONDS) for _ in range(4)]
        assert sorted(message.value.item for message in received) == [f"tea {number}" for number in range(4)]


@pytest.mark.parametrize("compression", ["LZ4", "ZLib", "ZSTD", "SNAPPY"])
async def test_compression_passes_through(lead: MakeLeader, client: Client, compression: str) -> None:
    leader = await lead()
    kind = getattr(pulsar_client.CompressionType, compression)
    async with (
        await client.queue_consumer(str(leader.topic), "s", initial_position=EARLIEST) as consumer,
        await client.producer(str(leader.topic), compression_type=kind) as producer,
    ):
        await producer.send(b"a" * 10_000, key="k")
        assert (await consumer.receive(TIMEOUT_SECONDS)).data == b"a" * 10_000


async def test_a_message_that_is_too_big_is_refused_and_the_next_goes_through(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    async with await client.producer(str(leader.topic)) as producer:
        too_big = await producer.submit(b"x" * (6 * 1024 * 1024), key="k")
        fits = await producer.submit(b"y", key="k")
        with pytest.raises(SendError, match="MessageTooBig"):
            await too_big
        assert (await fits).segment_id == 0


@pytest.mark.parametrize(
    "message",
    [
        {"value": "text"},
        {"value": b"x", "key": 7},
        {"value": b"x", "ordering_key": 7},
        {"value": b"x", "properties": {"a": 1}},
        {"value": b"x", "event_timestamp_ms": -1},
        {"value": b"x", "deliver_at_ms": "soon"},
    ],
)
async def test_mistakes_are_the_callers(lead: MakeLeader, client: Client, message: dict[str, Any]) -> None:
    """They are raised at once and hold nothing up."""
    leader = await lead()
    async with await client.producer(str(leader.topic)) as producer:
        with pytest.raises(TypeError):
            await producer.send(message.pop("value"), **message)
        assert producer.pending_messages == 0
        await producer.send(b"x", key="k")


async def test_message_ids_name_their_segment_and_survive_storing(lead: MakeLeader, client: Client) -> None:
    leader = await lead(segments=2)
    async with await client.producer(str(leader.topic)) as producer:
        ids = [await producer.send(b"x", key=f"k{number}") for number in range(6)]
    assert {message_id.segment_id for message_id in ids} == {0, 1}
    assert [MessageId.deserialize(message_id.serialize()) for message_id in ids] == ids
    assert len(set(ids)) == 6


async def test_producers_and_consumers_are_context_managers(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    async with await client.producer(str(leader.topic)) as producer:
        assert isinstance(producer, Producer)
        await producer.send(b"x", key="k")
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        assert isinstance(consumer, QueueConsumer)
    assert await leader.publishers(leader.segment_topic(0)) == []
