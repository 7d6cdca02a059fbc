"""The library's consumers share segments by entry buckets, under the real coordinator (pip-486)."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulsar
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.admin import AdminClient
from scalable_topics.layout import bucket_hash, key_hash
from scalable_topics.sdk import Checkpoint, CheckpointConsumer, Client, GatewayOptions, Part, StreamConsumer
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from tests.support import manifests
from tests.support.admin_caller import make_admin
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.ordered_reading import OrderedReading
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import SHARDS, Replicas, replicas
from tests.support.running_operator import FAST_FLAGS
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually
from tests.support.world import World, phase

BUCKETS, KEYS, SUBSCRIPTION = 4, 200, "ledger"
GRACE_SECONDS = 5
_SECONDS = 40.0
_EARLIEST = pulsar.InitialPosition.Earliest


@dataclass
class Shop:
    """A topic of one segment with as many buckets as the default budget has, and clients of it."""

    two: Replicas
    topic: str
    token: str
    gateway_url: str
    access: PulsarAccess
    clients: list[Client] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.two.world

    def client(self, *, service_url: str = "", gateway_url: str = "") -> Client:
        """Another one."""
        gateway = GatewayOptions(gateway_url or self.gateway_url, token=self.token)
        token = pulsar.AuthenticationToken(self.access.superuser_token)
        self.clients.append(Client(service_url or self.access.service_url, token, gateway=gateway))
        return self.clients[-1]

    async def operate(self, kind: str, **block: Any) -> None:
        assert phase(await self.world.operate("orders", kind, **block)) == "Succeeded"

    async def restore(self, checkpoint: Checkpoint) -> None:
        async with AdminClient(GatewayOptions(self.gateway_url, token=self.token)) as admin:
            assert (await admin.wait(await admin.restore(checkpoint))).done

    async def kill_leader(self) -> None:
        """Have the other replica take over, which serves the clients."""
        (await self.two.leader_of(shard_of(self.topic, SHARDS))).kill()


@pytest.fixture
async def shop(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Shop]:
    flags = (*FAST_FLAGS, "--settle-window-seconds=600", f"--consumer-session-grace-seconds={GRACE_SECONDS}")
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, flags) as two:
        topic = two.world.topic_name("orders")
        policies = {"perSegment": {"retentionTimeMinutes": 60}}
        await two.world.apply(manifests.topic("orders", str(topic), policies=policies))
        token = await make_admin(kube, two.world.namespace, "admin")
        await two.world.until_ready("orders")
        await two.until_shared()
        leader = await two.leader_of(shard_of(str(topic), SHARDS))
        (other,) = (operator for operator in two.operators if operator is not leader)
        shop = Shop(two, str(topic), token, other.gateway_url, pulsar)
        yield shop
        for client in shop.clients:
            await client.close()


async def _until_parts(
    *consumers: StreamConsumer | CheckpointConsumer, of: int = 0, within_seconds: float = 60
) -> None:
    """Wait until consumers share a segment: each bucket with one of them, as many each; whole if there is but one."""

    async def found() -> list[tuple[Part, ...]]:
        return [consumer.parts for consumer in consumers]

    def are_dealt(parts: list[tuple[Part, ...]]) -> bool:
        wanted = [Part(0)] if len(parts) == 1 else [Part(0, bucket) for bucket in range(BUCKETS)]
        sizes = {len(each) for each in parts}
        return sorted(one for each in parts for one in each) == wanted and max(sizes) - min(sizes) <= 1

    what = f"{len(consumers)} share the segment"
    await eventually(found, are_dealt, what=what, every_seconds=0.05, within_seconds=60)


async def test_R21_R23_nothing_is_lost_or_out_of_order_while_buckets_change_hands(shop: Shop, view: PulsarView) -> None:
    """Consumers join and leave under traffic, the leader dies, and the segment is split (hazards A4-26208c and
    A4-26208d).
    """
    client = shop.client()
    one = await client.stream_consumer(shop.topic, SUBSCRIPTION, consumer_name="c0")
    async with await client.producer(shop.topic) as producer, OrderedReading(one) as reading:
        async with KeyedTraffic(producer, keys=KEYS, burst=10, pause_seconds=0.02) as traffic:
            await _until_parts(one)
            consumers = [one]
            for number in range(1, BUCKETS):
                consumers.append(await client.stream_consumer(shop.topic, SUBSCRIPTION, consumer_name=f"c{number}"))
                reading.join(consumers[-1])
                await _until_parts(*consumers)
            await traffic.until_stored(300)
            status = (await shop.world.get(SUBSCRIPTIONS, subscription_object_name("orders", SUBSCRIPTION)))["status"]
            dealt = [one for consumer in status["consumers"] for one in consumer["assignments"]]
            assert sorted(bucket for one in dealt for bucket in one["buckets"]) == list(range(BUCKETS))
            assert {one["segment"] for one in dealt} == {0}
            await shop.kill_leader()
            await reading.leave(consumers[1])
            await consumers.pop(1).close()
            await _until_parts(*consumers)
            await traffic.until_stored(300)
            await shop.operate("Split", segment=0)
            await traffic.until_stored(300)
            # A lapse of the new leader's may have the split begun anew, with other ids.
            children = {one.segment_id for one in (await shop.world.layout("orders")).active}
            await eventually(
                lambda: asyncio.sleep(0, {part.segment_id for each in consumers for part in each.parts}),
                lambda ids: ids == children,
                what="the children follow",
                within_seconds=60,
            )
            for leaving in consumers[1:]:
                await reading.leave(leaving)
                await leaving.close()
            await eventually(
                lambda: asyncio.sleep(0, one.parts),
                lambda parts: parts == tuple(map(Part, sorted(children))),
                what="one has both",
            )
            await traffic.until_stored(300)
        await reading.until_different(len(traffic.sent))
        assert traffic.failures == []
        assert reading.in_order == traffic.acknowledged
        assert len(reading.readers(0)) == BUCKETS
        again = len(reading.received) - len(traffic.sent)
        print(f"sent {len(traffic.sent)}, received again {again}")
        assert again <= 100
    await one.close()


async def test_R21_who_is_cut_off_loses_its_buckets_after_the_grace_period(shop: Shop) -> None:
    """What it had and did not acknowledge comes again elsewhere, in order, and when it is back it has its share."""
    near = shop.client()
    one = await near.stream_consumer(shop.topic, SUBSCRIPTION, consumer_name="near")
    gateway = shop.gateway_url
    async with (
        TcpProxy(shop.access.service_url) as broker,
        TcpProxy(gateway.replace("http", "pulsar")) as session,
        await near.producer(shop.topic) as producer,
        OrderedReading(one) as reading,
    ):
        distant = shop.client(service_url=broker.service_url, gateway_url=session.service_url.replace("pulsar", "http"))
        other = await distant.stream_consumer(shop.topic, SUBSCRIPTION, consumer_name="distant")
        reading.join(other)
        async with KeyedTraffic(producer, keys=KEYS, burst=10, pause_seconds=0.02) as traffic:
            await _until_parts(one, other)
            await traffic.until_stored(300)
            for proxy in (broker, session):
                await proxy.refuse()
            await _until_parts(one)
            await traffic.until_stored(200)
            for proxy in (broker, session):
                await proxy.accept()
            await _until_parts(one, other)
            await traffic.until_stored(200)
        await reading.until_different(len(traffic.sent))
        assert reading.in_order == traffic.acknowledged
    await one.close()
    await other.close()


async def _take(consumers: list[CheckpointConsumer], count: int) -> dict[str, list[int]]:
    """The next messages, so many or a few more, by key in the order of receiving."""
    by_key: dict[str, list[int]] = defaultdict(list)

    async def read(consumer: CheckpointConsumer) -> None:
        while sum(map(len, by_key.values())) < count:
            try:
                message = await consumer.receive(0.2)
            except TimeoutError:
                continue
            assert isinstance(message.key, str)
            by_key[message.key].append(int(message.data))

    async with asyncio.timeout(_SECONDS), asyncio.TaskGroup() as group:
        for consumer in consumers:
            group.create_task(read(consumer))
    return by_key


def _numbers(by_key: dict[str, list[int]]) -> Counter[int]:
    assert all(numbers == sorted(numbers) for numbers in by_key.values()), by_key
    return Counter(number for numbers in by_key.values() for number in numbers)


@pytest.mark.parametrize("readers", [1, 2])
async def test_R22_a_restored_group_goes_on_from_each_bucket_where_it_stood(shop: Shop, readers: int) -> None:
    """Buckets are never equally far; whoever reads them then, of what the checkpoint had nothing comes again."""
    sharing = await _sharing(shop)
    before = _numbers(await _take(sharing[:1], 50)) + _numbers(await _take(sharing[1:], 150))
    kept = Checkpoint.deserialize(sharing[0].checkpoint().merged(sharing[1].checkpoint()).serialize())
    assert {part.bucket for part in kept.positions} >= set(range(BUCKETS))
    after = _numbers(await _take(sharing, 400 - before.total()))
    assert before + after == Counter(range(400))
    for consumer in sharing:
        await consumer.commit(consumer.checkpoint())
    for consumer in sharing[readers:]:
        await consumer.close()
    left = sharing[:readers]
    await _until_parts(*left)
    await shop.restore(kept)
    assert _numbers(await _take(left, after.total())) == after
    for consumer in left:
        await consumer.commit(consumer.checkpoint())
        await consumer.close()
    async with await shop.clients[0].checkpoint_consumer(shop.topic, SUBSCRIPTION) as last:
        with pytest.raises(TimeoutError):
            await last.receive(2.0)


async def test_R22_what_is_kept_of_buckets_holds_when_the_segment_is_read_whole_again(shop: Shop) -> None:
    """Its reader knows nothing of how far each bucket had been read: the checkpoint that was kept does."""
    a, b = await _sharing(shop)
    before = _numbers(await _take([a], 50)) + _numbers(await _take([b], 150))
    kept = a.checkpoint().merged(b.checkpoint())
    for consumer in (a, b):
        await consumer.commit(kept)
    await b.close()
    await _until_parts(a)
    between = _numbers(await _take([a], 60))
    taken = a.checkpoint().following(kept)
    assert set(taken.positions) > {Part(0)}, "some buckets had been read further"
    after = _numbers(await _take([a], 400 - before.total() - between.total()))
    await shop.restore(taken)
    assert _numbers(await _take([a], after.total())) == after
    with pytest.raises(TimeoutError):
        await a.receive(2.0)
    assert before + between + after == Counter(range(400))
    await a.close()


async def _sharing(shop: Shop) -> list[CheckpointConsumer]:
    """Two consumers of a group that share a segment of 400 numbers."""
    client = shop.client()
    async with await client.producer(shop.topic) as producer:
        for number in range(400):
            await producer.submit(b"%d" % number, key=f"key-{number % 40}")
    sharing = [
        await client.checkpoint_consumer(shop.topic, SUBSCRIPTION, consumer_name=name, initial_position=_EARLIEST)
        for name in ("a", "b")
    ]
    await _until_parts(*sharing)
    return sharing


def test_the_keys_of_these_tests_fall_into_every_bucket() -> None:
    found = {bucket_hash(key_hash(f"key-{number}")) * BUCKETS // 0x10000 for number in range(40)}
    assert found == set(range(BUCKETS))
