"""Stream consumers on topics that are not scalable yet, beside plain clients, and their migration (R25)."""

from __future__ import annotations

import asyncio

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import TopicName, legacy_topics
from scalable_topics.sdk import ClientError, ConnectError, StreamConsumer, sync
from tests.integration.sdk.conftest import Connect, MakeCoordinator, Migrate, Ordinary
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.ordered_reading import OrderedReading
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_migration import ScriptedMigration
from tests.support.waiting import eventually

EARLIEST = pulsar_client.InitialPosition.Earliest
FAILOVER = pulsar_client.ConsumerType.Failover
TIMEOUT_SECONDS = 30
SHAPES = (0, 1, 4)


async def until_acknowledged(view: PulsarView, topics: tuple[str, ...], subscription: str) -> None:
    """Wait until brokers know that everything is acknowledged."""

    async def backlog() -> int:
        stats = [await view.stats(topic) for topic in topics]
        return sum(found["subscriptions"][subscription]["msgBacklog"] for found in stats)

    await eventually(backlog, lambda count: count == 0, what="everything is acknowledged")


def topics_of(leader: ScriptedMigration) -> tuple[str, ...]:
    """Topics of all segments."""
    return tuple(leader.segment_topic(segment_id) for segment_id in leader.layout.segments)


async def until_reading(*consumers: StreamConsumer, holds: set[int]) -> None:
    """Wait until consumers read exactly these segments together."""

    async def ids() -> set[int]:
        return {segment_id for consumer in consumers for segment_id in consumer.segment_ids}

    await eventually(ids, lambda found: found == holds, what=f"segments {holds} are read")


@pytest.mark.parametrize("partitions", SHAPES)
async def test_R25_beside_plain_clients(
    ordinary: Ordinary,
    connect: Connect,
    pulsar: PulsarAccess,
    view: PulsarView,
    is_created_by_use: bool,
    partitions: int,
) -> None:
    """Without a gateway; what one consumer had and did not acknowledge comes to the next, a plain one."""
    topic = await ordinary(partitions)
    client = connect()
    # From here on: what is sent as soon as it is there, it gets.
    ours = await client.stream_consumer(topic.persistent, "s")
    with PulsarClient(pulsar.service_url, pulsar.superuser_token) as plain:
        # A plain consumer cannot acknowledge the rest of a batch.
        async with await client.producer(topic.persistent, batching_enabled=False) as producer:
            for number in range(40):
                await producer.submit(b"%d" % number, key=f"k{number % 8}")
        await plain.send(topic.persistent, *map(str, range(40, 50)), key="theirs")
        got = [await ours.receive(TIMEOUT_SECONDS) for _ in range(50)]
        assert sorted(int(message.data) for message in got) == list(range(50))
        for key in [*(f"k{number}" for number in range(8)), "theirs"]:
            numbers = [int(message.data) for message in got if message.key == key]
            assert numbers == sorted(numbers)
        await ours.acknowledge_cumulative(got[29])
        theirs = await plain.consumer(topic.persistent, "s", consumer_type=FAILOVER)
        await ours.close()
        left = [await asyncio.to_thread(theirs.receive, timeout_millis=TIMEOUT_SECONDS * 1000) for _ in range(20)]
        assert {int(message.data()) for message in left} == {int(message.data) for message in got[30:]}
        for message in left:
            await asyncio.to_thread(theirs.acknowledge, message)
        await until_acknowledged(view, legacy_topics(topic, partitions), "s")


async def test_R25_growth_is_picked_up(ordinary: Ordinary, connect: Connect, view: PulsarView) -> None:
    topic = await ordinary(2)
    client = connect(partitions_refresh_seconds=0.5)
    consumer = await client.stream_consumer(topic.persistent, "s")
    assert consumer.segment_ids == (0, 1)
    await view.set_partitions(topic.persistent, 3)
    async with await client.producer(topic.persistent) as producer, OrderedReading(consumer) as reading:
        async with KeyedTraffic(producer) as traffic:
            await until_reading(consumer, holds={0, 1, 2})
            await traffic.until_stored(100)
        await reading.until(len(traffic.sent))
        assert sorted(number for _, number, _, _ in reading.received) == [number for _, number, _ in traffic.sent]


@pytest.mark.parametrize("partitions", SHAPES)
async def test_R25_a_migration_under_traffic(
    ordinary: Ordinary,
    migrate: Migrate,
    coordinate: MakeCoordinator,
    connect: Connect,
    view: PulsarView,
    is_created_by_use: bool,
    partitions: int,
) -> None:
    """Two consumers go over to the leader independently: lost 0, duplicated 0, disorder 0."""
    topic = await ordinary(partitions)
    leader = await migrate(topic, partitions)
    coordinator = await coordinate(leader)
    # Whoever misses an announcement is refused, which breaks a connection that others should not share then.
    connections = 1 if is_created_by_use else 8
    clients = [connect(coordinator, producer_connections=connections) for _ in range(2)]
    consumers = [await client.stream_consumer(topic.persistent, "s", initial_position=EARLIEST) for client in clients]
    producer = await clients[0].producer(topic.persistent)
    async with OrderedReading(*consumers) as reading:
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(200)
            await leader.migrate()
            await traffic.until_stored(200)
            await leader.split(max(1, partitions))
            await traffic.until_stored(100)
        await reading.until(len(traffic.sent))
        assert traffic.failures == []
        assert reading.by_key == traffic.acknowledged
        await until_acknowledged(view, topics_of(leader), "s")
        await until_reading(*consumers, holds={segment.segment_id for segment in leader.layout.active})
    assert len(coordinator.group("s").members) == 2


async def test_R25_a_migration_called_off_changes_nothing(
    ordinary: Ordinary, migrate: Migrate, connect: Connect, is_created_by_use: bool
) -> None:
    topic = await ordinary(2)
    leader = await migrate(topic, 2)
    client = connect()
    consumer = await client.stream_consumer(topic.persistent, "s")
    producer = await client.producer(topic.persistent)
    async with OrderedReading(consumer) as reading:
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(100)
            change = await leader.prepare_migration()
            await leader.publish(change)
            await leader.until_unused(change.planned.parent_ids, within_seconds=2.0)
            await leader.call_off(change)
            await traffic.until_stored(100)
        await reading.until(len(traffic.sent))
        assert reading.by_key == traffic.acknowledged
    assert consumer.segment_ids == (0, 1)


async def test_R25_who_has_no_gateway_is_told_so_at_the_migration(
    ordinary: Ordinary, migrate: Migrate, connect: Connect, view: PulsarView
) -> None:
    """Not before what it got could be acknowledged."""
    topic = await ordinary(1)
    leader = await migrate(topic, 1)
    client = connect()
    consumer = await client.stream_consumer(topic.persistent, "s")
    async with await client.producer(topic.persistent) as producer:
        await producer.send(b"1", key="k")
    message = await consumer.receive(TIMEOUT_SECONDS)
    await leader.migrate()
    await until_reading(consumer, holds=set())
    await consumer.acknowledge_cumulative(message)
    with pytest.raises(ClientError, match="gateway=GatewayOptions"):
        await consumer.receive(TIMEOUT_SECONDS)
    await until_acknowledged(view, (leader.segment_topic(0),), "s")
    with pytest.raises(ClientError, match="gateway=GatewayOptions"):
        await client.stream_consumer(topic.persistent, "s")


async def test_R25_a_scalable_topic_is_coordinated_whatever_its_name_says(
    ordinary: Ordinary, migrate: Migrate, coordinate: MakeCoordinator, connect: Connect
) -> None:
    topic = await ordinary(2)
    leader = await migrate(topic, 2)
    await leader.migrate()
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    consumer = await client.stream_consumer(topic.persistent, "s")
    await until_reading(consumer, holds={2, 3})
    assert list(coordinator.group("s").members) == [consumer.consumer_name]
    await client.checkpoint_consumer(topic.persistent, "g")


async def test_R25_checkpoint_consumers_need_a_scalable_topic(
    ordinary: Ordinary, migrate: Migrate, coordinate: MakeCoordinator, connect: Connect
) -> None:
    topic = await ordinary(2)
    coordinator = await coordinate(await migrate(topic, 2))
    for client in (connect(), connect(coordinator)):
        with pytest.raises(ClientError, match=r"spec\.migrateFrom or by `stopics migrate`"):
            await client.checkpoint_consumer(topic.persistent, "g")


async def test_what_cannot_be_attached_to_is_refused_at_once(
    connect: Connect, ordinary: Ordinary, view: PulsarView, namespace: str, pulsar: PulsarAccess
) -> None:
    topic = await ordinary(0)
    await view.call("POST", f"namespaces/{namespace}/autoTopicCreation", {"allowAutoTopicCreation": False})
    client = connect()
    with pytest.raises(ConnectError, match="TopicNotFound"):
        await client.stream_consumer(f"{namespace}/nothing", "s")
    with PulsarClient(pulsar.service_url, pulsar.superuser_token) as plain:
        await plain.consumer(topic.persistent, "s", consumer_type=pulsar_client.ConsumerType.Shared)
        with pytest.raises(ConnectError, match="ConsumerBusy"):
            await client.stream_consumer(topic.persistent, "s")


async def test_R25_the_face_without_asyncio(ordinary: Ordinary, pulsar: PulsarAccess) -> None:
    topic: TopicName = await ordinary(2)

    def work() -> None:
        authentication = pulsar_client.AuthenticationToken(pulsar.superuser_token)
        with (
            sync.Client(pulsar.service_url, authentication) as client,
            client.stream_consumer(topic.persistent, "stream") as stream,
            client.queue_consumer(topic.persistent, "queue") as queue,
            client.producer(topic.persistent) as producer,
        ):
            assert producer.send(b"1", key="k").segment_id in (0, 1)
            got = stream.receive(TIMEOUT_SECONDS)
            stream.acknowledge_cumulative(got)
            assert got.data == queue.receive(TIMEOUT_SECONDS).data == b"1"
            assert stream.topic == queue.topic == producer.topic == str(topic)

    await asyncio.to_thread(work)
