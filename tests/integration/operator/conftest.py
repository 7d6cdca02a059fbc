"""A running operator and a world for each test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.support.crds import install_crds
from tests.support.native_world import NativeWorld
from tests.support.proxied_operator import ProxiedOperator, proxied_operator
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.rest_bench import RestBench, rest_bench
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.v5_client import V5Client
from tests.support.world import NATIVE_CONNECTION, World
from tests.support.world_making import create_namespace, make_world, random_name

MakeOperator = Callable[..., Awaitable[RunningOperator]]
MakeProxied = Callable[..., Awaitable[ProxiedOperator]]


async def _create_namespace(name: str) -> None:
    async with KubeClient(load_endpoint()) as kube:
        await create_namespace(kube, name)


def _guest_of(namespace: str) -> str:
    return f"{namespace}-guest"


@pytest.fixture(scope="session")
def kube_environment(kubernetes: KubernetesAccess) -> Iterator[KubernetesAccess]:
    """The API server with our CRDs, and KUBECONFIG naming it for this process."""
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(kubernetes.kubeconfig)
    install_crds()
    yield kubernetes
    if before is None:
        del os.environ["KUBECONFIG"]
    else:
        os.environ["KUBECONFIG"] = before


@pytest.fixture
async def kube(kube_environment: KubernetesAccess) -> AsyncIterator[KubeClient]:
    """An administrator's client that refuses fields the schema does not know."""
    async with KubeClient(load_endpoint(), field_validation="Strict", manager="a-user") as client:
        yield client


@pytest.fixture(scope="session")
def shared_operator(
    kube_environment: KubernetesAccess, pulsar: PulsarAccess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningOperator]:
    """One operator a test worker, with short intervals; it watches two namespaces that its tests share.

    Other brokers behind `pulsar` have another operator: one connection of that name leads to one cluster.
    """
    namespace = random_name("shared")
    log_file = tmp_path_factory.mktemp("operator") / "operator.log"
    # Nobody takes over from it, so its Lease is an ordinary one, which a busy machine does not make it lose.
    flags = (*FAST_FLAGS, "--lease-seconds=15", f"--namespaces={namespace},{_guest_of(namespace)}")
    operator = RunningOperator(kube_environment.kubeconfig, namespace, log_file, flags)
    asyncio.run(_create_namespace(namespace))
    asyncio.run(_create_namespace(_guest_of(namespace)))
    operator.start()
    yield operator
    operator.stop()


@pytest.fixture
async def world(
    shared_operator: RunningOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> AsyncIterator[World]:
    """A Pulsar namespace of this test's own, and connection `pulsar` in the shared operator's namespace."""
    world = await make_world(kube, view, pulsar, shared_operator.namespace)
    yield world
    await world.tidy_up()


@pytest.fixture
async def native(
    shared_operator: RunningOperator, kube: KubeClient, native_pulsar: PulsarAccess
) -> AsyncIterator[NativeWorld]:
    """A Pulsar namespace of this test's own on brokers of Pulsar 5, and connection `pulsar-5` to them."""
    async with PulsarView(native_pulsar.admin_url, native_pulsar.superuser_token) as view:
        world = await make_world(
            kube,
            view,
            native_pulsar,
            shared_operator.namespace,
            connection_name=NATIVE_CONNECTION,
            backend="Auto",
        )
        yield NativeWorld(world)
        await world.tidy_up()


@pytest.fixture
async def v5(native_pulsar: PulsarAccess, tmp_path: Path) -> AsyncIterator[V5Client]:
    """Pulsar's V5 client."""
    service, token = native_pulsar.service_url, native_pulsar.superuser_token_file
    async with V5Client.connected(service, token, tmp_path) as client:
        yield client


@pytest.fixture
async def guest(world: World) -> AsyncIterator[World]:
    """The same Pulsar namespace seen from another Kubernetes namespace, which has no connection of its own."""
    guest = World(world.kube, _guest_of(world.namespace), world.pulsar, world.pulsar_namespace, world.admin_url)
    yield guest
    await guest.tidy_up()


@pytest.fixture
def pulsar_client(pulsar: PulsarAccess) -> Iterator[PulsarClient]:
    """A superuser's Pulsar client, as applications use it."""
    with PulsarClient(pulsar.service_url, pulsar.superuser_token) as client:
        yield client


@pytest.fixture
async def own_operator(kube_environment: KubernetesAccess, tmp_path: Path) -> AsyncIterator[MakeOperator]:
    """Makes operators of this test's own, each with a namespace of its own; not started yet, killed at the end."""
    made: list[RunningOperator] = []

    async def make(flags: tuple[str, ...] = FAST_FLAGS, kubeconfig: Path | None = None) -> RunningOperator:
        namespace = random_name("own")
        operator = RunningOperator(
            kubeconfig or kube_environment.kubeconfig, namespace, tmp_path / f"{namespace}.log", flags
        )
        await _create_namespace(namespace)
        made.append(operator)
        return operator

    yield make
    for operator in made:
        operator.kill()


@pytest.fixture
async def proxied(
    kube_environment: KubernetesAccess, pulsar: PulsarAccess, tmp_path: Path
) -> AsyncIterator[MakeProxied]:
    """Makes operators of this test's own behind proxies; not started yet, killed at the end."""
    async with AsyncExitStack() as stack:

        async def make(brokers: PulsarAccess | None = None, **options: Any) -> ProxiedOperator:
            return await stack.enter_async_context(proxied_operator(brokers or pulsar, tmp_path, **options))

        yield make


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(
    kube_environment: KubernetesAccess, pulsar: PulsarAccess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProxiedOperator]:
    """An operator behind proxies that the tests of a module share; each leaves it as it likes, alive or dead."""
    flags = (*FAST_FLAGS, "--drift-seconds=8")
    async with proxied_operator(pulsar, tmp_path_factory.mktemp("bench"), flags) as made:
        yield made


@pytest.fixture
async def two(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Replicas]:
    """Two replicas of an operator with short intervals."""
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, FAST_FLAGS) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rest(
    pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RestBench]:
    """A gateway and its callers, which the tests of a module share."""
    async with rest_bench(pulsar, kube_environment, tmp_path_factory.mktemp("rest")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def native_rest(
    native_pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RestBench]:
    """The same where the brokers are of Pulsar 5, and so own the layouts of what is made."""
    folder = tmp_path_factory.mktemp("rest-5")
    async with rest_bench(native_pulsar, kube_environment, folder, "--auto-scale-enabled=true", backend="Auto") as made:
        yield made
