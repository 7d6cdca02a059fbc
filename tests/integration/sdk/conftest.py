"""A scalable topic with a leader that tests script, and clients of it."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from scalable_topics.sdk import Client, GatewayOptions
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.scripted_leader import ScriptedLeader
from tests.support.scripted_migration import ScriptedMigration
from tests.support.tcp_proxy import TcpProxy

_KEEPS_IDLE_TOPICS = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 3600,
    "deleteWhileInactive": False,
}


@pytest.fixture
async def namespace(view: PulsarView) -> str:
    """A Pulsar namespace of this test alone."""
    name = f"tests/s{uuid.uuid4().hex[:12]}"
    await view.create_namespace(name)
    # Brokers of tests delete what nobody uses after 10 s, which reading all of it again may take.
    await view.call("POST", f"namespaces/{name}/inactiveTopicPolicies", _KEEPS_IDLE_TOPICS)
    return name


MakeLeader = Callable[..., Any]


@pytest.fixture
async def lead(view: PulsarView, pulsar: PulsarAccess, namespace: str) -> AsyncIterator[MakeLeader]:
    """A function that makes a scalable topic and its leader."""
    async with AsyncExitStack() as stack:

        async def make(local: str = "orders", **shape: Any) -> ScriptedLeader:
            topic = TopicName.parse(f"{namespace}/{local}")
            leader = ScriptedLeader(topic, view, pulsar.service_url, pulsar.superuser_token, **shape)
            return await stack.enter_async_context(leader)

        yield make


@pytest.fixture
async def client(pulsar: PulsarAccess) -> AsyncIterator[Client]:
    """A client of an application."""
    async with Client(
        pulsar.service_url, authentication=pulsar_client.AuthenticationToken(pulsar.superuser_token)
    ) as found:
        yield found


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


MakeCoordinator = Callable[..., Any]


@pytest.fixture
async def coordinate(view: PulsarView) -> AsyncIterator[MakeCoordinator]:
    """A function that coordinates the consumers of a topic."""
    async with AsyncExitStack() as stack:

        async def make(leader: ScriptedLeader, **settings: Any) -> ScriptedCoordinator:
            return await stack.enter_async_context(ScriptedCoordinator(leader, view, **settings))

        yield make


Connect = Callable[..., Client]


@pytest.fixture
async def connect(pulsar: PulsarAccess) -> AsyncIterator[Connect]:
    """A function that makes the client of an application, with the gateway of a coordinator if there is one."""
    async with AsyncExitStack() as stack:

        def make(
            coordinator: ScriptedCoordinator | None = None, *, service_url: str = "", token: str = "", **settings: Any
        ) -> Client:
            client = Client(
                service_url or pulsar.service_url,
                pulsar_client.AuthenticationToken(token or pulsar.superuser_token),
                gateway=None if coordinator is None else GatewayOptions(coordinator.url, token="of-the-application"),
                **settings,
            )
            stack.push_async_callback(client.close)
            return client

        yield make


Ordinary = Callable[[int], Any]
Migrate = Callable[[TopicName, int], Any]


@pytest.fixture(params=[True, False], ids=["created by use", "created by hand"])
async def is_created_by_use(request: pytest.FixtureRequest, view: PulsarView, namespace: str) -> bool:
    """Whether brokers make topics of the test's namespace by themselves."""
    by_use: bool = request.param
    if not by_use:
        await view.call("POST", f"namespaces/{namespace}/autoTopicCreation", {"allowAutoTopicCreation": False})
    return by_use


@pytest.fixture
async def ordinary(view: PulsarView, namespace: str) -> Ordinary:
    """A function that makes an ordinary topic with so many partitions, 0 for one that is not partitioned."""

    async def make(partitions: int) -> TopicName:
        topic = TopicName.parse(f"{namespace}/orders")
        if partitions:
            await view.create_partitioned(topic.persistent, partitions)
        else:
            await view.create_topic(topic.persistent)
        return topic

    return make


@pytest.fixture
async def migrate(view: PulsarView, pulsar: PulsarAccess) -> AsyncIterator[Migrate]:
    """A function that makes the operator's side of a topic's migration."""
    async with AsyncExitStack() as stack:

        async def make(topic: TopicName, partitions: int) -> ScriptedMigration:
            leader = ScriptedMigration(topic, view, pulsar.service_url, pulsar.superuser_token, partitions=partitions)
            return await stack.enter_async_context(leader)

        yield make
