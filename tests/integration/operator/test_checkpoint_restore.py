"""R22: a checkpoint group goes back, or on, to a checkpoint through whatever was split and merged since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.admin import AdminClient, AdminError, ConflictError, NotFoundError
from scalable_topics.sdk import Checkpoint, CheckpointConsumer, Client, GatewayOptions, Part
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, SUBSCRIPTIONS
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from tests.support import manifests
from tests.support.admin_caller import make_admin
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import World, phase

GROUP, KEYS = "nightly", 12
_EARLIEST = pulsar.InitialPosition.Earliest
_SECONDS = 40.0


@dataclass
class Shop:
    """A topic of two segments, whose messages are numbers, a round of all keys after the other."""

    two: Replicas
    topic: str
    client: Client
    admin: AdminClient
    sent: int = 0

    async def consumer(self, name: str) -> CheckpointConsumer:
        return await self.client.checkpoint_consumer(self.topic, GROUP, consumer_name=name, initial_position=_EARLIEST)

    async def send(self, count: int) -> None:
        async with await self.client.producer(self.topic) as producer:
            for number in range(self.sent, self.sent + count):
                await producer.send(str(number).encode(), key=f"key-{number % KEYS}")
        self.sent += count

    async def operate(self, kind: str, **block: Any) -> None:
        assert phase(await self.two.world.operate("orders", kind, **block)) == "Succeeded"

    async def restore(self, checkpoint: Checkpoint) -> None:
        assert (await self.admin.wait(await self.admin.restore(checkpoint))).done


@pytest.fixture
async def shop(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Shop]:
    # Sealed segments are to be seen.
    flags = (*FAST_FLAGS, "--lease-seconds=10", "--settle-window-seconds=600")
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, flags) as two:
        world = two.world
        topic = world.topic_name("orders")
        await world.apply(
            manifests.topic("orders", str(topic), initial=2, policies={"perSegment": {"retentionTimeMinutes": 60}})
        )
        token = await make_admin(kube, world.namespace, "admin")
        await world.until_ready("orders")
        await two.until_shared()
        gateway = GatewayOptions(two.operators[0].gateway_url, token=token)
        async with _client(pulsar, gateway) as client, AdminClient(gateway) as admin:
            yield Shop(two, str(topic), client, admin)


def _client(access: PulsarAccess, gateway: GatewayOptions) -> Client:
    return Client(access.service_url, pulsar.AuthenticationToken(access.superuser_token), gateway=gateway)


async def _receive(consumer: CheckpointConsumer, count: int) -> list[int]:
    """The next messages, each key in order; commits, so that sealed segments are read to their ends."""
    got: list[int] = []
    by_key: dict[str | bytes | None, list[int]] = defaultdict(list)
    while len(got) < count:
        for message in await consumer.receive_many(count - len(got), _SECONDS):
            got.append(int(message.data))
            by_key[message.key].append(got[-1])
        await consumer.commit(consumer.checkpoint())
    assert all(numbers == sorted(numbers) for numbers in by_key.values()), by_key
    return sorted(got)


async def _is_quiet(consumer: CheckpointConsumer) -> bool:
    try:
        await consumer.receive(2.0)
    except TimeoutError:
        return True
    return False


async def test_R22_back_to_a_checkpoint_before_splits_and_merges(shop: Shop) -> None:
    async with await shop.consumer("one") as consumer:
        await shop.send(40)
        assert await _receive(consumer, 40) == list(range(40))
        kept = Checkpoint.deserialize(consumer.checkpoint().serialize())
        assert set(kept.positions) == {Part(0), Part(1)}
        await shop.send(40)
        await shop.operate("Split", segment=0)
        await shop.send(40)
        await shop.operate("Merge", segments=[2, 3])
        await shop.send(40)
        assert await _receive(consumer, 120) == list(range(40, 160))
        assert await _is_quiet(consumer)
        await shop.restore(kept)
        # The consumer that is connected goes on from there, sealed segments before their children.
        assert await _receive(consumer, 120) == list(range(40, 160))
        assert await _is_quiet(consumer)
    status = (await shop.two.world.get(SUBSCRIPTIONS, subscription_object_name("orders", GROUP)))["status"]
    assert status["phase"] == "Active"


async def test_R22_a_checkpoint_tells_of_segments_of_which_nothing_has_come(shop: Shop) -> None:
    async with await shop.consumer("one") as consumer:
        await shop.send(30)
        await _receive(consumer, 30)
    async with await shop.consumer("two") as consumer:
        assert await _is_quiet(consumer)
        kept = consumer.checkpoint()
        assert set(kept.positions) == {Part(0), Part(1)}
        await shop.send(30)
        assert await _receive(consumer, 30) == list(range(30, 60))
        await shop.restore(kept)
        assert await _receive(consumer, 30) == list(range(30, 60))
        assert await _is_quiet(consumer)


async def test_R22_on_to_a_checkpoint_that_was_kept_and_not_committed(shop: Shop) -> None:
    """The application died between keeping it and saying so."""
    await shop.send(60)
    one, two = await shop.consumer("one"), await shop.consumer("two")
    kept: list[Checkpoint] = []
    received = 0
    for consumer in (one, two):
        received += len(await consumer.receive_many(10, _SECONDS))
        kept.append(consumer.checkpoint())
    whole = kept[0].merged(kept[1])
    await one.close()
    await two.close()
    await shop.restore(whole)
    async with await shop.consumer("one") as consumer:
        rest = await _receive(consumer, 60 - received)
        assert len(set(rest)) == 60 - received
        assert await _is_quiet(consumer)


async def test_R22_what_cannot_be_gone_back_to_is_said_and_nothing_has_moved(shop: Shop) -> None:
    world = shop.two.world
    async with await shop.consumer("one") as consumer:
        await shop.send(20)
        await _receive(consumer, 20)
        kept = consumer.checkpoint()
        elsewhere = Checkpoint(kept.topic, kept.group, {Part(7): kept.positions[Part(0)]})
        with pytest.raises(NotFoundError, match="no segment 7 in the layout"):
            await shop.admin.restore(elsewhere)
        ahead = kept.positions[Part(0)]._replace(entry_id=10_000)
        with pytest.raises(AdminError, match="of another topic"):
            await shop.admin.restore(Checkpoint(kept.topic, kept.group, {Part(0): ahead}))
        assert await _is_quiet(consumer)
    operations = await world.kube.list_all(SEGMENT_OPERATIONS, world.namespace)
    assert [phase(one) for one in operations] == ["Failed", "Failed"]


async def test_R22_where_brokers_have_deleted_messages_it_says_so_unless_gaps_are_allowed(shop: Shop) -> None:
    world = shop.two.world
    brief = world.topic_name("brief")
    # Nothing keeps what is acknowledged.
    await world.apply(manifests.topic("brief", str(brief), initial=1))
    await world.until_ready("brief")
    segment = (await world.segment_names("brief", "brief"))[0]
    shop.topic = str(brief)
    async with await shop.consumer("one") as consumer:
        await shop.send(20)
        await consumer.receive_many(1, _SECONDS)
        kept = consumer.checkpoint()
        await _receive(consumer, 19)
        await eventually(lambda: _backlog(world, segment), lambda left: left == 0, what="all is acknowledged")
        first = await _first_ledger(world, segment)
        await world.pulsar.unload_topic(segment)
        await shop.send(5)
        await world.pulsar.trim(segment)
        await eventually(
            lambda: _first_ledger(world, segment), lambda ledger: ledger > first, what="brokers have deleted messages"
        )
        with pytest.raises(ConflictError, match="may be gone"):
            await shop.admin.restore(kept)
        assert await _receive(consumer, 5) == list(range(20, 25))
        assert (await shop.admin.wait(await shop.admin.restore(kept, allow_gaps=True))).done
        assert await _receive(consumer, 5) == list(range(20, 25))
        # Nor is it known of segments that came later.
        kept = consumer.checkpoint()
        await shop.send(5)
        await world.operate("brief", "Split", segment=0)
        await shop.send(5)
        assert await _receive(consumer, 10) == list(range(25, 35))
        await eventually(lambda: _backlog(world, segment), lambda left: left == 0, what="all is acknowledged")
        with pytest.raises(ConflictError, match="came after the checkpoint"):
            await shop.admin.restore(kept)
        assert await _is_quiet(consumer)
        assert (await shop.admin.wait(await shop.admin.restore(kept, allow_gaps=True))).done
        assert await _receive(consumer, 10) == list(range(25, 35))


async def _backlog(world: World, segment: str) -> int:
    found: int = (await world.pulsar.stats(segment))["subscriptions"][GROUP]["msgBacklog"]
    return found


async def _first_ledger(world: World, segment: str) -> int:
    return min(int(one["ledgerId"]) for one in (await world.pulsar.internal(segment))["ledgers"])
