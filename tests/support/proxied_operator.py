"""An operator that reaches both the API server and the brokers only through proxies that a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.support.fault_proxy import FaultProxy
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.world import World
from tests.support.world_making import create_namespace, make_world, random_name

# Calls that a test holds take up places, and shall not be given up before the test has done with them.
_PATIENT = {"maxConcurrentRequests": 64, "requestTimeoutSeconds": 60}


@dataclass(frozen=True, slots=True)
class ProxiedOperator:
    """An operator of a test's own behind two proxies, and the world it works in.

    Args:
        world: sees servers directly, not through the proxies.
        operator: the process; not started yet.
        kube: all its calls to the API server, kopf's watches included.
        admin: all its calls to the brokers.
        pulsar: the brokers themselves.
    """

    world: World
    operator: RunningOperator
    kube: FaultProxy
    admin: FaultProxy
    pulsar: PulsarAccess

    async def start(self) -> None:
        """Start the operator unless it runs, and wait until it has listed everything."""
        if not self.operator.running:
            await asyncio.to_thread(self.operator.start)

    async def restart(self) -> None:
        """Kill it with SIGKILL, if it lives, and start it again."""
        self.operator.kill()
        await self.start()


@asynccontextmanager
async def proxied_operator(
    pulsar: PulsarAccess,
    folder: Path,
    flags: tuple[str, ...] = FAST_FLAGS,
    *,
    follow_redirects: bool = True,
    **connection: Any,
) -> AsyncIterator[ProxiedOperator]:
    """Make one in a namespace of its own; it is killed at the end.

    Args:
        pulsar: the brokers.
        folder: for its log and kubeconfig.
        flags: of the operator.
        follow_redirects: let the proxy follow redirects, so that no call goes past it; else they reach the operator.
        connection: goes into the spec of its connection.

    KUBECONFIG must name the API server.
    """
    endpoint = load_endpoint()
    namespace = random_name("proxied")
    async with (
        KubeClient(endpoint, field_validation="Strict") as kube,
        PulsarView(pulsar.admin_url, pulsar.superuser_token) as view,
        FaultProxy(endpoint.server, endpoint.ssl_context, endpoint.headers) as kube_proxy,
        FaultProxy(pulsar.admin_url, follow_redirects=follow_redirects) as admin_proxy,
    ):
        await create_namespace(kube, namespace)
        world = await make_world(kube, view, pulsar, namespace, admin_proxy.url, **{"limits": _PATIENT, **connection})
        kubeconfig = folder / f"{namespace}.kubeconfig"
        kubeconfig.write_text(proxy_kubeconfig(kube_proxy.url))
        operator = RunningOperator(kubeconfig, namespace, folder / f"{namespace}.log", flags)
        try:
            yield ProxiedOperator(world, operator, kube_proxy, admin_proxy, pulsar)
        finally:
            operator.kill()


def proxy_kubeconfig(server: str) -> str:
    """A kubeconfig for a proxy, without credentials: the proxy adds its own."""
    name = "proxy"
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": server}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )
