"""Sends whose outcome a broken or silent connection hides (R15): found out, neither lost nor stored twice."""

from __future__ import annotations

import asyncio

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import Client, ClientError, Producer, SendOutcomeUnknownError, SendTimeoutError, sync
from tests.integration.sdk.conftest import MakeLeader
from tests.integration.sdk.test_layout_changes import assert_exact
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually


async def some_unknown(traffic: KeyedTraffic, proxy: TcpProxy, leader: ScriptedLeader, segment_id: int) -> None:
    """Let the broker store messages whose acknowledgements do not arrive."""
    proxy.stall(requests=False)
    name = leader.segment_topic(segment_id)
    acknowledged = sum(message.done() for _, _, message in traffic.sent)
    await traffic.until(100)

    async def stored() -> int:
        return await leader.messages_in(name)

    await eventually(stored, lambda count: count > acknowledged + 20, what="messages are stored unacknowledged")


@pytest.mark.parametrize(("batching", "unloaded"), [(True, False), (False, False), (True, True)])
async def test_R15_sends_unknown_at_the_seal_are_settled_from_the_tail(
    lead: MakeLeader,
    distant: Client,
    proxy: TcpProxy,
    pulsar: PulsarAccess,
    view: PulsarView,
    batching: bool,
    unloaded: bool,
) -> None:
    """The connection is gone when the segment is sealed, so the leader knows nothing of this producer; pulsar-client
    then reports stored messages as refused. Sealed after an unload, its last ledger is empty, and pulsar-client takes
    the whole topic for empty.
    """
    leader = await lead()
    producer = await distant.producer(str(leader.topic), batching_enabled=batching)
    async with KeyedTraffic(producer) as traffic:
        await traffic.until_stored(100)
        await some_unknown(traffic, proxy, leader, 0)
        await proxy.refuse()
        assert await leader.until_unused([0], within_seconds=20)
        if unloaded:
            await view.unload_topic(leader.segment_topic(0))
        await leader.split(0, announced=False)
        assert leader.settled == {}
        proxy.flow()
        await proxy.accept()
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)
    assert any(message.result().position is None for _, _, message in traffic.sent), "nothing was in doubt"


async def test_R15_sends_that_hang_on_an_attached_producer_are_settled_by_the_leader(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """The connection is silent but stands, so the producer is attached when the segment is sealed."""
    leader = await lead()
    producer = await distant.producer(str(leader.topic))
    async with KeyedTraffic(producer) as traffic:
        await traffic.until_stored(100)
        await some_unknown(traffic, proxy, leader, 0)
        await leader.split(0, announced=True)
        assert list(leader.settled) == [0]
        proxy.flow()
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)


async def test_a_connection_that_breaks_while_the_segment_is_active_loses_nothing(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """Pulsar's client sends again what was in flight: at least once, and exactly once with deduplication."""
    leader = await lead(segments=2)
    await leader.deduplicate()
    producer = await distant.producer(str(leader.topic))
    async with KeyedTraffic(producer) as traffic:
        for _ in range(3):
            await traffic.until_stored(100)
            proxy.cut()
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)


async def test_a_send_nobody_acknowledges_in_time_is_reported_as_unknown(
    lead: MakeLeader, distant: Client, proxy: TcpProxy
) -> None:
    leader = await lead()
    producer = await distant.producer(str(leader.topic), send_timeout_seconds=5.0)
    await producer.send(b"0", key="a")
    proxy.stall()
    with pytest.raises(SendOutcomeUnknownError, match=r"5 s no broker had acknowledged"):
        await producer.send(b"1", key="a")
    proxy.flow()
    assert (await producer.send(b"2", key="a")).segment_id == 0


async def test_a_send_no_broker_could_be_given_in_time_is_reported_as_not_stored(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    leader = await lead()
    producer = await distant.producer(str(leader.topic), send_timeout_seconds=5.0)
    await producer.send(b"0", key="a")
    change = await leader.prepare(leader.layout.plan_split(0))
    await leader.publish(change)
    assert await leader.until_unused([0])
    with pytest.raises(SendTimeoutError):
        await producer.send(b"1", key="a")
    await leader.seal([0])
    await leader.commit(change)
    assert (await producer.send(b"2", key="a")).segment_id in (1, 2)
    stored = [await leader.messages_in(leader.segment_topic(segment_id)) for segment_id in (0, 1, 2)]
    assert sorted(stored) == [0, 1, 1]


async def test_A5_26151_memory_stays_bounded_while_brokers_are_silent(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """Hazard A5-26151: over all segments, and back-pressure instead of errors."""
    leader = await lead(segments=2)
    producer: Producer = await distant.producer(
        str(leader.topic), max_pending_messages=500, max_pending_bytes=10_000, batching_max_messages=10
    )
    await producer.send(b"0", key="a")
    proxy.stall()
    messages = []

    async def send_many() -> None:
        for number in range(2000):
            messages.append(await producer.submit(b"%010d" % number, key=f"k{number % 10}"))

    sending = asyncio.create_task(send_many())
    await eventually(lambda: asyncio.sleep(0, producer.pending_messages), lambda found: found == 500, what="it is full")
    await asyncio.wait({sending}, timeout=1.0)
    assert not sending.done()
    assert producer.pending_messages == 500
    proxy.flow()
    await asyncio.wait_for(sending, 30)
    await producer.flush()
    assert {message.exception() for message in messages} == {None}
    assert producer.pending_messages == producer.pending_bytes == 0


async def test_A5_26151_threads_wait_too_while_brokers_are_silent(
    lead: MakeLeader, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """The face without asyncio counts bytes as well as messages."""
    leader = await lead()
    token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
    client = await asyncio.to_thread(sync.Client, proxy.service_url, token)
    options = {"max_pending_messages": 1000, "max_pending_bytes": 10_000}
    producer = await asyncio.to_thread(lambda: client.producer(str(leader.topic), **options))
    await asyncio.to_thread(producer.send, b"0", key="a")
    proxy.stall()
    taken: list[int] = []

    def send_many() -> None:
        for number in range(50):
            producer.send_async(b"%01000d" % number, key="a")
            taken.append(number)

    sending = asyncio.create_task(asyncio.to_thread(send_many))
    await eventually(lambda: asyncio.sleep(0, len(taken)), lambda found: found == 10, what="it is full")
    await asyncio.wait({sending}, timeout=1.0)
    assert len(taken) == 10
    proxy.flow()
    await asyncio.wait_for(sending, 30)
    await asyncio.to_thread(client.close)
    assert await leader.messages_in(leader.segment_topic(0)) == 51


async def test_A5_26151_a_silent_broker_fails_what_waits_once_its_time_is_over(
    lead: MakeLeader, distant: Client, proxy: TcpProxy
) -> None:
    """`submit` waits for room no longer than the send timeout; what was in flight keeps its room: it takes memory."""
    leader = await lead()
    producer = await distant.producer(str(leader.topic), max_pending_messages=5, send_timeout_seconds=5.0)
    await producer.send(b"0", key="a")
    proxy.stall()
    in_flight = [await producer.submit(b"x", key="a") for _ in range(5)]
    late = await asyncio.wait_for(producer.submit(b"late", key="a"), 30)
    with pytest.raises(SendTimeoutError, match=str(leader.topic)):
        await late
    assert all(isinstance(message.exception(), SendOutcomeUnknownError) for message in in_flight)
    assert producer.pending_messages == 5
    proxy.flow()
    assert (await producer.send(b"2", key="a")).segment_id == 0
    assert await leader.messages_in(leader.segment_topic(0)) == 7


async def test_closing_while_brokers_are_silent_ends(lead: MakeLeader, proxy: TcpProxy, pulsar: PulsarAccess) -> None:
    """Within the time given for outcomes and the operation timeout."""
    leader = await lead(segments=4)
    token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
    async with Client(proxy.service_url, token, operation_timeout_seconds=5) as impatient:
        producer = await impatient.producer(str(leader.topic))
        consumer = await impatient.queue_consumer(str(leader.topic), "s")
        await producer.send(b"0", key="a")
        proxy.stall()
        sent = [await producer.submit(b"x", key=f"k{number}") for number in range(20)]
        await asyncio.wait_for(asyncio.gather(producer.close(1.0), consumer.close()), 30)
        assert all(isinstance(message.exception(), SendOutcomeUnknownError) for message in sent)
        proxy.flow()


async def test_closing_a_client_ends_what_it_was_about_to_make(proxy: TcpProxy, pulsar: PulsarAccess) -> None:
    client = Client(proxy.service_url, pulsar_client.AuthenticationToken(pulsar.superuser_token))
    proxy.stall()
    making = asyncio.create_task(client.producer("public/default/x"))
    await asyncio.sleep(0.1)
    closing = asyncio.create_task(client.close())
    with pytest.raises(ClientError):
        await asyncio.wait_for(making, 60)
    await asyncio.wait_for(closing, 60)


async def test_the_layout_is_followed_again_after_its_connection_broke(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """Hazard A5-25687: a watch that is lost comes back, with what happened meanwhile."""
    leader = await lead()
    producer = await distant.producer(str(leader.topic))
    async with KeyedTraffic(producer) as traffic:
        await traffic.until_stored(50)
        await proxy.refuse()
        assert await leader.until_unused([0], within_seconds=20)
        await leader.split(0)
        await leader.split(1)
        await proxy.accept()
        await traffic.until_stored(50)
    await assert_exact(traffic, leader, pulsar)
