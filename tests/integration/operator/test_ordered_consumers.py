"""The library's stream consumers under the real coordinator: order and loss over layout changes and failover."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import aiohttp
import pulsar
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import Checkpoint, CheckpointConsumer, Client, GatewayOptions
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.cluster.reviews import request_token
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.examples import apply_example, run_example
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.ordered_reading import OrderedReading
from tests.support.replicas import SHARDS, Replicas
from tests.support.running_operator import RunningOperator
from tests.support.session_client import open_session
from tests.support.waiting import eventually

SUBSCRIPTION = "ledger"
_EARLIEST = pulsar.InitialPosition.Earliest


async def _topic(two: Replicas) -> tuple[str, str, RunningOperator, RunningOperator]:
    """A topic's full name, a consumer's token, its leader and the other replica."""
    world = two.world
    topic = world.topic_name("orders")
    await world.apply(manifests.topic("orders", str(topic), segments={"initial": 2}))
    token = await make_caller(world.kube, world.namespace, "consumer", ["consume"])
    await world.until_ready("orders")
    await two.until_shared()
    leader = await two.leader_of(shard_of(str(topic), SHARDS))
    (other,) = (operator for operator in two.operators if operator is not leader)
    return str(topic), token, leader, other


def _client(access: PulsarAccess, token: str, gateway: RunningOperator) -> Client:
    return Client(
        access.service_url,
        pulsar.AuthenticationToken(access.superuser_token),
        gateway=GatewayOptions(gateway.gateway_url, token=token),
    )


async def test_R17_R21_nothing_is_lost_or_out_of_order_while_all_changes(two: Replicas, pulsar: PulsarAccess) -> None:
    world = two.world
    topic, token, leader, other = await _topic(two)
    async with _client(pulsar, token, other) as client, await client.producer(topic) as producer:
        one = await client.stream_consumer(topic, SUBSCRIPTION, consumer_name="one")
        async with KeyedTraffic(producer, burst=5, pause_seconds=0.02) as traffic, OrderedReading(one) as reading:
            await world.operate("orders", "Split", segment=0)
            another = await client.stream_consumer(topic, SUBSCRIPTION, consumer_name="another")
            reading.join(another)
            await eventually(
                lambda: asyncio.sleep(0, another.segment_ids), lambda ids: len(ids) >= 1, what="both have something"
            )
            await world.operate("orders", "Merge", segments=[2, 3])
            leader.kill()
            third = await client.stream_consumer(topic, SUBSCRIPTION, consumer_name="third")
            reading.join(third)
            await world.operate("orders", "Split", segment=4, into=3)
            await reading.leave(one)
            await one.close()
            await traffic.until_stored(300)
            await traffic.stop()
            await reading.until(len(traffic.sent))

            async def missing() -> int:
                got = {number for numbers in reading.by_key.values() for number in numbers}
                return sum(number not in got for _, number, _ in traffic.sent)

            await eventually(missing, lambda count: count == 0, what="everything has come", within_seconds=90)
    assert traffic.failures == []
    for key, numbers in reading.by_key.items():
        # What was not acknowledged when a segment changed hands comes again, with everything after it.
        assert list(dict.fromkeys(numbers)) == traffic.acknowledged[key]
    again = sum(count - 1 for count in Counter(number for _, number, *_ in reading.received).values())
    print(f"sent {len(traffic.sent)}, received again {again}")
    assert again <= 60
    status = (await world.get(SUBSCRIPTIONS, subscription_object_name("orders", SUBSCRIPTION)))["status"]
    assert status["phase"] == "Active"


async def test_R7_consumers_read_on_while_there_is_no_operator(two: Replicas, pulsar: PulsarAccess) -> None:
    topic, token, leader, other = await _topic(two)
    async with _client(pulsar, token, other) as client, await client.producer(topic) as producer:
        consumer = await client.stream_consumer(topic, SUBSCRIPTION)
        async with OrderedReading(consumer) as reading:
            async with KeyedTraffic(producer) as traffic:
                await traffic.until_stored(100)
                for operator in (leader, other):
                    operator.kill()
                await traffic.until_stored(500)
            await reading.until(len(traffic.sent))
    assert reading.by_key == traffic.acknowledged


@pytest.mark.both_lines
async def test_R18_a_seek_begins_again_under_the_barrier(two: Replicas, pulsar: PulsarAccess) -> None:
    world = two.world
    topic, token, leader, _ = await _topic(two)
    async with _client(pulsar, token, leader) as client, await client.producer(topic) as producer:
        consumer = await client.stream_consumer(topic, SUBSCRIPTION)
        async with OrderedReading(consumer) as reading:
            async with KeyedTraffic(producer) as traffic:
                await traffic.until_stored(200)
                await world.operate("orders", "Split", segment=0)
                await traffic.until_stored(200)
            await reading.until(len(traffic.sent))
            first = len(reading.received)
            operation = await world.operate(
                "orders", "Seek", subscription=SUBSCRIPTION, timestamp="2026-01-01T00:00:00Z"
            )
            assert operation["status"]["phase"] == "Succeeded", operation["status"]
            active = {segment.segment_id for segment in (await world.layout("orders")).active}

            async def numbers_again() -> set[int]:
                return {number for _, number, segment, _ in reading.received[first:] if segment in active}

            # Sealed segments may have been pruned meanwhile; what is on the others comes again.
            wanted = {number for _, number, segment, _ in reading.received[:first] if segment in active}
            await eventually(numbers_again, lambda found: found == wanted, what="all of it comes again")


async def test_how_soon_the_first_message_comes(two: Replicas, pulsar: PulsarAccess) -> None:
    topic, token, _, other = await _topic(two)
    async with _client(pulsar, token, other) as client, await client.producer(topic) as producer:
        loop, seconds = asyncio.get_running_loop(), []
        for number in range(5):
            await producer.send(str(number).encode(), key="key")
            started = loop.time()
            async with await client.stream_consumer(topic, f"s{number}", initial_position=_EARLIEST) as consumer:
                await consumer.receive(30)
            seconds.append(loop.time() - started)
    print("seconds to the first message of a new subscription: " + ", ".join(f"{one:.2f}" for one in seconds))
    assert max(seconds) < 15


async def test_R22_a_checkpoint_group_goes_on_from_what_it_committed(two: Replicas, pulsar: PulsarAccess) -> None:
    world = two.world
    topic, token, _, other = await _topic(two)
    async with (
        _client(pulsar, token, other) as client,
        await client.producer(topic, batching_enabled=False) as producer,
    ):
        first = await client.checkpoint_consumer(topic, "nightly", initial_position=_EARLIEST)
        for number in range(60):
            await producer.send(str(number).encode(), key=f"key-{number % 20}")
        got = [await first.receive(30) for _ in range(40)]
        kept = Checkpoint.deserialize(first.checkpoint().serialize())
        assert set(kept.positions) == {message.part for message in got}
        await first.commit(kept)
        rest = [await first.receive(30) for _ in range(20)]
        await first.close()
        second = await client.checkpoint_consumer(topic, "nightly")
        again = [await second.receive(30) for _ in range(20)]
        # What was received and not committed comes again, and nothing else; each segment in its order.
        assert {message.data for message in again} == {message.data for message in rest}
        # A sealed segment is read to its end once its end is committed: until then its children are withheld (R17).
        await world.operate("orders", "Split", segment=0)
        for number in range(60, 100):
            await producer.send(str(number).encode(), key=f"key-{number % 20}")
        before = [await second.receive(30) for _ in range(await _on_segments(second, 2.0))]
        assert {message.segment_id for message in before} <= {1}
        await second.commit(second.checkpoint())
        after = [await second.receive(30) for _ in range(40 - len(before))]
        assert {message.segment_id for message in after} <= {1, 2, 3}
        assert {int(message.data) for message in (*before, *after)} == set(range(60, 100))
        status = (await world.get(SUBSCRIPTIONS, subscription_object_name("orders", "nightly")))["status"]
        assert [one["segment"] for one in status["consumers"][0]["assignments"]] == [1, 2, 3]


async def _on_segments(consumer: CheckpointConsumer, seconds: float) -> int:
    """How many messages wait once nothing more has come for a while."""
    seen = -1
    while seen != consumer.waiting_messages:
        seen = consumer.waiting_messages
        await asyncio.sleep(seconds)
    return seen


async def test_the_example_of_checkpoints_goes_on_from_its_state(
    two: Replicas, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    topic, token, _, other = await _topic(two)
    (tmp_path / "token").write_text(token)
    counts: dict[str, int] = {}
    async with _client(pulsar, token, other) as client, await client.producer(topic) as producer:
        for first in (0, 30):
            for number in range(first, first + 30):
                await producer.send(b"order", key=f"customer-{number % 3}")
            lines = await run_example(
                "checkpoint_consumer.py",
                pulsar.service_url,
                topic,
                other.gateway_url,
                str(tmp_path / "state.json"),
                PULSAR_TOKEN=pulsar.superuser_token,
                GATEWAY_TOKEN_FILE=str(tmp_path / "token"),
            )
            counts = {f"customer-{customer}": (first + 30) // 3 for customer in range(3)}
            assert lines[-1] == ", ".join(f"{customer}: {count}" for customer, count in counts.items())
    kept = json.loads((tmp_path / "state.json").read_text())
    assert kept["counts"] == counts
    assert Checkpoint.deserialize(kept["checkpoint"].encode()).positions


async def test_the_deployment_of_the_example_is_taken_and_gives_just_the_right(two: Replicas) -> None:
    kube, namespace = two.world.kube, two.world.namespace
    await apply_example(kube, namespace, "consumers.yaml")
    _, token, _, other = await _topic(two)
    token = await request_token(kube, namespace, "billing", 600)
    path = f"/admin/v2/scalable/{two.world.pulsar_namespace}/orders"
    async with open_session(other.gateway_url, path, SUBSCRIPTION, token, "a") as session:
        await session.next("registered")
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
        http.get(f"{other.gateway_url}{path}/stats") as answer,
    ):
        assert answer.status == 403
