"""Thousands of topics: how fast they are made beside a bare loop, and what they cost at rest and over a restart."""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bench.fleet_watch import FleetWatch, watched_fleet
from bench.topic_calls import TopicCalls, manifest, recorded, send_many
from dev.access import PulsarAccess
from dev.broker_settings import Profile
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.crds import install_crds
from tests.support.fleet import process_cpu_seconds, process_memory_mb
from tests.support.metrics import read_page
from tests.support.proxied_operator import proxied_operator
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import RunningOperator
from tests.support.world_making import create_namespace, make_world, random_name

_APPLIED_AT_ONCE = 16
# As an installation has it.
_FLAGS = (
    "--lease-seconds=15",
    "--log-level=INFO",
    "--auto-scale-enabled=true",
)
_FOR_EACH_SECONDS = 5.0
"""How long a topic may take in a long row of them before the measurement is given up."""
_SAMPLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Growth:
    """An operator on its way from no topic to many.

    Args:
        topics: so many were Ready.
        seconds: since the first was applied.
        cpu_seconds: processor time the operator took until then.
        peak_mb: the most resident memory it had until then.
        calls: it had sent to the brokers until then.
        writes: it had made at the API server until then, Leases apart.
    """

    topics: int
    seconds: float
    cpu_seconds: float
    peak_mb: float
    calls: int
    writes: int


@dataclass(frozen=True, slots=True)
class Rest:
    """An operator over many topics in a time in which nothing was to be done.

    Args:
        seconds: how long.
        cpu_share: of one core.
        memory_mb: resident, the most that was seen.
        calls: to the brokers, by operation.
        writes: at the API server, Leases apart.
        compared: how often topics were compared with the brokers, all together.
    """

    seconds: float
    cpu_share: float
    memory_mb: float
    calls: Mapping[str, int]
    writes: int
    compared: int


@dataclass(slots=True)
class Fleet:
    """Many topics of one operator.

    Args:
        kube: the API server.
        operator: looks after them.
        watch: when they became Ready.
        namespace: of the objects.
        pulsar_namespace: of the topics.
    """

    kube: KubeClient
    operator: RunningOperator
    watch: FleetWatch
    namespace: str
    pulsar_namespace: str
    applied_at_seconds: dict[str, float] = field(default_factory=dict)

    async def apply(self, name: str) -> None:
        """Declare one topic."""
        self.applied_at_seconds[name] = time.perf_counter()
        await self.kube.create(TOPICS, self.namespace, manifest(name, self.pulsar_namespace))

    async def grow(self, counts: Sequence[int]) -> list[Growth]:
        """Declare topics as fast as the API server takes them, and wait for the operator to make them."""
        started, cpu_before = time.perf_counter(), process_cpu_seconds(self.operator.pid)
        calls_before, writes_before = await self.calls(), await self.writes()
        numbers = iter(range(counts[-1]))
        had = len(self.watch.ready_at_seconds)

        async def applier() -> None:
            for number in numbers:
                await self.apply(f"topic-{number}")

        found: list[Growth] = []
        peak_mb = 0.0
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_APPLIED_AT_ONCE):
                tasks.create_task(applier())
            for count in counts:
                waiting = asyncio.create_task(
                    self.watch.until_ready(had + count, within_seconds=_FOR_EACH_SECONDS * count + 60)
                )
                while not waiting.done():
                    await asyncio.wait({waiting}, timeout=_SAMPLE_SECONDS)
                    peak_mb = max(peak_mb, process_memory_mb(self.operator.pid))
                await waiting
                now = time.perf_counter()
                growth = Growth(
                    count,
                    now - started,
                    process_cpu_seconds(self.operator.pid) - cpu_before,
                    peak_mb,
                    sum((await self.calls() - calls_before).values()),
                    await self.writes() - writes_before,
                )
                print(growth, flush=True)
                found.append(growth)
        return found

    async def latencies(self, prefix: str, count: int, per_second: float) -> list[float]:
        """Declare topics at an even pace; answers the seconds from declaring each to its being Ready."""
        had = len(self.watch.ready_at_seconds)
        names = [f"{prefix}-{number}" for number in range(count)]
        begins = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number, name in enumerate(names):
                await asyncio.sleep(max(0.0, begins + number / per_second - time.perf_counter()))
                tasks.create_task(self.apply(name))
        await self.watch.until_ready(had + count, within_seconds=120)
        return [self.watch.ready_at_seconds[name] - self.applied_at_seconds[name] for name in names]

    async def rest(self, seconds: float) -> Rest:
        """Watch the operator while nothing is to be done."""
        cpu_before, calls_before = process_cpu_seconds(self.operator.pid), await self.calls()
        writes_before, compared_before = await self.writes(), await self.compared()
        started = time.perf_counter()
        memory_mb = 0.0
        while time.perf_counter() - started < seconds:
            await asyncio.sleep(_SAMPLE_SECONDS)
            memory_mb = max(memory_mb, process_memory_mb(self.operator.pid))
        took = time.perf_counter() - started
        return Rest(
            took,
            (process_cpu_seconds(self.operator.pid) - cpu_before) / took,
            memory_mb,
            await self.calls() - calls_before,
            await self.writes() - writes_before,
            await self.compared() - compared_before,
        )

    async def calls(self) -> Counter[str]:
        """Calls that the operator has sent to the brokers in this life, by operation."""
        return await self._counted("scalable_topics_admin_call_seconds", "_count", "operation")

    async def compared(self) -> int:
        """Reconciles of topics in this life."""
        found = await self._counted("scalable_topics_reconciles", "_total", "kind")
        return found["ScalableTopic"]

    async def _counted(self, family: str, ending: str, label: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for one in text_string_to_metric_families(await read_page(self.operator)):
            if one.name == family:
                for sample in one.samples:
                    if sample.name == family + ending:
                        found[sample.labels[label]] += int(sample.value)
        return found

    async def writes(self) -> int:
        """Changes of our kinds' objects by anybody, as the API server counts them itself; creations apart."""
        endpoint = load_endpoint()
        async with (
            aiohttp.ClientSession(headers=endpoint.headers, timeout=aiohttp.ClientTimeout(total=60)) as session,
            session.get(endpoint.server + "/metrics", ssl=endpoint.ssl_context or True) as response,
        ):
            lines = (await response.text()).splitlines()
        wanted = re.compile(r'apiserver_request_total{.*group="scalabletopics.io".*verb="(PATCH|APPLY|PUT|DELETE)"')
        return sum(int(float(line.rpartition(" ")[2])) for line in lines if wanted.match(line))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    kept = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


@asynccontextmanager
async def cluster(shape: Shape) -> AsyncIterator[LocalCluster]:
    """A cluster with nothing in it; this process's environment names it meanwhile."""
    started = LocalCluster.private(shape)
    await asyncio.to_thread(started.start)
    try:
        with _environment(started.environment()):
            yield started
    finally:
        await asyncio.to_thread(started.stop, keep_logs=False)


@asynccontextmanager
async def fleet(access: PulsarAccess, folder: Path, *flags: str) -> AsyncIterator[Fleet]:
    """An operator with a connection and no topic yet, in a namespace of its own."""
    namespace = random_name("fleet")
    async with KubeClient() as kube, PulsarView(access.admin_url, access.superuser_token) as view:
        await create_namespace(kube, namespace)
        world = await make_world(kube, view, access, namespace, probeIntervalSeconds=60)
        operator = RunningOperator(
            Path(os.environ["KUBECONFIG"]), namespace, folder / "operator.log", (*_FLAGS, *flags)
        )
        try:
            await asyncio.to_thread(operator.start)
            async with watched_fleet(namespace) as watch:
                yield Fleet(kube, operator, watch, namespace, world.pulsar_namespace)
        finally:
            operator.kill()


async def main(counts: Sequence[int], rest_seconds: float, latency_topics: int) -> None:
    shape = Shape(profile=Profile.FLEET)
    with tempfile.TemporaryDirectory() as folder:
        async with cluster(shape) as local:
            await asyncio.to_thread(install_crds)
            access = local.pulsar.access
            async with proxied_operator(access, Path(folder), _FLAGS) as bench:
                calls = await recorded(bench)
            print(len(calls), "calls a topic", flush=True)
            async with PulsarView(access.admin_url, access.superuser_token) as view:
                await view.create_namespace("tests/bare")
            seconds = await send_many(calls, access, "tests/bare", "bare", counts)
            print("bare", {n: (s, n / s) for n, s in seconds.items()}, flush=True)
        async with cluster(shape) as local:
            await asyncio.to_thread(install_crds)
            async with fleet(local.pulsar.access, Path(folder)) as many:
                half = counts[0] / seconds[counts[0]] / 2
                if latency_topics:
                    found = sorted(await many.latencies("early", latency_topics, half))
                    print(
                        "latency", half, statistics.median(found), found[int(len(found) * 0.99)], found[-1], flush=True
                    )
                growth = await many.grow(counts)
                for one in growth:
                    print(one.topics / one.seconds, one, flush=True)
                if rest_seconds:
                    print(await many.rest(rest_seconds), flush=True)


if __name__ == "__main__":
    import sys

    asyncio.run(main([int(one) for one in sys.argv[1].split(",")], float(sys.argv[2]), int(sys.argv[3])))
