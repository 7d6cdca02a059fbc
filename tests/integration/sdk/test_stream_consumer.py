"""Stream consumers on real brokers: every key in order through changes of the layout and of the group, nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import key_hash, segment_hash
from scalable_topics.sdk import (
    CheckpointConsumer,
    Client,
    ClientError,
    ClosedError,
    ConnectError,
    GatewayOptions,
    Part,
    SessionRefusedError,
    StreamConsumer,
    StreamMessage,
)
from scalable_topics.sdk import sync as blocking
from tests.integration.sdk.conftest import Connect, MakeCoordinator, MakeLeader
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.ordered_reading import OrderedReading
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

TIMEOUT_SECONDS = 30
EARLIEST = pulsar_client.InitialPosition.Earliest


async def send_numbers(client: Client, leader: ScriptedLeader, numbers: range, *, batching: bool = True) -> None:
    """Send numbers under several keys."""
    async with await client.producer(str(leader.topic), batching_enabled=batching) as producer:
        for number in numbers:
            await producer.submit(b"%d" % number, key=f"k{number % 20}")


async def receive(consumer: StreamConsumer, count: int) -> list[StreamMessage]:
    """Receive so many messages, acknowledging none."""
    return [await consumer.receive(TIMEOUT_SECONDS) for _ in range(count)]


def stored_on(leader: ScriptedLeader, segment_id: int, numbers: range) -> list[int]:
    """Those of the numbers that a segment holds."""
    covers = leader.layout.segments[segment_id].hash_range
    return [number for number in numbers if covers.contains(segment_hash(key_hash(f"k{number % 20}")))]


def numbers_of(messages: list[StreamMessage]) -> list[int]:
    """What they hold."""
    return [int(message.data) for message in messages]


async def nothing_comes(consumer: StreamConsumer | CheckpointConsumer, seconds: float = 1.5) -> None:
    """Nothing is delivered for a while."""
    try:
        message = await consumer.receive(seconds)
    except TimeoutError:
        return
    pytest.fail(f"{message!r} came: {message.data!r}")


async def until_backlog(view: PulsarView, leader: ScriptedLeader, subscription: str, wanted: int) -> None:
    """Wait until the brokers say so many messages are unacknowledged, over all segments."""

    async def backlog() -> int:
        stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in leader.layout.segments]
        return sum(found["subscriptions"].get(subscription, {}).get("msgBacklog", 0) for found in stats)

    await eventually(backlog, lambda found: found == wanted, what=f"the backlog is {wanted}")


async def until_segments(
    consumer: StreamConsumer | CheckpointConsumer, holds: Callable[[tuple[int, ...]], bool], what: str
) -> None:
    """Wait until it reads certain segments."""

    async def ids() -> tuple[int, ...]:
        return consumer.segment_ids

    await eventually(ids, holds, what=what, every_seconds=0.02)


@pytest.mark.both_lines
async def test_R17_A3_25642a_every_key_in_order_through_splits_and_merges(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """Parents to their end before their children (hazards A3-25642b, A3-26274 and A5-00605)."""
    leader = await lead(segments=2, bucket_budget=2, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    async with (
        await client.stream_consumer(str(leader.topic), "s") as consumer,
        OrderedReading(consumer) as reading,
        await client.producer(str(leader.topic)) as producer,
    ):
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(200)
            await leader.split(0)
            await traffic.until_stored(200)
            await leader.merge((3, 1))
            await traffic.until_stored(100)
            await leader.split(4, into=3)
            await traffic.until_stored(200)
        await reading.until(len(traffic.sent))
        assert reading.by_key == traffic.acknowledged
        assert {segment_id for _, _, segment_id, _ in reading.received} == set(leader.layout.segments)
        await until_backlog(view, leader, "s", 0)
        await until_segments(consumer, lambda ids: ids == (2, 5, 6, 7), "only what is not drained is left")


async def test_R21_keys_keep_their_order_while_segments_change_hands(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """Consumers come and go under traffic. Everybody acknowledges in time, so nothing comes twice; no segment has two
    readers (hazard A3-25612).
    """
    leader = await lead(segments=4, bucket_budget=4, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    async with (
        await client.stream_consumer(str(leader.topic), "s", consumer_name="a") as first,
        OrderedReading(first) as reading,
        await client.producer(str(leader.topic)) as producer,
    ):
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(200)
            second = await client.stream_consumer(str(leader.topic), "s", consumer_name="b")
            reading.join(second)
            await until_segments(second, lambda ids: len(ids) == 2, "segments are divided")
            assert set(first.segment_ids) | set(second.segment_ids) == {0, 1, 2, 3}
            assert not set(first.segment_ids) & set(second.segment_ids)
            await traffic.until_stored(200)
            await leader.split(0)
            await traffic.until_stored(200)
            third = await connect(coordinator).stream_consumer(str(leader.topic), "s", consumer_name="c")
            reading.join(third)
            await until_segments(third, lambda ids: len(ids) >= 1, "the third has something")
            await traffic.until_stored(200)
            await reading.leave(second)
            await second.close()
            await traffic.until_stored(200)
        await reading.until(len(traffic.sent))
    assert reading.by_key == traffic.acknowledged
    assert {name for *_, name in reading.received} == {"a", "b", "c"}
    assert any(len(reading.readers(segment_id)) > 1 for segment_id in leader.layout.segments)
    await until_backlog(view, leader, "s", 0)


async def test_R24_one_acknowledgement_covers_all_segments(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    leader = await lead(segments=4, bucket_budget=4, subscriptions=["s"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(200), batching=False)
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        messages = await receive(consumer, 200)
        assert len({message.segment_id for message in messages}) == 4
        await consumer.acknowledge_cumulative(messages[99])
        await until_backlog(view, leader, "s", 100)
        await consumer.acknowledge_cumulative(messages[50])
        await consumer.acknowledge_cumulative(messages[-1])
        await until_backlog(view, leader, "s", 0)


@pytest.mark.parametrize("batching", [True, False])
async def test_A4_26172_what_is_acknowledged_does_not_come_again(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, batching: bool
) -> None:
    """And what is not comes again, in order; nothing is acknowledged that was only prefetched (hazard A4-26172)."""
    leader = await lead(segments=2, subscriptions=["s"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(60), batching=batching)
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        messages = await receive(consumer, 60)
        await consumer.acknowledge_cumulative(messages[24])
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        again = await receive(consumer, 35)
        for segment_id in (0, 1):
            assert numbers_of([each for each in again if each.segment_id == segment_id]) == numbers_of(
                [each for each in messages[25:] if each.segment_id == segment_id]
            )
        await consumer.acknowledge_cumulative(again[-1])
        await nothing_comes(consumer, 0.5)
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        await nothing_comes(consumer)


@pytest.mark.parametrize(("position", "first"), [(EARLIEST, 0), (pulsar_client.InitialPosition.Latest, 10)])
async def test_R18_a_new_subscription_starts_where_it_is_told(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, position: Any, first: int
) -> None:
    leader = await lead()
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(10))
    await leader.split(0)
    async with await client.stream_consumer(str(leader.topic), "new", initial_position=position) as consumer:
        await send_numbers(client, leader, range(10, 20))
        messages: list[StreamMessage] = []
        while len(messages) < 20 - first:
            messages.append(await consumer.receive(TIMEOUT_SECONDS))
            await consumer.acknowledge_cumulative(messages[-1])
        assert Counter(numbers_of(messages)) == Counter(range(first, 20))


async def test_R7_without_a_gateway_it_goes_on(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader, grace_seconds=1.0)
    client = connect(coordinator)
    async with (
        await client.stream_consumer(str(leader.topic), "s") as consumer,
        OrderedReading(consumer) as reading,
        await client.producer(str(leader.topic)) as producer,
    ):
        async with KeyedTraffic(producer) as traffic:
            await traffic.until_stored(100)
            await reading.until(100)
            await coordinator.down()
            sent = len(traffic.sent)
            # Longer than the grace period, and than a consumer that is not served would be left alone.
            await asyncio.sleep(5)
            await reading.until(sent + 500)
            assert consumer.segment_ids == (0, 1)
            await leader.split(0)
            await traffic.until_stored(100)
            await coordinator.up()
            await until_segments(consumer, lambda ids: ids == (1, 2, 3), "it follows again")
            await traffic.until_stored(100)
        await reading.until(len(traffic.sent))
        assert reading.by_key == traffic.acknowledged
        await until_backlog(view, leader, "s", 0)


async def test_R7_without_a_gateway_and_without_brokers_it_gives_up_what_it_has(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """Somebody else may have it by now; what waits for the application is dropped, and comes again."""
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader, grace_seconds=1.0)
    await send_numbers(connect(coordinator), leader, range(40), batching=False)
    distant = connect(coordinator, service_url=proxy.service_url)
    async with await distant.stream_consumer(str(leader.topic), "s") as consumer:
        first = await receive(consumer, 5)

        async def waiting() -> int:
            return consumer.waiting_messages

        await eventually(waiting, lambda count: count == 35, what="messages wait")
        await coordinator.down()
        await proxy.refuse()
        await until_segments(consumer, lambda ids: ids == (), "it has given up")
        await nothing_comes(consumer, 0.5)
        await consumer.acknowledge_cumulative(first[-1])
        await proxy.accept()
        await coordinator.up()
        again = await receive(consumer, 40)
        assert Counter(numbers_of(again)) == Counter(range(40))
        await consumer.acknowledge_cumulative(again[-1])
        await nothing_comes(consumer, 0.5)


async def test_R21_a_consumer_of_the_same_name_takes_over(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    await send_numbers(client, leader, range(20))
    first = await client.stream_consumer(str(leader.topic), "s", consumer_name="same")
    messages = await receive(first, 20)
    await first.acknowledge_cumulative(messages[9])
    waiting = asyncio.create_task(first.receive(TIMEOUT_SECONDS))
    async with await client.stream_consumer(str(leader.topic), "s", consumer_name="same") as second:
        with pytest.raises(SessionRefusedError, match="another consumer has registered as 'same'"):
            await waiting
        with pytest.raises(SessionRefusedError):
            await first.acknowledge_cumulative(messages[-1])
        again = await receive(second, 10)
        assert Counter(numbers_of(again)) == Counter(numbers_of(messages[10:]))
        await second.acknowledge_cumulative(again[-1])
        await until_backlog(view, leader, "s", 0)
        await first.close()
        with pytest.raises(ClosedError):
            await first.receive()


async def test_what_is_acknowledged_in_time_does_not_come_again_after_a_hand_over(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    """The segment waits for the application, and nothing more of it is delivered meanwhile."""
    leader = await lead(segments=2, subscriptions=["s"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(40), batching=False)
    async with await client.stream_consumer(str(leader.topic), "s", handover_seconds=20, consumer_name="a") as first:
        messages = await receive(first, 10)
        while len({each.segment_id for each in messages}) < 2:
            messages += await receive(first, 1)
        async with await client.stream_consumer(str(leader.topic), "s", consumer_name="b") as second:
            await until_segments(first, lambda ids: len(ids) == 1, "one is given back")
            (kept,) = first.segment_ids
            await nothing_comes(second, 1.0)
            await first.acknowledge_cumulative(messages[-1])
            await until_segments(second, lambda ids: ids == (1 - kept,), "the other has it")
            moved = numbers_of([each for each in messages if each.segment_id != kept])
            stored = stored_on(leader, 1 - kept, range(40))
            assert stored[: len(moved)] == moved
            assert numbers_of(await receive(second, len(stored) - len(moved))) == stored[len(moved) :]
            await nothing_comes(second, 0.5)


async def test_R22_a_checkpoint_covers_what_is_about_to_be_given_back(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    """What is committed in time does not come again after a hand-over, nor does the hand-over wait for more."""
    leader = await lead(segments=2, subscriptions=["g"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(40), batching=False)
    async with await client.checkpoint_consumer(
        str(leader.topic), "g", handover_seconds=20, consumer_name="a"
    ) as first:
        messages = [await first.receive(TIMEOUT_SECONDS) for _ in range(40)]
        places = first.checkpoint().positions
        assert set(places) == {each.part for each in messages} == {Part(0), Part(1)}
        async with await client.checkpoint_consumer(str(leader.topic), "g", consumer_name="b") as second:
            await until_segments(first, lambda ids: len(ids) == 1, "one is given back")
            (kept,) = first.segment_ids
            checkpoint = first.checkpoint()
            assert checkpoint.positions == places
            await first.commit(checkpoint)
            async with asyncio.timeout(10):
                await until_segments(second, lambda ids: ids == (1 - kept,), "the other has it")
            await nothing_comes(second)
            await eventually_positions(first, {Part(kept)})


async def eventually_positions(consumer: CheckpointConsumer, wanted: set[Part]) -> None:
    """Wait until a checkpoint names these parts."""

    async def parts() -> set[Part]:
        return set(consumer.checkpoint().positions)

    await eventually(parts, lambda found: found == wanted, what=f"a checkpoint names {wanted}")


async def test_what_is_not_acknowledged_in_time_goes_to_the_next_owner(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """Acknowledging it later is without effect there, and covers the segments that the consumer still has."""
    leader = await lead(segments=2, subscriptions=["s"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(40), batching=False)
    async with await client.stream_consumer(str(leader.topic), "s", handover_seconds=0.2, consumer_name="a") as first:
        messages = await receive(first, 40)
        stored = {segment_id: stored_on(leader, segment_id, range(40)) for segment_id in (0, 1)}
        async with await client.stream_consumer(str(leader.topic), "s", consumer_name="b") as second:
            await until_segments(second, lambda ids: len(ids) == 1, "one has changed hands")
            (moved,) = second.segment_ids
            again = await receive(second, len(stored[moved]))
            assert numbers_of(again) == stored[moved], "all of it comes again, in order"
            await first.acknowledge_cumulative(messages[-1])
            await until_backlog(view, leader, "s", len(stored[moved]))
            with pytest.raises(ClientError, match="not received by this consumer"):
                await first.acknowledge_cumulative(again[-1])
            await second.acknowledge_cumulative(again[-1])
            await until_backlog(view, leader, "s", 0)


async def test_a_broken_connection_delivers_nothing_twice(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, proxy: TcpProxy, view: PulsarView
) -> None:
    """Brokers deliver again what is not acknowledged; the application has it already."""
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader)
    near, distant = connect(coordinator), connect(coordinator, service_url=proxy.service_url)
    await send_numbers(near, leader, range(60))
    async with await distant.stream_consumer(str(leader.topic), "s", receiver_queue_size=20) as consumer:
        messages = await receive(consumer, 30)
        for _ in range(3):
            proxy.cut()
            await asyncio.sleep(0.3)
            messages += await receive(consumer, 10)
        assert Counter(numbers_of(messages)) == Counter(range(60))
        proxy.cut()
        await nothing_comes(consumer)
        await consumer.acknowledge_cumulative(messages[-1])
        await until_backlog(view, leader, "s", 0)


async def test_acknowledgements_without_a_connection_are_sent_once_there_is_one(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, proxy: TcpProxy, view: PulsarView
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader)
    near, distant = connect(coordinator), connect(coordinator, service_url=proxy.service_url)
    await send_numbers(near, leader, range(60), batching=False)
    async with await distant.stream_consumer(str(leader.topic), "s") as consumer:
        messages = await receive(consumer, 60)
        await consumer.acknowledge_cumulative(messages[19])
        await until_backlog(view, leader, "s", 40)
        await proxy.refuse()

        async def attached() -> int:
            stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in (0, 1)]
            return sum(len(found["subscriptions"]["s"]["consumers"]) for found in stats)

        await eventually(attached, lambda count: count == 0, what="the connection is gone")
        await consumer.acknowledge_cumulative(messages[29])
        await consumer.acknowledge_cumulative(messages[39])
        await proxy.accept()
        await until_backlog(view, leader, "s", 20)
        await nothing_comes(consumer)


async def test_R17_an_acknowledgement_that_was_lost_holds_up_no_children(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, proxy: TcpProxy, view: PulsarView
) -> None:
    """pulsar-client never sends a cumulative acknowledgement again; without it a sealed segment is never drained."""
    leader = await lead(subscriptions=["s"])
    coordinator = await coordinate(leader)
    near, distant = connect(coordinator), connect(coordinator, service_url=proxy.service_url)
    await send_numbers(near, leader, range(20))
    await leader.split(0)
    await send_numbers(near, leader, range(20, 40))
    async with await distant.stream_consumer(str(leader.topic), "s") as consumer:
        messages = await receive(consumer, 20)
        proxy.stall(replies=False)
        await consumer.acknowledge_cumulative(messages[-1])
        # Longer than pulsar-client keeps it back to send it with others.
        await asyncio.sleep(0.3)
        proxy.cut()
        proxy.flow()
        assert Counter(numbers_of(await receive(consumer, 20))) == Counter(range(20, 40))
        assert consumer.segment_ids == (1, 2)


async def test_R17_a_sealed_segment_that_ends_with_no_message_is_reported_as_drained(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """One that is sealed right after it was unloaded ends at `ledger:-1` (measured)."""
    leader = await lead(subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    await send_numbers(client, leader, range(20))
    await view.unload_topic(leader.segment_topic(0))
    await leader.split(0)
    assert (await view.internal(leader.segment_topic(0)))["lastConfirmedEntry"].endswith(":-1")
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        messages = await receive(consumer, 20)
        await nothing_comes(consumer)
        assert coordinator.group("s").reports == [], "what is delivered is not acknowledged yet"
        await consumer.acknowledge_cumulative(messages[-1])
        await until_segments(consumer, lambda ids: ids == (1, 2), "the children follow")
        assert coordinator.group("s").reports == [Part(0)]


async def test_A5_26151_R24_what_waits_for_the_application_is_bounded(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, view: PulsarView
) -> None:
    """Hazard A5-26151: over the sum of all segments."""
    leader = await lead(segments=4, bucket_budget=4, subscriptions=["s"])
    client = connect(await coordinate(leader))
    await send_numbers(client, leader, range(2000), batching=False)
    async with await client.stream_consumer(str(leader.topic), "s", receiver_queue_size=100) as consumer:
        first = await consumer.receive(TIMEOUT_SECONDS)

        async def dispatched() -> int:
            stats = [await view.stats(leader.segment_topic(segment_id)) for segment_id in range(4)]
            return sum(
                attached["msgOutCounter"] for found in stats for attached in found["subscriptions"]["s"]["consumers"]
            )

        await asyncio.sleep(0.5)
        assert 0 < await dispatched() <= 100
        assert consumer.waiting_messages <= 50
        rest = await receive(consumer, 1999)
        assert Counter(numbers_of([first, *rest])) == Counter(range(2000))


async def test_the_listener_hears_of_assignments(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    client = connect(await coordinate(leader))
    heard: list[tuple[int, ...]] = []
    async with await client.stream_consumer(str(leader.topic), "s", assignment_listener=heard.append) as first:
        await until_segments(first, lambda ids: ids == (0, 1), "it has both")
        async with await client.stream_consumer(str(leader.topic), "s") as second:
            await until_segments(second, lambda ids: len(ids) == 1, "segments are divided")
            assert heard == [(0, 1), first.segment_ids]
        await until_segments(first, lambda ids: ids == (0, 1), "it has both again")
    assert heard[2:] == [(0, 1), ()]


async def test_a_consumer_that_may_attach_to_nothing_says_so(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect, pulsar: PulsarAccess
) -> None:
    leader = await lead(subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator, token=pulsar.client_token)
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        with pytest.raises(ConnectError, match="segment 0"):
            await consumer.receive(TIMEOUT_SECONDS)

        async def members() -> int:
            return len(coordinator.group("s").members)

        await eventually(members, lambda count: count == 0, what="it has left")


async def test_a_consumer_that_leaves_is_gone_at_once(
    lead: MakeLeader, coordinate: MakeCoordinator, connect: Connect
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader)
    client = connect(coordinator)
    async with await client.stream_consumer(str(leader.topic), "s") as consumer:
        await until_segments(consumer, lambda ids: ids == (0, 1), "it has both")
    assert coordinator.group("s").members == {}


async def test_the_blocking_face(
    lead: MakeLeader, coordinate: MakeCoordinator, pulsar: PulsarAccess, view: PulsarView
) -> None:
    leader = await lead(segments=2, subscriptions=["s"])
    coordinator = await coordinate(leader)

    def use() -> list[int]:
        authentication = pulsar_client.AuthenticationToken(pulsar.superuser_token)
        gateway = GatewayOptions(coordinator.url, token=lambda: "of-the-application")
        with (
            blocking.Client(pulsar.service_url, authentication, gateway=gateway) as client,
            client.producer(str(leader.topic)) as producer,
            client.stream_consumer(str(leader.topic), "s", consumer_name="here") as consumer,
        ):
            for number in range(20):
                producer.send_async(b"%d" % number, key=f"k{number}")
            producer.flush()
            messages = [consumer.receive(TIMEOUT_SECONDS)]
            while len(messages) < 20:
                messages += consumer.receive_many(10, TIMEOUT_SECONDS)
            consumer.acknowledge_cumulative(messages[-1])
            assert (consumer.topic, consumer.subscription, consumer.consumer_name, consumer.segment_ids) == (
                str(leader.topic),
                "s",
                "here",
                (0, 1),
            )
            with pytest.raises(TimeoutError):
                consumer.receive(0.3)
            return numbers_of(messages)

    assert Counter(await asyncio.to_thread(use)) == Counter(range(20))
    await until_backlog(view, leader, "s", 0)
