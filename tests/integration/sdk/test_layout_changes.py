"""A producer under traffic while segments split and merge: nothing lost, nothing duplicated, every key in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from tests.integration.sdk.conftest import MakeLeader
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.scripted_leader import ScriptedLeader
from tests.support.stored_messages import judge, stored_on
from tests.support.waiting import eventually


async def assert_exact(traffic: KeyedTraffic, leader: ScriptedLeader, pulsar: PulsarAccess) -> None:
    """Everything was acknowledged, and is stored once and in order."""
    assert traffic.failures == []
    topics = [leader.segment_topic(segment_id) for segment_id in sorted(leader.layout.segments)]
    stored = await stored_on(pulsar.service_url, pulsar.superuser_token, topics)
    findings = judge(traffic.acknowledged, stored)
    assert not findings, str(findings)
    assert len(stored) == len(traffic.sent)


@pytest.mark.parametrize("batching", [True, False])
@pytest.mark.parametrize(
    ("announced", "producer_connections", "deduplication"), [(True, 1, False), (False, 16, False), (False, 1, True)]
)
async def test_R13_R15_splits_and_merges_under_traffic(
    lead: MakeLeader,
    pulsar: PulsarAccess,
    batching: bool,
    announced: bool,
    producer_connections: int,
    deduplication: bool,
) -> None:
    """Announced, nobody is refused. Unannounced, every refused send is settled, and what shared the connection that the
    refusal breaks is stored once where brokers deduplicate; on connections of their own, segments need no
    deduplication (hazards A1-26678, A5-25610, A6-25875c and C49).
    """
    leader = await lead(segments=2, bucket_budget=4, deduplication=deduplication)
    authentication = AuthenticationToken(pulsar.superuser_token)
    async with (
        Client(pulsar.service_url, authentication, producer_connections=producer_connections) as client,
        await client.producer(str(leader.topic), batching_enabled=batching) as producer,
        KeyedTraffic(producer) as traffic,
    ):
        await traffic.until(200)
        await leader.split(0, announced=announced)
        await traffic.until_stored(100)
        await leader.merge((3, 1), announced=announced)
        await traffic.until_stored(100)
        await leader.split(4, into=3, announced=announced)
        await traffic.until_stored(100)
    if announced:
        assert leader.settled == {}, "a producer that listens has left before the seal"
    await assert_exact(traffic, leader, pulsar)
    assert producer.pending_messages == 0
    assert producer.pending_bytes == 0


async def test_R13_children_are_opened_before_the_seal(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    producer = await client.producer(str(leader.topic))
    await producer.send(b"0", key="a")
    change = await leader.prepare(leader.layout.plan_split(0))
    await leader.publish(change)
    assert await leader.until_unused([0])
    for child in change.planned.children:
        await eventually(
            lambda child=child: leader.publishers(leader.child_topic(child)),  # type: ignore[misc]
            what="a producer waits on the child",
        )


async def test_R13_a_change_called_off_goes_on_with_the_old_segments(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    leader = await lead()
    producer = await client.producer(str(leader.topic))
    async with KeyedTraffic(producer) as traffic:
        await traffic.until(100)
        await leader.publish(await leader.prepare(leader.layout.plan_split(0)))
        assert await leader.until_unused([0])
        await traffic.until(100)
        await leader.publish()
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)


async def test_R7_R13_a_leader_that_dies_after_announcing_costs_no_more_than_the_hold(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    leader = await lead()
    producer = await client.producer(str(leader.topic))
    async with KeyedTraffic(producer) as traffic:
        await traffic.until(100)
        change = await leader.prepare(leader.layout.plan_split(0))
        await leader.publish(change, hold_ms=3000)
        assert await leader.until_unused([0])
        await traffic.until_stored(100)
        # Its successor announces again and finishes.
        await leader.publish(change)
        assert await leader.until_unused([0])
        await leader.seal([0])
        await leader.commit(change)
        await traffic.until_stored(100)
    await assert_exact(traffic, leader, pulsar)


async def test_A5_26615_a_refused_producer_asks_nobody_before_the_next_layout(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess, capfd: pytest.CaptureFixture[str]
) -> None:
    """No storm of producer creations between a seal and the layout (hazard A5-26615)."""
    leader = await lead()
    producer = await client.producer(str(leader.topic))
    names: set[str] = set()
    async with KeyedTraffic(producer) as traffic:
        await traffic.until(100)
        change = await leader.prepare(leader.layout.plan_split(0))
        await leader.seal([0])
        await traffic.until(200)
        names = {lane.producer_name for lane in producer.lanes}
        assert len(names) == 1
        await leader.commit(change)
        await traffic.until_stored(50)
    await assert_exact(traffic, leader, pulsar)


async def test_R12_a_new_incarnation_replaces_the_layout_at_a_lower_epoch(
    lead: MakeLeader, client: Client, pulsar: PulsarAccess
) -> None:
    leader = await lead()
    producer = await client.producer(str(leader.topic))
    async with KeyedTraffic(producer) as traffic:
        await traffic.until(100)
        await leader.split(0)
        await traffic.until_stored(50)
        await leader.rebuild()
        await leader.split(1)
        await traffic.until_stored(50)
    await assert_exact(traffic, leader, pulsar)


async def test_A5_26287_flush_waits_for_sends_that_are_routed_anew(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    producer = await client.producer(str(leader.topic))
    await producer.send(b"0", key="a")
    change = await leader.prepare(leader.layout.plan_split(0))
    await leader.publish(change)
    assert await leader.until_unused([0])
    held = [await producer.submit(b"%d" % number, key=f"k{number}") for number in range(20)]
    flush = asyncio.create_task(producer.flush())
    done, _ = await asyncio.wait({flush}, timeout=0.3)
    assert not done
    await leader.seal([0])
    await leader.commit(change)
    await asyncio.wait_for(flush, 20)
    assert {message.result().segment_id for message in held} == {1, 2}


async def test_close_while_holding_waits_for_the_outcome(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    producer: Any = await client.producer(str(leader.topic))
    await producer.send(b"0", key="a")
    change = await leader.prepare(leader.layout.plan_split(0))
    await leader.publish(change)
    assert await leader.until_unused([0])
    held = await producer.submit(b"1", key="a")
    closing = asyncio.create_task(producer.close())
    await leader.seal([0])
    await leader.commit(change)
    await asyncio.wait_for(closing, 20)
    assert held.result().segment_id in (1, 2)
