"""What a soak runs on: brokers, an API server, and three replicas that reach both through proxies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dev.access import PulsarAccess
from dev.instance import LocalCluster
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.support.embedded_pipeline import pipeline_flags
from tests.support.fault_proxy import FaultProxy
from tests.support.proxied_operator import proxy_kubeconfig
from tests.support.running_operator import RunningOperator
from tests.support.soak.patience import PatientKube, PatientView
from tests.support.world import World
from tests.support.world_making import create_namespace, make_world, random_name

REPLICAS = 3
LEASE_SECONDS = 10.0
SAMPLE_SECONDS = 5
# It may begin while the API server is dead.
_BEGIN_SECONDS = 300.0
_FLAGS = (
    f"--lease-seconds={LEASE_SECONDS}",
    # As people run it: with all that is told at DEBUG, logs of hours have no room.
    "--log-level=INFO",
    "--relist-seconds=60",
    "--drift-seconds=20",
    "--prune-seconds=10",
    "--settle-window-seconds=20",
    "--force-delete-after-seconds=30",
    "--consumer-session-grace-seconds=10",
    "--handover-seconds=10",
    "--auto-scale-enabled=true",
    "--auto-scale-interval-seconds=5",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """All of it, running.

    Args:
        cluster: the servers, which may be killed.
        world: the objects and the Pulsar namespace; its clients wait for servers that are dead.
        operators: the first is never ended: its life is as long as the run.
        kube_proxies: between each operator and the API server.
        admin_proxy: between all operators and the brokers.
        folder: for everybody's files.
    """

    cluster: LocalCluster
    world: World
    operators: Sequence[RunningOperator]
    kube_proxies: Sequence[FaultProxy]
    admin_proxy: FaultProxy
    folder: Path

    @property
    def brokers(self) -> PulsarAccess:
        """How the brokers are reached."""
        return self.cluster.pulsar.access

    @property
    def pipelines(self) -> Path:
        """The folder of all pipelines: it is in the command line of whatever runs one."""
        return self.folder / "pipelines"

    def gateways(self) -> list[str]:
        """Addresses of those gateways that may be alive."""
        return [address for one in self.operators if one.running and (address := one.gateway_address)]


@asynccontextmanager
async def soak_stage(cluster: LocalCluster, folder: Path) -> AsyncIterator[Stage]:
    """Start three operators on running servers, whose API server KUBECONFIG names; they are killed at the end."""
    endpoint, brokers, namespace = load_endpoint(), cluster.pulsar.access, random_name("soak")
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(PatientKube(endpoint, field_validation="Strict", manager="a-user"))
        view = await stack.enter_async_context(PatientView(brokers.admin_url, brokers.superuser_token))
        admin = FaultProxy(brokers.admin_url, follow_redirects=True, remembers=False)
        await stack.enter_async_context(admin)
        await create_namespace(kube, namespace)
        load = {"source": "Pipeline", "intervalSeconds": SAMPLE_SECONDS}
        world = await make_world(kube, view, brokers, namespace, admin.url, load=load)
        operators, proxies = [], []
        for number in range(REPLICAS):
            proxy = FaultProxy(endpoint.server, endpoint.ssl_context, endpoint.headers, remembers=False)
            await stack.enter_async_context(proxy)
            kubeconfig = folder / f"{number}.kubeconfig"
            kubeconfig.write_text(proxy_kubeconfig(proxy.url))
            flags = (*_FLAGS, *pipeline_flags(folder / "pipelines" / str(number)))
            log_file = folder / f"operator-{number}.log"
            operator = RunningOperator(kubeconfig, namespace, log_file, flags, start_seconds=_BEGIN_SECONDS)
            stack.callback(operator.kill)
            operators.append(operator)
            proxies.append(proxy)
        await asyncio.gather(*(asyncio.to_thread(operator.start) for operator in operators))
        yield Stage(cluster, world, operators, proxies, admin, folder)
