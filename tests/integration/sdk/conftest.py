"""A scalable topic with a leader that tests script, and clients of it."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from scalable_topics.sdk import Client
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.scripted_leader import ScriptedLeader
from tests.support.tcp_proxy import TcpProxy


@pytest.fixture
async def namespace(view: PulsarView) -> str:
    """A Pulsar namespace of this test alone."""
    name = f"tests/s{uuid.uuid4().hex[:12]}"
    await view.create_namespace(name)
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
