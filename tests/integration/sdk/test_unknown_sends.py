"""Sends whose outcome a broken or silent connection hides (R15): found out, neither lost nor stored twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import Client, Producer, SendOutcomeUnknownError, SendTimeoutError
from tests.integration.sdk.conftest import MakeLeader
from tests.integration.sdk.test_layout_changes import assert_exact
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.scripted_leader import ScriptedLeader
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually


@pytest.fixture
async def proxy(pulsar: PulsarAccess) -> AsyncIterator[TcpProxy]:
    """What the client under test talks to."""
    async with TcpProxy(pulsar.service_url) as found:
        yield found


@pytest.fixture
async def distant(proxy: TcpProxy, pulsar: PulsarAccess) -> AsyncIterator[Client]:
    """A client behind the proxy."""
    async with Client(
        proxy.service_url, authentication=pulsar_client.AuthenticationToken(pulsar.superuser_token)
    ) as found:
        yield found


async def some_unknown(traffic: KeyedTraffic, proxy: TcpProxy, leader: ScriptedLeader, segment_id: int) -> None:
    """Let the broker store messages whose acknowledgements do not arrive."""
    proxy.stall(requests=False)
    name = leader.segment_topic(segment_id)
    acknowledged = sum(message.done() for _, _, message in traffic.sent)
    await traffic.until(100)

    async def stored() -> int:
        return await leader.messages_in(name)

    await eventually(stored, lambda count: count > acknowledged + 20, what="messages are stored unacknowledged")


@pytest.mark.parametrize("batching", [True, False])
async def test_R15_sends_unknown_at_the_seal_are_settled_from_the_tail(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess, batching: bool
) -> None:
    """The connection is gone when the segment is sealed, so the leader knows nothing of this producer; pulsar-client
    then reports stored messages as refused.
    """
    leader = await lead()
    producer = await distant.producer(str(leader.topic), batching_enabled=batching)
    async with KeyedTraffic(producer) as traffic:
        await traffic.until_stored(100)
        await some_unknown(traffic, proxy, leader, 0)
        await proxy.refuse()
        assert await leader.until_unused([0], within_seconds=20)
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
    producer = await distant.producer(str(leader.topic), send_timeout_seconds=1.0)
    await producer.send(b"0", key="a")
    proxy.stall()
    with pytest.raises(SendOutcomeUnknownError, match=r"1 s no broker had acknowledged"):
        await producer.send(b"1", key="a")
    proxy.flow()
    assert (await producer.send(b"2", key="a")).segment_id == 0


async def test_a_send_no_broker_could_be_given_in_time_is_reported_as_not_stored(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    leader = await lead()
    producer = await distant.producer(str(leader.topic), send_timeout_seconds=1.0)
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
    await asyncio.wait({sending}, timeout=1.0)
    assert not sending.done()
    assert producer.pending_messages == 500
    proxy.flow()
    await asyncio.wait_for(sending, 30)
    await producer.flush()
    assert {message.exception() for message in messages} == {None}
    assert producer.pending_messages == producer.pending_bytes == 0


async def test_the_layout_is_followed_again_after_its_connection_broke(
    lead: MakeLeader, distant: Client, proxy: TcpProxy, pulsar: PulsarAccess
) -> None:
    """Hazard A5 #25687: a watch that is lost comes back, with what happened meanwhile."""
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
