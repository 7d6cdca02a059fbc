"""examples/fastapi_producer.py and examples/producer.yaml, with a real broker, operator and API server."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client, GatewayOptions, MessageId, StreamMessage
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.examples import apply_example
from tests.support.order_service import MANIFESTS, OrderService, container_of, order_service
from tests.support.running_operator import RunningOperator
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually
from tests.support.world import World, phase, segment_topic
from tests.support.world_making import random_name

CUSTOMERS = tuple(f"customer-{number}" for number in range(6))
_AFTERWARDS = 5
_PAUSE_SECONDS = 0.02


def an_order(customer: str = "c", number: int = 0, **other: Any) -> dict[str, Any]:
    return {"id": f"{customer}-{number}", "customer": customer, "article": "b\u00f6\u00f6k", "quantity": 1, **other}


def serving(
    world: World, pulsar: PulsarAccess, folder: Path, service_url: str = ""
) -> AbstractAsyncContextManager[OrderService]:
    return order_service(
        folder,
        PULSAR_SERVICE_URL=service_url or pulsar.service_url,
        TOPIC=str(world.topic_name("orders")),
        PULSAR_TOKEN=pulsar.superuser_token,
    )


@pytest.fixture
async def name(world: World) -> str:
    """Of a topic's object, which is there; its topic is `orders`."""
    name = random_name("orders")
    await world.apply(manifests.topic(name, str(world.topic_name("orders"))))
    await world.until_ready(name)
    return name


@pytest.fixture
async def service(world: World, name: str, pulsar: PulsarAccess, tmp_path: Path) -> AsyncIterator[OrderService]:
    async with serving(world, pulsar, tmp_path) as found:
        await found.until_ready()
        yield found


async def stored_messages(world: World, name: str) -> int:
    """As many as brokers have of all segments."""
    layout, topic = await world.layout(name), world.topic_name("orders")
    stats = [await world.pulsar.stats(segment_topic(topic, segment)) for segment in layout.segments.values()]
    return sum(one["msgInCounter"] for one in stats)


@pytest.mark.both_lines
async def test_orders_of_a_customer_stay_in_order_through_a_split(
    world: World,
    name: str,
    service: OrderService,
    shared_operator: RunningOperator,
    pulsar: PulsarAccess,
) -> None:
    stored: dict[str, list[MessageId]] = {customer: [] for customer in CUSTOMERS}
    is_split = asyncio.Event()

    async def ask(customer: str) -> None:
        left = _AFTERWARDS
        while left:
            left -= is_split.is_set()
            number = len(stored[customer])
            answer = await service.order(an_order(customer, number))
            assert answer.status == 202, answer
            stored[customer].append(MessageId.deserialize(bytes.fromhex(answer.body["message_id"])))
            assert stored[customer][-1].segment_id == answer.body["segment_id"]
            await asyncio.sleep(_PAUSE_SECONDS)

    received: dict[str, list[StreamMessage]] = defaultdict(list)
    token = await make_caller(world.kube, world.namespace, random_name("consumer"), ["consume"])
    gateway = GatewayOptions(shared_operator.gateway_url, token=token)
    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token), gateway=gateway) as client:
        consumer = await client.stream_consumer(str(world.topic_name("orders")), "billing")
        async with asyncio.TaskGroup() as tasks:
            for customer in CUSTOMERS:
                tasks.create_task(ask(customer))
            assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
            is_split.set()
        count = sum(map(len, stored.values()))
        while (left := count - sum(map(len, received.values()))) > 0:
            messages = await consumer.receive_many(min(left, 100), timeout_seconds=30)
            for message in messages:
                received[str(message.key)].append(message)
            await consumer.acknowledge_cumulative(messages[-1])
        with pytest.raises(TimeoutError):
            await consumer.receive(timeout_seconds=1)
    for customer in CUSTOMERS:
        orders = [json.loads(message.data) for message in received[customer]]
        assert orders == [an_order(customer, number) for number in range(len(stored[customer]))]
        assert [message.message_id for message in received[customer]] == stored[customer]
        assert [place.segment_id for place in stored[customer]] == sorted(
            place.segment_id for place in stored[customer]
        )
    assert {place.segment_id for places in stored.values() for place in places} == {0, 1, 2}
    assert "Application shutdown complete" in await service.stop()


async def test_what_is_no_order_is_refused_with_its_faults_and_not_sent(
    world: World, name: str, service: OrderService
) -> None:
    for body, where in (
        (b"{", ["body", 1]),
        (b"[]", ["body"]),
        (b'{"id": "\\ud800", "customer": "c", "article": "a", "quantity": 1}', ["body", "id"]),
        (b'{"id": "i", "customer": "c", "article": "a", "quantity": NaN}', ["body", "quantity"]),
        (b'{"\\ud800": 1}', ["body"]),
        ({"customer": "c", "article": "a", "quantity": 1}, ["body", "id"]),
        (an_order(customer=""), ["body", "customer"]),
        (an_order(customer="c" * 101, id="i"), ["body", "customer"]),
        (an_order(quantity=0), ["body", "quantity"]),
        (an_order(quantity=1001), ["body", "quantity"]),
        (an_order(quantity="one"), ["body", "quantity"]),
        (an_order(more=1), ["body", "more"]),
    ):
        answer = await service.order(body)
        assert (answer.status, answer.body["detail"][0]["loc"]) == (422, where), answer
        assert answer.body["detail"][0]["msg"]
        assert answer.retry_after is None
    assert (await service.order(b"\xff")).status == 400
    assert (await service.order(b" " * 20_000)).status == 413
    assert await stored_messages(world, name) == 0
    assert (await service.order(an_order())).status == 202
    assert await stored_messages(world, name) == 1
    assert "Traceback" not in await service.stop()


async def test_without_the_topic_it_lives_and_is_ready_once_there_is_one(
    world: World, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    async with serving(world, pulsar, tmp_path) as service:
        answer = await eventually(
            lambda: service.order(an_order()),
            lambda answer: "there is no scalable topic" in answer.body["detail"],
            what="the service knows that there is no topic",
        )
        assert (answer.status, answer.retry_after) == (503, "5")
        assert str(world.topic_name("orders")) in answer.body["detail"]
        assert (await service.get("/healthz")).status == 200
        assert (await service.get("/readyz")).status == 503
        # What is wrong for ever is not to be sent again.
        assert (await service.order(an_order(quantity=0))).status == 422
        name = random_name("orders")
        await world.apply(manifests.topic(name, str(world.topic_name("orders"))))
        await service.until_ready()
        assert (await service.order(an_order())).status == 202
        assert await stored_messages(world, name) == 1
        said = await service.stop()
    assert pulsar.superuser_token not in said
    assert "Traceback" not in said


async def test_an_order_that_no_broker_acknowledges_is_not_called_stored(
    world: World, name: str, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    async with TcpProxy(pulsar.service_url) as proxy, serving(world, pulsar, tmp_path, proxy.service_url) as service:
        await service.until_ready()
        assert (await service.order(an_order(number=0))).status == 202
        proxy.stall(requests=False)
        answer = await service.order(an_order(number=1))
        # It is stored, as it happens; the service cannot know.
        assert (answer.status, answer.retry_after) == (504, None), answer
        assert "no broker had acknowledged" in answer.body["detail"]
        proxy.flow()
        await eventually(
            lambda: service.order(an_order(number=2)), lambda answer: answer.status == 202, what="orders are taken"
        )
        await service.stop()


async def test_the_manifests_are_taken_and_fit_the_program_and_each_other(world: World, service: OrderService) -> None:
    made = await apply_example(world.kube, world.namespace, MANIFESTS)
    pods, container = made["Deployment"]["spec"]["template"], container_of(made["Deployment"])
    labels = pods["metadata"]["labels"]
    assert made["Service"]["spec"]["selector"].items() <= labels.items()
    assert made["Deployment"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert pods["spec"]["serviceAccountName"] == made["ServiceAccount"]["metadata"]["name"]
    (port,), (served,) = container["ports"], made["Service"]["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    assert f"--port={port['containerPort']}" in container["command"]
    for probe in ("livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == port["name"]
        assert (await service.get(asked["path"])).status == 200
