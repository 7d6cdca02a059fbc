"""Producers and queue consumers on topics that are not scalable yet, beside plain clients, and migrations (R25)."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import (
    CLIENT_PROPERTY,
    READER_PREFIX,
    key_hash,
    layout_topic_name,
    legacy_topics,
    partition_of,
)
from scalable_topics.sdk import Client, ConnectError, QueueConsumer, ScalableTopicNotFoundError
from tests.integration.sdk.conftest import Connect, Migrate, Ordinary
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_migration import ScriptedMigration
from tests.support.stored_messages import judge, stored_on
from tests.support.waiting import eventually

EARLIEST = pulsar_client.InitialPosition.Earliest
TIMEOUT_SECONDS = 30
SHAPES = (0, 1, 4)
# Whoever misses an announcement is refused, which breaks a connection: segments that share it would need deduplication.
CONNECTIONS = 8


class Receiving:
    """Receives and acknowledges all the time."""

    def __init__(self, consumer: QueueConsumer) -> None:
        self._consumer = consumer
        self.numbers: list[int] = []

    async def __aenter__(self) -> Receiving:
        self._task = asyncio.create_task(self._receive())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, wanted: set[int]) -> None:
        """Wait until all of these have come."""

        async def missing() -> int:
            return len(wanted - set(self.numbers))

        await eventually(missing, lambda count: count == 0, what="everything is received")

    async def _receive(self) -> None:
        while True:
            for message in await self._consumer.receive_many(100):
                self.numbers.append(int(message.data))
                await self._consumer.acknowledge(message)


async def assert_exact(traffic: KeyedTraffic, leader: ScriptedMigration, pulsar: PulsarAccess) -> None:
    """Everything was acknowledged, and is stored once and in order."""
    assert traffic.failures == []
    topics = [leader.segment_topic(segment_id) for segment_id in sorted(leader.layout.segments)]
    stored = await stored_on(pulsar.service_url, pulsar.superuser_token, topics)
    findings = judge(traffic.acknowledged, stored)
    assert not findings, str(findings)
    assert len(stored) == len(traffic.sent)


@pytest.mark.parametrize("partitions", SHAPES)
async def test_R25_beside_plain_clients(
    ordinary: Ordinary, client: Client, pulsar: PulsarAccess, is_created_by_use: bool, partitions: int
) -> None:
    topic = await ordinary(partitions)
    with PulsarClient(pulsar.service_url, pulsar.superuser_token) as plain:
        theirs = await plain.consumer(topic.persistent, "theirs", consumer_type=pulsar_client.ConsumerType.Shared)
        ours = await client.queue_consumer(topic.persistent, "ours", initial_position=EARLIEST)
        producer = await client.producer(f"{topic.tenant}/{topic.namespace}/{topic.local}")
        assert producer.topic == ours.topic == f"topic://{topic.tenant}/{topic.namespace}/{topic.local}"
        for number in range(20):
            key = None if number % 2 else f"k{number}"
            sent = await producer.send(b"%d" % number, key=key)
            if key is not None and partitions:
                assert sent.segment_id == partition_of(key_hash(key), partitions)
        await plain.send(topic.persistent, *map(str, range(20, 30)), key="theirs")
        received = [await ours.receive(TIMEOUT_SECONDS) for _ in range(30)]
        assert sorted(int(message.data) for message in received) == list(range(30))
        assert {message.key for message in received} == {None, "theirs", *(f"k{n}" for n in range(0, 20, 2))}
        seen = [await asyncio.to_thread(theirs.receive, timeout_millis=TIMEOUT_SECONDS * 1000) for _ in range(30)]
        assert sorted(int(message.data()) for message in seen) == list(range(30))


@pytest.mark.parametrize("partitions", [0, 3])
async def test_R25_everything_attached_is_marked(
    ordinary: Ordinary, client: Client, view: PulsarView, partitions: int
) -> None:
    topic = await ordinary(partitions)
    await client.producer(topic.persistent, properties={"mine": "1"})
    await client.queue_consumer(topic.persistent, "queue", properties={"mine": "1"})
    await client.stream_consumer(topic.persistent, "stream", properties={"mine": "1"})
    for name in legacy_topics(topic, partitions):
        stats = await view.stats(name)
        subscriptions = stats["subscriptions"]
        attached = [
            *stats["publishers"],
            *(one for name in ("queue", "stream") for one in subscriptions[name]["consumers"]),
        ]
        assert len(attached) == 3
        for each in attached:
            assert each["metadata"]["mine"] == "1"
            assert each["metadata"][CLIENT_PROPERTY] == version("scalable-topics")
    readers = (await view.stats(layout_topic_name(topic)))["subscriptions"]
    assert readers
    assert all(name.startswith(f"{READER_PREFIX}-") for name in readers)


async def test_a_topic_is_made_by_its_use_where_brokers_do_so(
    client: Client, view: PulsarView, namespace: str, is_created_by_use: bool
) -> None:
    name = f"persistent://{namespace}/new"
    if is_created_by_use:
        producer = await client.producer(name)
        await producer.send(b"1")
        assert await view.exists(name)
        return
    with pytest.raises(ConnectError, match="TopicNotFound"):
        await client.producer(name)
    with pytest.raises(ConnectError, match="TopicNotFound"):
        await client.queue_consumer(name, "s")


async def test_a_scalable_topic_alone_is_meant_by_its_own_form(ordinary: Ordinary, client: Client) -> None:
    topic = await ordinary(0)
    await client.producer(topic.persistent)
    with pytest.raises(ScalableTopicNotFoundError, match="Native"):
        await client.producer(str(topic))


async def test_R25_growth_is_picked_up(
    ordinary: Ordinary, view: PulsarView, connect: Connect, is_created_by_use: bool
) -> None:
    topic = await ordinary(2)
    client = connect(partitions_refresh_seconds=0.5)
    consumer = await client.queue_consumer(topic.persistent, "s", initial_position=EARLIEST)
    producer = await client.producer(topic.persistent)
    async with Receiving(consumer) as receiving:
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(100)
            await view.set_partitions(topic.persistent, 3)

            async def segments() -> set[int]:
                return {message.result().segment_id for _, _, message in traffic.sent if message.done()}

            await eventually(segments, lambda found: found == {0, 1, 2}, what="the third partition is used")
            await traffic.until_stored(100)
        assert traffic.failures == []
        await receiving.until({number for _, number, _ in traffic.sent})
        assert consumer.segment_ids == (0, 1, 2)
        assert len(receiving.numbers) == len(set(receiving.numbers))


@pytest.mark.parametrize("batching", [True, False])
@pytest.mark.parametrize("partitions", SHAPES)
async def test_R25_a_migration_under_traffic(
    ordinary: Ordinary,
    migrate: Migrate,
    connect: Connect,
    pulsar: PulsarAccess,
    is_created_by_use: bool,
    partitions: int,
    batching: bool,
) -> None:
    """Nothing lost, duplicated or out of order, and no call fails. Where brokers make no topics by themselves the
    client hears of it when it looks again, at the latest when a send is refused.
    """
    topic = await ordinary(partitions)
    client = connect(producer_connections=1 if is_created_by_use else CONNECTIONS)
    leader = await migrate(topic, partitions)
    consumer = await client.queue_consumer(topic.persistent, "s", initial_position=EARLIEST)
    producer = await client.producer(topic.persistent, batching_enabled=batching)
    async with Receiving(consumer) as receiving:
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(200)
            await leader.migrate()
            await traffic.until_stored(200)
            await leader.split(max(1, partitions))
            await traffic.until_stored(100)
        await receiving.until({number for _, number, _ in traffic.sent})
        assert len(receiving.numbers) == len(set(receiving.numbers))
    await assert_exact(traffic, leader, pulsar)
    if is_created_by_use:
        assert leader.settled == {}, "a producer that listens has left before the seal"
    assert set(consumer.segment_ids) == set(leader.layout.segments)
    assert producer.topic == str(topic)


@pytest.mark.parametrize("partitions", [0, 4])
async def test_R25_a_migration_called_off_and_tried_again(
    ordinary: Ordinary,
    migrate: Migrate,
    connect: Connect,
    pulsar: PulsarAccess,
    is_created_by_use: bool,
    partitions: int,
) -> None:
    topic = await ordinary(partitions)
    client = connect(producer_connections=1 if is_created_by_use else CONNECTIONS)
    leader = await migrate(topic, partitions)
    producer = await client.producer(topic.persistent)
    async with KeyedTraffic(producer) as traffic:
        await traffic.until_stored(100)
        change = await leader.prepare_migration()
        await leader.publish(change)
        await leader.until_unused(change.planned.parent_ids, within_seconds=2.0)
        await leader.call_off(change)
        await traffic.until_stored(100)
        await leader.migrate()
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)


async def test_R25_a_layout_topic_that_was_made_with_partitions_is_no_obstacle(
    ordinary: Ordinary, migrate: Migrate, connect: Connect, pulsar: PulsarAccess, view: PulsarView, namespace: str
) -> None:
    """Where brokers make topics with partitions by themselves, a client's Reader makes such a one."""
    settings = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}
    await view.call("POST", f"namespaces/{namespace}/autoTopicCreation", settings)
    topic = await ordinary(2)
    client = connect(producer_connections=CONNECTIONS)
    leader = await migrate(topic, 2)
    producer = await client.producer(topic.persistent)
    assert await view.partitions(layout_topic_name(topic)) == 2
    async with KeyedTraffic(producer) as traffic:
        await traffic.until_stored(100)
        await leader.migrate()
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)


async def test_R25_once_scalable_always_scalable(
    ordinary: Ordinary, migrate: Migrate, client: Client, view: PulsarView
) -> None:
    """Whatever becomes of the layout topic."""
    topic = await ordinary(0)
    leader = await migrate(topic, 0)
    async with await client.producer(topic.persistent) as producer:
        await leader.migrate()
        assert (await producer.send(b"1", key="k")).segment_id == 1
        await view.delete_topic(layout_topic_name(topic), force=True)
        assert (await producer.send(b"2", key="k")).segment_id == 1
    with pytest.raises(ScalableTopicNotFoundError):
        await client.producer(topic.persistent)


async def test_R25_a_scalable_topic_is_found_though_its_layout_topic_was_just_loaded_anew(
    ordinary: Ordinary, migrate: Migrate, client: Client, view: PulsarView
) -> None:
    """Its last ledger is empty then."""
    topic = await ordinary(2)
    leader = await migrate(topic, 2)
    await leader.migrate()
    await view.unload_topic(layout_topic_name(topic))
    producer = await client.producer(topic.persistent)
    assert (await producer.send(b"1", key="k")).segment_id in (2, 3)
