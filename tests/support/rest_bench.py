"""The admin REST of two real replicas, asked as real service accounts."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import CONNECTIONS
from tests.support.callers import OUR_KINDS, make_caller
from tests.support.native_world import NativeWorld
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.session_client import open_session
from tests.support.v5_client import V5Client
from tests.support.waiting import eventually
from tests.support.world import World

_ASK_SECONDS = 60
_ASK_AGAIN_SECONDS = 30
# No replica dies here, and a busy machine keeps one from renewing its Leases for seconds at a time.
_LEASES = "--lease-seconds=10"


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """What a gateway said."""

    status: int
    body: Any
    operation: str

    @property
    def reason(self) -> str:
        """Why not."""
        return str(self.body["reason"])


@dataclass(frozen=True, slots=True)
class RestBench:
    """Two replicas, and callers of their gateways.

    Args:
        two: the replicas.
        pulsar: the brokers.
        admin: token of an account that may do everything with our kinds in the namespace.
        viewer: one that may get and list.
        stranger: one that may nothing.
    """

    two: Replicas
    pulsar: PulsarAccess
    admin: str
    viewer: str
    stranger: str
    _turns: Iterator[RunningOperator] = field(repr=False)

    @property
    def world(self) -> World:
        """Sees the servers directly."""
        return self.two.world

    def url(self, topic: str = "") -> str:
        """Path of a topic, or of the Pulsar namespace."""
        return f"/admin/v2/scalable/{self.world.pulsar_namespace}" + (f"/{topic}" if topic else "")

    async def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = "",
        body: Any = None,
        at: RunningOperator | None = None,
    ) -> RestAnswer:
        """Ask one replica after the other: as the administrator, with another token, or with none at all (None).

        Asks again for as long as a replica says that it has begun nothing: on a busy machine a look at the caller's
        rights may take too long.
        """
        asked = time.monotonic()
        while True:
            answer, again = await self._ask_once(method, path, token, body, at or next(self._turns))
            if not again or time.monotonic() - asked > _ASK_AGAIN_SECONDS:
                return answer
            await asyncio.sleep(0.2)

    async def _ask_once(
        self, method: str, path: str, token: str | None, body: Any, at: RunningOperator
    ) -> tuple[RestAnswer, bool]:
        headers = {} if token is None else {"Authorization": f"Bearer {token or self.admin}"}
        gateway = at.gateway_url
        timeout = aiohttp.ClientTimeout(total=_ASK_SECONDS)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.request(method, gateway + path, json=body) as response,
        ):
            found = await response.json() if await response.read() else None
            answer = RestAnswer(response.status, found, response.headers.get("X-Scalable-Topics-Operation", ""))
            return answer, response.status == 503 and "Retry-After" in response.headers

    @property
    def native(self) -> NativeWorld:
        """Asks the brokers themselves, where they own the layouts."""
        return NativeWorld(self.world)

    @asynccontextmanager
    async def v5(self, directory: Path) -> AsyncIterator[V5Client]:
        """Pulsar's V5 client, of an application that may do everything."""
        token_file, service_url = self.pulsar.superuser_token_file, self.pulsar.service_url
        async with V5Client.connected(service_url, token_file, directory) as client:
            yield client

    async def create(self, topic: str, segments: int = 2, properties: dict[str, str] | None = None) -> None:
        """Create a topic, and wait until both replicas show it."""
        answer = await self.ask("PUT", f"{self.url(topic)}?numInitialSegments={segments}", body=properties or {})
        assert answer.status == 204, answer
        await self.until_shown(self.url(topic), segments=segments)

    async def until_shown(self, path: str, *, segments: int | None = None) -> None:
        """Wait until both replicas have seen something, a topic with so many segments, say."""
        for operator in self.two.operators:
            await eventually(
                lambda operator=operator: self.ask("GET", path, at=operator),  # type: ignore[misc]
                lambda answer: answer.status == 200 and segments in (None, len(answer.body.get("segments", ()))),
                what=f"{operator.identity} shows {path}",
            )

    def session(self, topic: str, subscription: str, consumer: str) -> Any:
        """A consumer session with any replica."""
        return open_session(next(self._turns).gateway_url, self.url(topic), subscription, self.admin, consumer)

    def application(self) -> PulsarClient:
        """A Pulsar client of an application's."""
        return PulsarClient(self.pulsar.service_url, self.pulsar.superuser_token)

    async def backlogs(self, topic: str, subscription: str) -> dict[int, int | None]:
        """What is left of each recorded segment, as the brokers have it; None where there is no cursor."""
        found = {}
        for segment_id, name in (await self.world.segment_names(topic, topic)).items():
            cursor = (await self.world.pulsar.stats(name))["subscriptions"].get(subscription)
            found[segment_id] = None if cursor is None else int(cursor["msgBacklog"])
        return found


@asynccontextmanager
async def rest_bench(
    pulsar: PulsarAccess, kubernetes: KubernetesAccess, folder: Path, *flags: str, **connection: Any
) -> AsyncIterator[RestBench]:
    """Start one, in namespaces of its own, whose connection maps the Pulsar one to the Kubernetes one.

    `connection` goes into its spec besides.
    """
    async with (
        KubeClient(load_endpoint(), field_validation="Strict", manager="a-user") as kube,
        PulsarView(pulsar.admin_url, pulsar.superuser_token) as view,
        replicas(
            2, kube, view, pulsar, kubernetes.kubeconfig, folder, (*FAST_FLAGS, _LEASES, *flags), **connection
        ) as two,
    ):
        world = two.world
        mapping = {"pulsarNamespace": world.pulsar_namespace, "namespace": world.namespace}
        await world.change(CONNECTIONS, "pulsar", {"pulsarNamespaceMappings": [mapping]})
        await two.until_shared()
        yield RestBench(
            two,
            pulsar,
            admin=await make_caller(kube, world.namespace, "admin", ["*"], resources=OUR_KINDS),
            viewer=await make_caller(kube, world.namespace, "viewer", ["get", "list"], resources=OUR_KINDS),
            stranger=await make_caller(kube, world.namespace, "stranger"),
            _turns=itertools.cycle(two.operators),
        )
