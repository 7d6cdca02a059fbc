"""What a producer stores can be shared by readers of entry buckets, as brokers deal it out (pip-486)."""

from __future__ import annotations

import asyncio
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import HashRange, bucket_hash, bucket_of, equal_splits, key_hash, ranges_of
from scalable_topics.sdk import Client, MessageId
from tests.integration.sdk.conftest import MakeLeader
from tests.support.pulsar_client import PulsarClient

BUCKETS = 4
MESSAGES = 400
TIMEOUT_MS = 10_000
# With keys of both kinds, and ordering keys that take their place.
FIELDS: Sequence[dict[str, Any]] = (
    {"key": "k{}"},
    {"key": "other", "ordering_key": "o{}"},
    {"ordering_key": "only{}"},
    {"key": b"\xff{}"},
)


def fields_of(number: int) -> dict[str, Any]:
    """The keys of a message."""
    text = str(number % 50)
    return {
        name: value.replace(b"{}", text.encode()) if isinstance(value, bytes) else value.replace("{}", text)
        for name, value in FIELDS[number % len(FIELDS)].items()
    }


def bucket_of_message(number: int) -> int:
    """The entry bucket of a message."""
    fields = fields_of(number)
    key = fields.get("ordering_key") or fields["key"]
    return bucket_of(equal_splits(BUCKETS), bucket_hash(key_hash(key)))


@asynccontextmanager
async def owners(pulsar: PulsarAccess, topic: str, **settings: Any) -> AsyncIterator[list[Any]]:
    """One consumer a bucket, as a shared segment is read."""
    with PulsarClient(pulsar.service_url, pulsar.superuser_token) as plain:
        yield [
            await plain.consumer(
                topic,
                "shared",
                consumer_type=pulsar_client.ConsumerType.KeyShared,
                key_shared_policy=_sticky(owned),
                initial_position=pulsar_client.InitialPosition.Earliest,
                **settings,
            )
            for owned in ranges_of(equal_splits(BUCKETS))
        ]


def _sticky(owned: HashRange) -> Any:
    return pulsar_client.ConsumerKeySharedPolicy(
        key_shared_mode=pulsar_client.KeySharedMode.Sticky, sticky_ranges=[(owned.start, owned.end)]
    )


async def received(consumers: Sequence[Any]) -> dict[int, list[int]]:
    """Everything that the owner of each bucket gets, in its order."""
    found: dict[int, list[int]] = defaultdict(list)

    def read(bucket: int, count: int) -> None:
        for _ in range(count):
            message = consumers[bucket].receive(timeout_millis=TIMEOUT_MS)
            found[bucket].append(int(message.data()))
            consumers[bucket].acknowledge(message)

    counts = [sum(bucket_of_message(number) == bucket for number in range(MESSAGES)) for bucket in range(BUCKETS)]
    # All at once: a broker stops reading ahead while one consumer's queue is full.
    await asyncio.gather(*(asyncio.to_thread(read, bucket, count) for bucket, count in enumerate(counts)))
    return found


async def send_all(client: Client, topic: str, **options: Any) -> list[MessageId]:
    """Send every message; answers their places."""
    async with await client.producer(topic, batching_max_publish_delay_ms=50, **options) as producer:
        sent = [await producer.submit(b"%d" % number, **fields_of(number)) for number in range(MESSAGES)]
        await producer.flush()
        told = producer.batches
    places = [message.result() for message in sent]
    assert sum(one.messages for one in told) == MESSAGES
    assert sum(one.entries for one in told) == len({(place.ledger_id, place.entry_id) for place in places})
    return places


async def test_brokers_give_every_entry_to_the_owner_of_its_bucket(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    leader = await lead(segments=1, bucket_budget=BUCKETS)
    async with owners(pulsar, leader.segment_topic(0)) as consumers:
        places = await send_all(client, str(leader.topic))
        found = await received(consumers)
    assert len({(place.ledger_id, place.entry_id) for place in places}) < MESSAGES / 4, "they were batched"
    for bucket in range(BUCKETS):
        assert found[bucket] == [number for number in range(MESSAGES) if bucket_of_message(number) == bucket]


async def test_one_bucket_costs_no_entry(lead: MakeLeader, client: Client) -> None:
    """Peer case "also for one bucket": the same batches as with any producer, through one producer a segment."""
    leader = await lead(segments=1, bucket_budget=1)
    async with await client.producer(str(leader.topic), batching_max_publish_delay_ms=1000) as producer:
        sent = [await producer.submit(b"x", key=f"k{number}") for number in range(MESSAGES)]
        await producer.flush()
        (told,) = producer.batches
    assert all(message.exception() is None for message in sent)
    assert (told.bucket, told.messages) == (0, MESSAGES)
    assert told.mean_messages > MESSAGES / 10


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A public and a private key."""
    folder = tmp_path_factory.mktemp("keys")
    public, private = folder / "public.pem", folder / "private.pem"
    for command in (
        ["openssl", "genrsa", "-out", str(private), "2048"],
        ["openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public)],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return public, private


async def test_encrypted_messages_are_entries_of_their_own_and_are_dealt_out_alike(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess, keys: tuple[Path, Path]
) -> None:
    leader = await lead(segments=1, bucket_budget=BUCKETS)
    reader = pulsar_client.CryptoKeyReader(str(keys[0]), str(keys[1]))
    async with owners(pulsar, leader.segment_topic(0), crypto_key_reader=reader) as consumers:
        places = await send_all(client, str(leader.topic), encryption_key="of-the-test", crypto_key_reader=reader)
        found = await received(consumers)
    assert {place.batch_index for place in places} == {-1}
    for bucket in range(BUCKETS):
        assert found[bucket] == [number for number in range(MESSAGES) if bucket_of_message(number) == bucket]
