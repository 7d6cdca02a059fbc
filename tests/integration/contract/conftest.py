"""Each subject twice: the real server, and the model that stands for it in simulations."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import NAMESPACES, TOPICS
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.operations.protocols import TopicBackend
from tests.integration.backends.plain_http import Clients, PlainHttp, admin_for
from tests.simulation.faults import Nature
from tests.simulation.fleet.api_server import Event, ModelApiServer
from tests.simulation.fleet.kube_client import ModelKubeClient
from tests.simulation.model_backend import ModelBackend
from tests.simulation.model_broker import ModelBroker
from tests.simulation.model_clock import ModelClock
from tests.support.crds import install_crds
from tests.support.object_watch import watched_object

T = TypeVar("T")
Told = tuple[str, dict[str, Any]]
"""Kind of an event of a watch, and the object."""


class _DirectClient(ModelKubeClient):
    """Straight to the model, without a network."""

    def __init__(self, server: ModelApiServer) -> None:
        super().__init__(self._answer)
        self.server = server

    async def _answer(
        self, method: str, path: str, params: Mapping[str, str], data: str | None, timeout_seconds: float
    ) -> tuple[int, str]:
        return self.server.request(method, path, params, data)


@pytest.fixture(params=["real", "model"])
async def kube(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubeClient]:
    """A client of an API server."""
    if request.param == "model":
        async with _DirectClient(ModelApiServer(timestamp_now)) as client:
            yield client
        return
    access: KubernetesAccess = request.getfixturevalue("kubernetes")
    monkeypatch.setenv("KUBECONFIG", str(Path(access.kubeconfig)))
    await asyncio.to_thread(install_crds)
    async with KubeClient(load_endpoint()) as client:
        yield client


@asynccontextmanager
async def watched_topic(kube: KubeClient, namespace: str, name: str) -> AsyncIterator[Callable[[], list[Told]]]:
    """What a watch tells of a ScalableTopic, oldest first."""
    if not isinstance(kube, _DirectClient):
        async with watched_object(TOPICS, namespace, name) as seen:
            yield lambda: [(kind, body) for _, kind, body in seen]
        return
    told: list[Told] = []

    def tell(event: Event) -> None:
        if event.key == ObjectKey(TOPICS.plural, namespace, name):
            told.append((event.kind, json.loads(event.text)))

    end = kube.server.watch(tell)
    yield lambda: told
    end()


@pytest.fixture
async def namespace(kube: KubeClient) -> str:
    """A Kubernetes namespace of this test alone."""
    name = f"contract-{uuid.uuid4().hex[:10]}"
    await kube.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


class Attached(Protocol):
    """A client that is connected."""

    async def leave(self) -> None:
        """Disconnect."""


class Brokers(Protocol):
    """Brokers, as the operator and as clients see them."""

    backend: TopicBackend
    topic: TopicName

    async def send(self, name: str, messages: int) -> bool:
        """Write messages, one an entry; False when the topic takes none."""

    async def attach_producer(self, name: str) -> Attached:
        """Connect a producer."""

    async def attach_consumer(self, name: str, subscription: str) -> Attached:
        """Connect a consumer."""

    async def read(self, name: str, subscription: str, messages: int) -> None:
        """Receive and acknowledge so many messages."""

    async def create(self, name: str) -> None:
        """Make a topic that is no segment."""


@dataclass
class _Leaving:
    how: Callable[[], Any]

    async def leave(self) -> None:
        await asyncio.to_thread(self.how)


@dataclass
class RealBrokers:
    """Real brokers and pulsar-client."""

    backend: TopicBackend
    topic: TopicName
    clients: Clients
    plain: PlainHttp

    async def send(self, name: str, messages: int) -> bool:
        try:
            await self.clients.send(name, *(f"m{number}" for number in range(messages)))
        except Exception:
            return False
        return True

    async def attach_producer(self, name: str) -> Attached:
        producer = await self.clients.producer(name)
        return _Leaving(producer.close)

    async def attach_consumer(self, name: str, subscription: str) -> Attached:
        consumer = await self.clients.consumer(name, subscription)
        return _Leaving(consumer.close)

    async def read(self, name: str, subscription: str, messages: int) -> None:
        consumer = await self.clients.consumer(name, subscription)
        for _ in range(messages):
            message = await asyncio.to_thread(consumer.receive, 10_000)
            await asyncio.to_thread(consumer.acknowledge, message)
        await asyncio.to_thread(consumer.close)

    async def create(self, name: str) -> None:
        await self.plain.do("PUT", name.replace("://", "/"), {})


class _DirectLine:
    async def call(self, verb: str, target: str, nature: Nature, effect: Callable[[], T]) -> T:
        return effect()


@dataclass
class ModelBrokers:
    """The model."""

    topic: TopicName
    clock: ModelClock = field(default_factory=ModelClock)
    attached: int = 0

    def __post_init__(self) -> None:
        self.broker = ModelBroker(clock=self.clock)
        self.backend: TopicBackend = ModelBackend(self.broker, _DirectLine(), self.clock)

    async def send(self, name: str, messages: int) -> bool:
        return [self.broker.produce(name) for _ in range(messages)] == [True] * messages

    async def attach_producer(self, name: str) -> Attached:
        self.attached += 1
        producer = f"producer-{self.attached}"
        assert self.broker.attach(name, producer)
        return _Leaving(lambda: self.broker.topics[name].producers.discard(producer))

    async def attach_consumer(self, name: str, subscription: str) -> Attached:
        cursor = self.broker.topics[name].cursors[subscription]
        cursor.consumers += 1

        def leave() -> None:
            cursor.consumers -= 1

        return _Leaving(leave)

    async def read(self, name: str, subscription: str, messages: int) -> None:
        assert self.broker.acknowledge(name, subscription, messages) == messages

    async def create(self, name: str) -> None:
        assert self.broker.create(name)


@pytest.fixture(params=["real", "model"])
async def brokers(request: pytest.FixtureRequest) -> AsyncIterator[Brokers]:
    """Brokers, and the name of a scalable topic of this test alone."""
    local = f"c{uuid.uuid4().hex[:12]}"
    if request.param == "model":
        yield ModelBrokers(TopicName("team", local, "orders"))
        return
    access: PulsarAccess = request.getfixturevalue("pulsar")
    plain = PlainHttp(access.admin_url, access.superuser_token)
    await plain.do("PUT", f"namespaces/team/{local}")
    clients = Clients(access.service_url, access.superuser_token)
    async with admin_for(access, access.superuser_token) as admin:
        yield RealBrokers(ClassicBackend(admin), TopicName("team", local, "orders"), clients, plain)
    await asyncio.to_thread(clients.close)
