"""The way of an application from backend Classic to Native on Pulsar 5, as docs/pulsar-5.md tells it (R2)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from dev.v5.process import V5Error
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.consumption import Kind
from tests.support.native_world import NativeWorld
from tests.support.v5_client import V5Client
from tests.support.waiting import eventually
from tests.support.world import NATIVE_CONNECTION, condition, phase
from tests.support.world_making import make_world

from .conftest import MakeOperator

pytestmark = pytest.mark.native

_KEYS = [f"customer-{number}" for number in range(20)]


_CLASSIC = "classic-on-5"


async def _classic_connection(native: NativeWorld) -> None:
    token = f"{NATIVE_CONNECTION}-token"
    await native.world.apply(manifests.connection(_CLASSIC, native.world.admin_url, token, backend="Classic"))


def _v5(brokers: PulsarAccess, directory: Path) -> AbstractAsyncContextManager[V5Client]:
    return V5Client.connected(brokers.service_url, brokers.superuser_token_file, directory)


async def test_R2_an_application_moves_and_its_old_topic_stays_classic_until_it_goes(
    native: NativeWorld, native_pulsar: PulsarAccess, tmp_path: Path
) -> None:
    world = native.world
    await _classic_connection(native)
    body = await native.make("orders", connection_name=_CLASSIC, subscriptions=["billing"], deletionPolicy="Delete")
    assert body["status"]["backend"] == "Classic"
    authentication = pulsar_client.AuthenticationToken(native_pulsar.superuser_token)
    async with Client(native_pulsar.service_url, authentication) as library, _v5(native_pulsar, tmp_path) as v5:
        producer = await library.producer(native.name("orders"))
        for key in _KEYS:
            await producer.send(key.encode(), key=key)

        await world.change(CONNECTIONS, _CLASSIC, {"backend": "Native"})
        await world.until(
            CONNECTIONS, _CLASSIC, lambda found: found["status"]["backend"] == "Native", what="makes Native topics"
        )
        body = await native.make("orders-2", connection_name=_CLASSIC, subscriptions=["billing"])
        assert body["status"]["backend"] == "Native"

        assert phase(await world.operate("orders", "Split", segment=0)) == "Succeeded"
        assert (await world.get(TOPICS, "orders"))["status"]["backend"] == "Classic"
        for key in _KEYS:
            await producer.send(key.encode(), key=key)
        await producer.close()

        await v5.produce(native.name("orders-2"), "moved", _KEYS)
        consumer = await library.queue_consumer(native.name("orders"), "billing")
        for _ in range(2 * len(_KEYS)):
            await consumer.acknowledge(await consumer.receive())
        await consumer.close()
        successor = await v5.consumer(Kind.QUEUE, native.name("orders-2"), "billing", "new")
        await successor.until(len(_KEYS))
        await successor.stop()

    async def backlog() -> int:
        names = (await world.segment_names("orders", "orders")).values()
        found = [await world.pulsar.stats(name) for name in names]
        return sum(int(one["subscriptions"]["billing"]["msgBacklog"]) for one in found)

    await eventually(backlog, lambda messages: messages == 0, what="the old topic is drained")
    assert await native.names() == [native.name("orders-2")], "the brokers know nothing of the old one"
    await world.delete(TOPICS, "orders")
    await world.until_gone(TOPICS, "orders")
    assert await world.segment_topics("orders") == []
    body = await native.make("orders", connection_name=_CLASSIC)
    assert body["status"]["backend"] == "Native", "a name is free again once its old topic is gone"


async def test_R2_a_classic_topic_that_is_declared_again_is_found_again_as_classic(native: NativeWorld) -> None:
    """Whatever its connection makes of new topics: its data are in segments of ours."""
    world = native.world
    await _classic_connection(native)
    await native.make("kept", connection_name=_CLASSIC, initial=3)
    before = await world.segment_topics("kept")
    await world.delete(TOPICS, "kept")
    await world.until_gone(TOPICS, "kept")
    body = await native.make("kept")
    assert (body["status"]["backend"], body["status"]["segments"]["active"]) == ("Classic", 3)
    assert await world.segment_topics("kept") == before
    assert await native.names() == []


async def test_R2_a_classic_topic_of_another_installation_is_adopted_as_classic(
    native: NativeWorld, own_operator: MakeOperator, kube: KubeClient, native_pulsar: PulsarAccess
) -> None:
    world = native.world
    await _classic_connection(native)
    await native.make("moving", connection_name=_CLASSIC, initial=2)
    operator = await own_operator()
    made = await make_world(
        kube, world.pulsar, native_pulsar, operator.namespace, connection_name=NATIVE_CONNECTION, backend="Auto"
    )
    there = replace(made, pulsar_namespace=world.pulsar_namespace)
    await asyncio.to_thread(operator.start)
    await there.apply(native.topic("moving"))
    refused = await there.until_reason("moving", "ClaimedElsewhere")
    assert "set spec.adopt: true to take it over" in condition(refused, "Stalled")["message"]
    await there.change(TOPICS, "moving", {"adopt": True})
    body = await there.until_ready("moving")
    assert (body["status"]["backend"], body["status"]["segments"]["active"]) == ("Classic", 2)
    await world.until_reason("moving", "ClaimLost")


async def test_R1_a_v5_client_that_names_a_classic_topic_has_brokers_make_another_which_is_told_of(
    native: NativeWorld, native_pulsar: PulsarAccess, tmp_path: Path
) -> None:
    """Brokers of Pulsar 5 look for scalable topics of their own alone, and make one beside the claim (measured)."""
    world = native.world
    await _classic_connection(native)
    await native.make("orders", connection_name=_CLASSIC, subscriptions=["s"])
    async with _v5(native_pulsar, tmp_path) as v5:
        await v5.produce(native.name("orders"), "astray", _KEYS)
        assert await native.names() == [native.name("orders")]
        (segment,) = await world.segment_topics("orders")
        assert (await world.pulsar.stats(segment))["msgInCounter"] == 0
        message = await world.until_event("orders", "NamesakeOnBrokers")
        assert "delete theirs once nobody needs what it holds" in message
        await world.until(TOPICS, "orders", lambda body: _reports(body) == ["NamesakeOnBrokers"], what="tells of it")
        await world.until_ready("orders")

        switch = f"namespaces/{world.pulsar_namespace}/autoTopicCreation"
        await world.pulsar.call("POST", switch, {"allowAutoTopicCreation": False})
        await native.call("DELETE", "orders", "?force=true")
        await world.until(TOPICS, "orders", lambda body: not _reports(body), what="tells of nothing")
        with pytest.raises(V5Error) as refused:
            await v5.produce(native.name("orders"), "refused", _KEYS)
        assert refused.value.error.endswith("NotFoundException"), refused.value
    assert await native.names() == []


async def test_R1_a_name_of_a_topic_of_the_brokers_is_taken_for_classic(native: NativeWorld) -> None:
    await _classic_connection(native)
    await native.call("PUT", "theirs", "?numInitialSegments=1", {})
    await native.world.apply(native.topic("theirs", connection_name=_CLASSIC))
    body = await native.world.until_reason("theirs", "NameTaken")
    assert "the brokers have a scalable topic of their own of that name" in condition(body, "Ready")["message"]
    assert await native.world.pulsar.topics(native.world.pulsar_namespace) == []


def _reports(body: Body) -> list[str]:
    return [report["reason"] for report in body["status"].get("reports", ())]
