"""Queue consumers: everything arrives, through layout changes, bounded, and acknowledged for good."""

from __future__ import annotations

import asyncio
from collections import Counter

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import (
    Client,
    ClientError,
    ClosedError,
    DeadLetterPolicy,
    MessageId,
    QueueConsumer,
)
from tests.integration.sdk.conftest import MakeLeader
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

TIMEOUT_SECONDS = 20
EARLIEST = pulsar_client.InitialPosition.Earliest


async def send_numbers(client: Client, leader: ScriptedLeader, numbers: range, *, batching: bool = True) -> None:
    """Send numbers under several keys."""
    async with await client.producer(str(leader.topic), batching_enabled=batching) as producer:
        for number in numbers:
            await producer.submit(b"%d" % number, key=f"k{number % 10}")


async def receive_numbers(consumer: QueueConsumer, count: int, *, acknowledge: bool = True) -> Counter[int]:
    """Receive so many messages."""
    numbers: Counter[int] = Counter()
    for _ in range(count):
        message = await consumer.receive(TIMEOUT_SECONDS)
        numbers[int(message.data)] += 1
        if acknowledge:
            await consumer.acknowledge(message)
    return numbers


async def until_backlog(view: PulsarView, leader: ScriptedLeader, subscription: str, wanted: int) -> None:
    """Wait until the brokers say so many messages are unacknowledged, over all segments."""

    async def backlog() -> int:
        stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in leader.layout.segments]
        return sum(found["subscriptions"].get(subscription, {}).get("msgBacklog", 0) for found in stats)

    await eventually(backlog, lambda found: found == wanted, what=f"the backlog is {wanted}")


async def attached(view: PulsarView, leader: ScriptedLeader, subscription: str) -> int:
    """How many consumers the brokers see, over all segments."""
    stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in leader.layout.segments]
    return sum(len(found["subscriptions"][subscription]["consumers"]) for found in stats)


async def test_A3_25611_sealed_segments_are_read_to_their_end(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    """A consumer that comes after a split gets what is on the sealed parent (hazards A3-25611 and A5-00605)."""
    leader = await lead(subscriptions=["s"])
    await send_numbers(client, leader, range(100))
    await leader.split(0)
    await send_numbers(client, leader, range(100, 200))
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        assert consumer.segment_ids == (0, 1, 2)
        assert await receive_numbers(consumer, 200) == Counter(range(200))
        await until_backlog(view, leader, "s", 0)


async def test_nothing_is_missed_through_changes(lead: MakeLeader, client: Client, view: PulsarView) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        receiving = asyncio.create_task(receive_numbers(consumer, 300))
        await send_numbers(client, leader, range(100))
        await leader.split(0)
        await send_numbers(client, leader, range(100, 200))
        await leader.merge((3, 1))
        await send_numbers(client, leader, range(200, 300))
        assert await asyncio.wait_for(receiving, 60) == Counter(range(300))
        await until_backlog(view, leader, "s", 0)


async def test_B4_an_undeclared_subscription_misses_nothing_of_new_segments(lead: MakeLeader, client: Client) -> None:
    """It starts at the latest message, but on segments that come later at their first (hazard B4)."""
    leader = await lead()
    async with await client.queue_consumer(str(leader.topic), "new") as consumer:
        change = await leader.prepare(leader.layout.plan_split(0))
        await leader.seal([0])
        # Somebody else writes to the children before this consumer knows of them.
        await leader.write_to_children(change, [b"1", b"2"])
        await leader.commit(change)
        assert await receive_numbers(consumer, 2) == Counter([1, 2])


async def test_a_segment_that_leaves_the_layout_is_detached_from(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    """And does not come back (hazard A1-25719a)."""
    leader = await lead(subscriptions=["s"])
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        await send_numbers(client, leader, range(10))
        assert await receive_numbers(consumer, 10) == Counter(range(10))
        await leader.split(0)
        await until_backlog(view, leader, "s", 0)
        gone = leader.segment_topic(0)
        await leader.prune([0])
        await eventually(lambda: _value(consumer.segment_ids), lambda ids: ids == (1, 2), what="it is detached")
        await send_numbers(client, leader, range(10, 20))
        assert await receive_numbers(consumer, 10) == Counter(range(10, 20))
    assert not await view.exists(gone)


async def test_the_end_of_a_sealed_segment_disturbs_nobody(lead: MakeLeader, client: Client, view: PulsarView) -> None:
    """Once a sealed segment is acknowledged to its end pulsar-client drops the connection; what is unacknowledged on
    other segments is not delivered again.
    """
    leader = await lead(segments=2, bucket_budget=2, subscriptions=["s"])
    await send_numbers(client, leader, range(100), batching=False)
    await leader.split(0)
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        messages = [await consumer.receive(TIMEOUT_SECONDS) for _ in range(100)]
        on_sealed = [message for message in messages if message.segment_id == 0]
        assert 0 < len(on_sealed) < 100
        await consumer.acknowledge_many(on_sealed)
        await until_backlog(view, leader, "s", 100 - len(on_sealed))
        with pytest.raises(TimeoutError):
            await consumer.receive(1.5)
        await consumer.acknowledge_many(message for message in messages if message.segment_id == 1)
        await until_backlog(view, leader, "s", 0)


async def test_batches_are_acknowledged_by_index(
    lead: MakeLeader, client: Client, view: PulsarView, pulsar: PulsarAccess
) -> None:
    leader = await lead(subscriptions=["s"])
    await send_numbers(client, leader, range(20))
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        messages = [await consumer.receive(TIMEOUT_SECONDS) for _ in range(20)]
        assert any(message.message_id.batch_index > 0 for message in messages), "they were batched"
        await consumer.acknowledge_many(message for message in messages if int(message.data) % 2)
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        assert await receive_numbers(consumer, 10) == Counter(range(0, 20, 2))
        with pytest.raises(TimeoutError):
            await consumer.receive(0.5)


async def test_R24_dead_letters_are_named_by_the_scalable_topic(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    async with await client.queue_consumer(
        str(leader.topic),
        "s",
        negative_ack_redelivery_delay_ms=50,
        dead_letter_policy=DeadLetterPolicy(2, initial_subscription="undertaker"),
    ) as consumer:
        await send_numbers(client, leader, range(4), batching=False)
        seen: Counter[int] = Counter()
        while sum(seen.values()) < 12:
            message = await consumer.receive(TIMEOUT_SECONDS)
            seen[int(message.data)] += 1
            await consumer.negative_acknowledge(message)
        assert seen == Counter(dict.fromkeys(range(4), 3))
        assert consumer.dead_letter_topic == f"{leader.topic.persistent}-s-DLQ"

        async def dead() -> int:
            if not await view.exists(consumer.dead_letter_topic):
                return 0
            stats = await view.stats(consumer.dead_letter_topic)
            return int(stats["subscriptions"].get("undertaker", {}).get("msgBacklog", 0))

        await eventually(dead, lambda count: count == 4, what="the messages are on the dead-letter topic")


async def test_A5_26151_what_waits_for_the_application_is_bounded(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    """Hazard A5-26151: over the sum of all segments, whoever is slow."""
    leader = await lead(segments=4, bucket_budget=4, subscriptions=["s"])
    await send_numbers(client, leader, range(2000), batching=False)
    async with await client.queue_consumer(str(leader.topic), "s", receiver_queue_size=100) as consumer:
        first = await consumer.receive(TIMEOUT_SECONDS)
        await consumer.acknowledge(first)

        async def dispatched() -> int:
            stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in range(4)]
            return sum(found["subscriptions"]["s"]["unackedMessages"] for found in stats)

        await asyncio.sleep(0.5)
        assert 0 < await dispatched() <= 100
        assert consumer.waiting_messages <= 50
        rest = await receive_numbers(consumer, 1999)
        assert rest + Counter([int(first.data)]) == Counter(range(2000))


async def test_A5_26151_segments_that_come_later_share_the_same_budget(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    leader = await lead(subscriptions=["s"])
    await send_numbers(client, leader, range(300), batching=False)
    async with await client.queue_consumer(str(leader.topic), "s", receiver_queue_size=100) as consumer:
        for segment_id in (0, 1, 2, 3):
            await leader.split(segment_id)
            await send_numbers(client, leader, range(300), batching=False)
        assert len(leader.layout.segments) == 9

        async def attached() -> list[int]:
            stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in range(9)]
            found = [each["subscriptions"]["s"] for each in stats]
            return [subscription["unackedMessages"] for subscription in found if subscription["consumers"]]

        dispatched = await eventually(attached, lambda found: len(found) == 9, what="all segments are attached to")
        assert 50 <= sum(dispatched) <= 100
        received = await receive_numbers(consumer, 1500)
        assert received == Counter(dict.fromkeys(range(300), 5))


async def test_the_subscription_is_on_every_segment_for_splits_and_prune_to_see(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    """By durable cursors, sealed segments included, and also when the consumer is gone (R16)."""
    leader = await lead(segments=2)
    await leader.split(0)

    async def cursors() -> dict[int, bool]:
        stats = {
            segment_id: await view.stats(leader.segment_topic(segment_id)) for segment_id in leader.layout.segments
        }
        found = {segment_id: each["subscriptions"].get("s") for segment_id, each in stats.items()}
        return {segment_id: each["durable"] for segment_id, each in found.items() if each is not None}

    async with await client.queue_consumer(str(leader.topic), "s", initial_position=EARLIEST):
        assert await cursors() == dict.fromkeys(range(4), True)
        await leader.split(1)
        await eventually(cursors, lambda found: found == dict.fromkeys(range(6), True), what="children have cursors")
    assert await cursors() == dict.fromkeys(range(6), True)


async def test_acknowledgements_survive_a_reconnect(
    lead: MakeLeader, client: Client, distant: Client, proxy: TcpProxy, view: PulsarView
) -> None:
    """Those made before the connection broke, and those made while there was none; the rest comes again."""
    leader = await lead(segments=2, subscriptions=["s"])
    await send_numbers(client, leader, range(60), batching=False)
    async with await distant.queue_consumer(str(leader.topic), "s") as consumer:
        messages = [await consumer.receive(TIMEOUT_SECONDS) for _ in range(60)]
        await consumer.acknowledge_many(messages[:20])
        await until_backlog(view, leader, "s", 40)
        await proxy.refuse()
        # What is acknowledged in the last 100 ms before a connection breaks is pulsar-client's to lose.
        await eventually(lambda: attached(view, leader, "s"), lambda found: found == 0, what="the connection is gone")
        await consumer.acknowledge_many(messages[20:40])
        await proxy.accept()
        await until_backlog(view, leader, "s", 20)
        unacknowledged = Counter(int(message.data) for message in messages[40:])
        again = await receive_numbers(consumer, 20)
        # What was acknowledged without a connection may come again, too; never what was before.
        while not set(unacknowledged) <= set(again):
            again += await receive_numbers(consumer, 1)
        assert not set(again) & {int(message.data) for message in messages[:20]}
        await until_backlog(view, leader, "s", 0)


async def test_several_consumers_share(lead: MakeLeader, client: Client) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    consumers = [await client.queue_consumer(str(leader.topic), "s", receiver_queue_size=20) for _ in range(2)]
    await send_numbers(client, leader, range(400), batching=False)
    received: list[Counter[int]] = [Counter(), Counter()]
    tasks = [
        asyncio.create_task(receive_for_ever(consumer, numbers))
        for consumer, numbers in zip(consumers, received, strict=True)
    ]
    await eventually(
        lambda: asyncio.sleep(0, sum(map(Counter.total, received))), lambda count: count >= 400, what="all have come"
    )
    done, _ = await asyncio.wait(tasks, timeout=2.0)
    assert not done
    for task in tasks:
        task.cancel()
    assert received[0] + received[1] == Counter(range(400)), "nothing more came"
    assert all(received)


async def receive_for_ever(consumer: QueueConsumer, numbers: Counter[int]) -> None:
    """Receive, count and acknowledge until cancelled."""
    while True:
        messages = await consumer.receive_many(50)
        numbers.update(int(message.data) for message in messages)
        await consumer.acknowledge_many(messages)


async def test_what_is_not_acknowledged_comes_again(lead: MakeLeader, client: Client) -> None:
    leader = await lead(subscriptions=["s"])
    await send_numbers(client, leader, range(10))
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        assert await receive_numbers(consumer, 10, acknowledge=False) == Counter(range(10))
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        assert await receive_numbers(consumer, 10) == Counter(range(10))


async def test_a_receive_that_is_cancelled_takes_no_message(lead: MakeLeader, client: Client) -> None:
    leader = await lead(subscriptions=["s"])
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        waiting = [asyncio.create_task(consumer.receive()) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        await send_numbers(client, leader, range(2))
        received = await asyncio.wait_for(asyncio.gather(*waiting[1:]), TIMEOUT_SECONDS)
        assert Counter(int(message.data) for message in received) == Counter(range(2))


async def test_message_ids_that_were_stored_are_acknowledged_outside_batches_only(
    lead: MakeLeader, client: Client, view: PulsarView
) -> None:
    leader = await lead(subscriptions=["s"])
    async with await client.queue_consumer(str(leader.topic), "s") as consumer:
        await send_numbers(client, leader, range(1), batching=False)
        single = await consumer.receive(TIMEOUT_SECONDS)
        await consumer.acknowledge(MessageId.deserialize(single.message_id.serialize()))
        await until_backlog(view, leader, "s", 0)
        await send_numbers(client, leader, range(1))
        batched = await consumer.receive(TIMEOUT_SECONDS)
        with pytest.raises(ClientError, match="one of a batch"):
            await consumer.acknowledge(MessageId.deserialize(batched.message_id.serialize()))
        await consumer.acknowledge(batched)


async def test_a_closed_consumer_says_so(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    consumer = await client.queue_consumer(str(leader.topic), "s")
    waiting = asyncio.create_task(consumer.receive())
    await asyncio.sleep(0)
    await consumer.close()
    with pytest.raises(ClosedError):
        await waiting
    with pytest.raises(ClosedError):
        await consumer.receive()
    with pytest.raises(ClosedError):
        await consumer.acknowledge(MessageId(0))


async def _value(value: tuple[int, ...]) -> tuple[int, ...]:
    return value
