"""The way of an application from backend Classic to Native on Pulsar 5, as docs/pulsar-5.md tells it (R2)."""

from __future__ import annotations

from pathlib import Path

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.consumption import Kind
from tests.support.native_world import NativeWorld
from tests.support.v5_client import V5Client
from tests.support.v5_reports import V5Error
from tests.support.waiting import eventually
from tests.support.world import NATIVE_CONNECTION, phase

pytestmark = pytest.mark.native

_KEYS = [f"customer-{number}" for number in range(20)]


async def test_R2_an_application_moves_and_its_old_topic_stays_classic_until_it_goes(
    native: NativeWorld, native_pulsar: PulsarAccess, tmp_path: Path
) -> None:
    world = native.world
    token = f"{NATIVE_CONNECTION}-token"
    await world.apply(manifests.connection("moving", world.admin_url, token, backend="Classic"))
    body = await native.make("orders", connection_name="moving", subscriptions=["billing"], deletionPolicy="Delete")
    assert body["status"]["backend"] == "Classic"
    assert await native.names() == [], "the brokers know of no scalable topic"

    authentication = pulsar_client.AuthenticationToken(native_pulsar.superuser_token)
    async with (
        Client(native_pulsar.service_url, authentication) as library,
        V5Client.connected(native_pulsar.service_url, native_pulsar.superuser_token_file, tmp_path) as v5,
    ):
        producer = await library.producer(native.name("orders"))
        for key in _KEYS:
            await producer.send(key.encode(), key=key)

        await world.change(CONNECTIONS, "moving", {"backend": "Native"})
        await world.until(
            CONNECTIONS, "moving", lambda found: found["status"]["backend"] == "Native", what="makes Native topics"
        )
        body = await native.make("orders-2", connection_name="moving", subscriptions=["billing"])
        assert body["status"]["backend"] == "Native"

        split = await world.operate("orders", "Split", segment=0)
        assert phase(split) == "Succeeded"
        assert (await world.get(TOPICS, "orders"))["status"]["backend"] == "Classic"
        for key in _KEYS:
            await producer.send(key.encode(), key=key)
        await producer.close()

        with pytest.raises(V5Error) as refused:
            await v5.produce(native.name("orders"), "lost", _KEYS)
        print("V5 producer:", refused.value.error, refused.value)
        await v5.produce(native.name("orders-2"), "moved", _KEYS)
        reader = await v5.consumer(Kind.QUEUE, native.name("orders-2"), "billing", "new")
        await reader.until(len(_KEYS))
        await reader.stop()

        consumer = await library.queue_consumer(native.name("orders"), "billing")
        for _ in range(2 * len(_KEYS)):
            await consumer.acknowledge(await consumer.receive())
        await consumer.close()

    async def backlog() -> int:
        names = (await world.segment_names("orders", "orders")).values()
        found = [await world.pulsar.stats(name) for name in names]
        return sum(one["subscriptions"]["billing"]["msgBacklog"] for one in found)

    await eventually(backlog, lambda messages: messages == 0, what="the old topic is drained")
    await world.delete(TOPICS, "orders")
    await world.until_gone(TOPICS, "orders")
    assert [name for name in await world.pulsar.topics(world.pulsar_namespace) if "/orders-segment" in name] == []
    body = await native.make("orders", connection_name="moving")
    assert body["status"]["backend"] == "Native", "a name is free again once its old topic is gone"


async def test_R2_a_classic_topic_that_is_declared_again_is_found_again_as_classic(native: NativeWorld) -> None:
    """Whatever its connection makes of new topics: its data are in segments of ours."""
    world = native.world
    token = f"{NATIVE_CONNECTION}-token"
    await world.apply(manifests.connection("kept-classic", world.admin_url, token, backend="Classic"))
    await native.make("kept", connection_name="kept-classic", initial=3)
    before = await world.segment_topics("kept")
    await world.delete(TOPICS, "kept")
    await world.until_gone(TOPICS, "kept")
    body = await native.make("kept")
    assert (body["status"]["backend"], body["status"]["segments"]["active"]) == ("Classic", 3)
    assert await world.segment_topics("kept") == before
    assert await native.names() == []
