"""Segments that several stream consumers share by entry buckets, on real brokers (pip-486)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from scalable_topics.layout import WHOLE, Part, StickyKeys, bucket_hash, key_hash
from scalable_topics.sdk import CheckpointConsumer, Client, StreamConsumer, StreamMessage
from tests.integration.sdk.conftest import Connect, MakeCoordinator, MakeLeader
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.ordered_reading import OrderedReading
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

BUCKETS = 4
KEYS = 200
TIMEOUT_SECONDS = 30


def bucket_of(message: StreamMessage) -> int:
    """The bucket that a message's key falls into."""
    assert isinstance(message.key, str)
    return bucket_hash(key_hash(message.key)) * BUCKETS // 0x10000


async def send_numbers(client: Client, leader: ScriptedLeader, numbers: range, *, batching: bool = True) -> None:
    """Send numbers under several keys."""
    async with await client.producer(str(leader.topic), batching_enabled=batching) as producer:
        for number in numbers:
            await producer.submit(b"%d" % number, key=f"k{number % 40}")


def numbers_of(messages: list[StreamMessage]) -> list[int]:
    """What they hold."""
    return [int(message.data) for message in messages]


async def until_parts(
    *consumers: StreamConsumer | CheckpointConsumer, holds: Callable[[list[tuple[Part, ...]]], bool], what: str
) -> None:
    """Wait until consumers read certain parts."""

    async def parts() -> list[tuple[Part, ...]]:
        return [consumer.parts for consumer in consumers]

    await eventually(parts, holds, what=what, every_seconds=0.02, within_seconds=TIMEOUT_SECONDS)


def are_dealt(found: list[tuple[Part, ...]]) -> bool:
    """Whether all buckets of segment 0 are read, each by one, in shares that differ by one at most; none has the whole
    segment unless it is alone.
    """
    wanted = [Part(0)] if len(found) == 1 else [Part(0, bucket) for bucket in range(BUCKETS)]
    sizes = {len(parts) for parts in found}
    return sorted(part for parts in found for part in parts) == wanted and max(sizes) - min(sizes) <= 1


async def receive_all(consumers: list[Any], count: int) -> dict[str, list[StreamMessage]]:
    """Receive so many messages, or a few more, with several consumers at a time, acknowledging none; by the name of the
    consumer.
    """
    found: dict[str, list[StreamMessage]] = {consumer.consumer_name: [] for consumer in consumers}

    async def read(consumer: Any) -> None:
        while sum(map(len, found.values())) < count:
            try:
                found[consumer.consumer_name].append(await consumer.receive(0.2))
            except TimeoutError:
                continue

    async with asyncio.timeout(TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
        for consumer in consumers:
            group.create_task(read(consumer))
    return found


async def nothing_comes(*consumers: Any, seconds: float = 1.0) -> None:
    """Nothing is delivered to any of them for a while."""
    for message in await asyncio.gather(*(one.receive(seconds) for one in consumers), return_exceptions=True):
        assert isinstance(message, TimeoutError), message


async def until_backlog(view: PulsarView, leader: ScriptedLeader, wanted: int) -> None:
    """Wait until the brokers say so many entries of segment 0 are unacknowledged."""

    async def backlog() -> int:
        stats = await view.stats(leader.segment_topic(0))
        return int(stats["subscriptions"]["s"]["msgBacklog"])

    await eventually(backlog, lambda found: found == wanted, what=f"the backlog is {wanted}")


@pytest.mark.both_lines
async def test_R23_keys_keep_their_order_while_buckets_change_hands(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """From one reader to as many as there are buckets and back, under traffic (hazards A4-26208b and A4-26208d)."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    first = await client.stream_consumer(str(leader.topic), "s", consumer_name="c0")
    async with await client.producer(str(leader.topic)) as producer, OrderedReading(first) as reading:
        async with KeyedTraffic(producer, keys=KEYS) as traffic:
            await traffic.until_stored(200)
            consumers = [first]
            for number in range(1, BUCKETS):
                consumers.append(
                    await connect(coordinator).stream_consumer(str(leader.topic), "s", consumer_name=f"c{number}")
                )
                reading.join(consumers[-1])
                await until_parts(*consumers, holds=are_dealt, what=f"{len(consumers)} share the segment")
                await traffic.until_stored(300)
            assert first.segment_ids == (0,)
            assert (await view.stats(leader.segment_topic(0)))["subscriptions"]["s"]["type"] == "Key_Shared"
            for leaving in consumers[:-1]:
                consumers.remove(leaving)
                await reading.leave(leaving)
                await leaving.close()
                await until_parts(*consumers, holds=are_dealt, what=f"{len(consumers)} share the segment")
                await traffic.until_stored(300)
            assert (await view.stats(leader.segment_topic(0)))["subscriptions"]["s"]["type"] == "Exclusive"
        await reading.until_different(len(traffic.sent))
        assert reading.in_order == traffic.acknowledged
        assert reading.readers(0) == {f"c{number}" for number in range(BUCKETS)}
        await until_backlog(view, leader, 0)


@pytest.mark.parametrize("batching", [True, False])
async def test_R23_what_is_acknowledged_does_not_come_again(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView, batching: bool
) -> None:
    """And what is not comes again, in order; nothing is acknowledged that was only prefetched (hazard A4-26172)."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(200), batching=batching)
    async with (
        await client.stream_consumer(str(leader.topic), "s", consumer_name="a") as a,
        await client.stream_consumer(str(leader.topic), "s", consumer_name="b") as b,
    ):
        await until_parts(a, b, holds=are_dealt, what="they share it")
        found = await receive_all([a, b], 200)
        for messages in found.values():
            assert {message.part for message in messages} == {Part(0, bucket_of(message)) for message in messages}
        half = len(found["a"]) // 2
        await a.acknowledge_cumulative(found["a"][half - 1])
        await b.acknowledge_cumulative(found["b"][-1])
    async with await client.stream_consumer(str(leader.topic), "s", consumer_name="c") as whole:
        again = [await whole.receive(TIMEOUT_SECONDS) for _ in range(len(found["a"]) - half)]
        assert [message.part for message in again] == [Part(0)] * len(again)
        assert Counter(numbers_of(again)) == Counter(numbers_of(found["a"][half:]))
        assert numbers_of(again) == sorted(numbers_of(again)) or batching
        await whole.acknowledge_cumulative(again[-1])
        await nothing_comes(whole)
        await until_backlog(view, leader, 0)


async def test_R17_a_sealed_backlog_is_drained_by_as_many_as_there_are_buckets(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    """And its children follow once each of its buckets is drained."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    async with await client.producer(str(leader.topic)) as producer:
        async with KeyedTraffic(producer, keys=KEYS, pause_seconds=0) as traffic:
            await traffic.until_stored(4000)
            await leader.split(0)
            await traffic.until_stored(500)
        consumers = [await client.stream_consumer(str(leader.topic), "s", consumer_name=f"c{n}") for n in range(4)]
        await until_parts(*consumers, holds=are_dealt, what="they share the backlog")
        async with OrderedReading(*consumers) as reading:
            await reading.until_different(len(traffic.sent))
            assert reading.in_order == traffic.acknowledged
            assert len(reading.readers(0)) == BUCKETS
            await until_parts(
                *consumers,
                holds=lambda found: {part.segment_id for parts in found for part in parts} == {1, 2},
                what="the children follow",
            )
    for consumer in consumers:
        await consumer.close()


async def test_R17_a_lost_acknowledgement_of_a_bucket_holds_up_no_children(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, proxy: TcpProxy
) -> None:
    """What the broker delivers again and is acknowledged already is acknowledged again (hazard A4-26208a)."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    coordinator = await coordinate(leader)
    near, distant = connect(coordinator), connect(coordinator, service_url=proxy.service_url)
    await send_numbers(near, leader, range(80))
    await leader.split(0)
    async with (
        await near.stream_consumer(str(leader.topic), "s", consumer_name="near") as one,
        await distant.stream_consumer(str(leader.topic), "s", consumer_name="distant") as other,
    ):
        await until_parts(one, other, holds=are_dealt, what="they share it")
        found = await receive_all([one, other], 80)
        await one.acknowledge_cumulative(found["near"][-1])
        proxy.stall(replies=False)
        await other.acknowledge_cumulative(found["distant"][-1])
        # Longer than pulsar-client keeps it back to send it with others.
        await asyncio.sleep(0.3)
        proxy.cut()
        proxy.flow()
        # It takes what comes again, as an application would.
        await nothing_comes(one, other, seconds=3)
        await until_parts(
            one,
            other,
            holds=lambda parts: sorted(part.segment_id for each in parts for part in each) == [1, 2],
            what="the children follow",
        )
        await nothing_comes(one, other)


async def test_R23_a_broken_connection_delivers_nothing_twice(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, proxy: TcpProxy, view: PulsarView
) -> None:
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    coordinator = await coordinate(leader)
    near, distant = connect(coordinator), connect(coordinator, service_url=proxy.service_url)
    await send_numbers(near, leader, range(200))
    async with (
        await near.stream_consumer(str(leader.topic), "s", consumer_name="near") as one,
        await distant.stream_consumer(str(leader.topic), "s", consumer_name="distant", receiver_queue_size=20) as other,
    ):
        await until_parts(one, other, holds=are_dealt, what="they share it")
        messages: list[StreamMessage] = []
        for count in (60, 120, 200):
            for got in (await receive_all([one, other], count - len(messages))).values():
                messages += got
            proxy.cut()
            await asyncio.sleep(0.3)
        assert Counter(numbers_of(messages)) == Counter(range(200))
        await nothing_comes(one, other)
        for consumer in (one, other):
            own = [message for message in messages if message.part in consumer.parts]
            await consumer.acknowledge_cumulative(max(own, key=lambda message: message.number))
        await until_backlog(view, leader, 0)


async def test_R21_R23_consumers_that_come_and_go_lose_and_disorder_nothing(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """One after another, twice a second, under traffic in batches of many keys. Some leave without having acknowledged
    what they got last, which comes again.
    """
    chance = random.Random(486)
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    consumers = [await client.stream_consumer(str(leader.topic), "s", consumer_name="c0")]
    async with await client.producer(str(leader.topic)) as producer, OrderedReading(*consumers) as reading:
        async with KeyedTraffic(producer, keys=KEYS) as traffic:
            for number in range(1, 25):
                await asyncio.sleep(0.5)
                if len(consumers) > 1 and (len(consumers) > BUCKETS or chance.random() < 0.5):
                    leaving = consumers.pop(chance.randrange(len(consumers)))
                    if chance.random() < 0.5:
                        reading.hush(leaving)
                        await asyncio.sleep(0.1)
                    await reading.leave(leaving)
                    await leaving.close()
                else:
                    consumers.append(await client.stream_consumer(str(leader.topic), "s", consumer_name=f"c{number}"))
                    reading.join(consumers[-1])
        await until_parts(*consumers, holds=lambda found: sum(map(len, found)) > 0, what="somebody reads")
        await reading.until_different(len(traffic.sent))
        assert reading.in_order == traffic.acknowledged
        await until_backlog(view, leader, 0)
        for consumer in consumers:
            await reading.leave(consumer)
            await consumer.close()
    assert any(part.bucket != WHOLE for part, _ in coordinator.group("s").moves)


async def test_R22_a_checkpoint_has_a_position_of_each_bucket(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    """What is committed does not come again, whoever reads the buckets then."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["g"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(120), batching=False)
    topic = str(leader.topic)
    a = await client.checkpoint_consumer(topic, "g", consumer_name="a")
    b = await client.checkpoint_consumer(topic, "g", consumer_name="b")
    await until_parts(a, b, holds=are_dealt, what="they share it")
    found = await receive_all([a, b], 120)
    assert set(a.checkpoint().positions) == {message.part for message in found["a"]}
    both = a.checkpoint().merged(b.checkpoint())
    assert set(both.positions) == {Part(0, bucket) for bucket in range(BUCKETS)}
    await a.commit(both)
    await a.close()
    await b.close()
    async with await client.checkpoint_consumer(topic, "g", consumer_name="c") as c:
        again = [await c.receive(TIMEOUT_SECONDS) for _ in found["b"]]
        assert Counter(numbers_of(again)) == Counter(numbers_of(found["b"])), "a commits what it reads itself"
        await c.commit(c.checkpoint())
        await nothing_comes(c)
    async with await client.checkpoint_consumer(topic, "g", consumer_name="d") as d:
        await nothing_comes(d)


@pytest.mark.parametrize("readers", [1, 2])
async def test_R22_what_a_restored_group_has_of_a_bucket_does_not_come_again(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView, readers: int
) -> None:
    """The cursor stands before it, for the sake of other buckets."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    await send_numbers(client, leader, range(120), batching=False)
    async with await client.checkpoint_consumer(str(leader.topic), "s", consumer_name="before") as before:
        everything = [await before.receive(TIMEOUT_SECONDS) for _ in range(120)]
    had = [message for message in everything if bucket_of(message) == 2][:10]
    where = had[-1].message_id
    floor = f"{where.ledger_id}:{where.entry_id}:{where.batch_index}"
    coordinator.floors[0] = [{"bucket": 2, "position": floor}]
    consumers = [
        await client.checkpoint_consumer(str(leader.topic), "s", consumer_name=f"c{number}")
        for number in range(readers)
    ]
    await until_parts(*consumers, holds=are_dealt, what="they read it")
    got = [each for found in (await receive_all(consumers, 110)).values() for each in found]
    assert Counter(numbers_of(got)) == Counter(range(120)) - Counter(numbers_of(had))
    await nothing_comes(*consumers)
    for consumer in consumers:
        await consumer.commit(consumer.checkpoint())
    await until_backlog(view, leader, 0)
    for consumer in consumers:
        await consumer.close()


async def test_messages_without_a_key_are_read_by_whoever_has_the_first_bucket(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    """As brokers of Pulsar 5 have it."""
    leader = await lead(bucket_budget=BUCKETS, subscriptions=["s"])
    client = connect(await coordinate(leader))
    async with await client.producer(str(leader.topic)) as producer:
        for number in range(20):
            await producer.submit(b"%d" % number, ordering_key="o" if number >= 10 else None)
    async with (
        await client.stream_consumer(str(leader.topic), "s", consumer_name="a") as a,
        await client.stream_consumer(str(leader.topic), "s", consumer_name="b") as b,
    ):
        await until_parts(a, b, holds=are_dealt, what="they share it")
        messages = [each for found in (await receive_all([a, b], 20)).values() for each in found]
        assert {message.part for message in messages if message.ordering_key is None} == {Part(0, 0)}
        (bucket,) = {message.part.bucket for message in messages if message.ordering_key == "o"}
        assert StickyKeys(BUCKETS).of(key_hash("o")) == StickyKeys(BUCKETS).of_bucket(bucket)
