"""Many topics of one operator: how fast they are made, what they cost at rest, and how long a restart takes."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bench.fleet_watch import FleetWatch, watched_fleet
from bench.profiles import keep_text, under_profiler
from bench.stage import Stage
from bench.topic_calls import manifest
from dev.console import say
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.metrics import read_page
from tests.support.processes import process_cpu_seconds, process_memory_mb
from tests.support.running_operator import RunningOperator
from tests.support.world_making import create_namespace, make_world, random_name

# As an installation has it; RunningOperator's own defaults are those of tests.
_FLAGS = ("--lease-seconds=15", "--log-level=INFO", "--auto-scale-enabled=true")
_APPLIED_AT_ONCE = 16
_FOR_EACH_SECONDS = 2.0
"""How long a topic may take in a long row of them before the measurement is given up."""
_SAMPLE_SECONDS = 1.0
# The operator is what gathers a page of metrics.
_SCRAPE_SECONDS = 5.0
_START_SECONDS = 300.0
_CALLS = "scalable_topics_admin_call_seconds_count"
_RECONCILES = "scalable_topics_reconciles_total"
_WAITING = "scalable_topics_queue_waiting"
_COUNTED = (_CALLS, _RECONCILES, _WAITING)
_TOPICS_DONE = {"kind": TOPICS.plural, "result": "done"}
_WRITE = re.compile(r'apiserver_request_total{.*group="scalabletopics.io".*verb="(PATCH|APPLY|PUT|DELETE)"')


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operator did and took in some time.

    Args:
        seconds: how long.
        cpu_seconds: processor time.
        memory_mb: the most resident memory that was seen.
        calls: to the brokers, by operation.
        writes: changes of our kinds' objects, creations apart, as the API server counts them.
        reconciles: of topics.
    """

    seconds: float
    cpu_seconds: float
    memory_mb: float
    calls: Mapping[str, int]
    writes: int
    reconciles: int

    @property
    def cores(self) -> float:
        """Processor time as a share of one core."""
        return self.cpu_seconds / self.seconds


@dataclass(slots=True)
class _Counts:
    """What an operator's metrics say of this life of it.

    Args:
        calls: to the brokers, by operation.
        reconciles: of topics.
        waiting: objects in its queue.
    """

    calls: Counter[str] = field(default_factory=Counter)
    reconciles: int = 0
    waiting: int = 0


class Meter:
    """Adds up what an operator does from the moment that this is made, by `begin`."""

    def __init__(self, operator: RunningOperator) -> None:
        self._operator = operator
        self._started = time.perf_counter()
        self._cpu_seconds = process_cpu_seconds(operator.pid)
        self._memory_mb = 0.0
        self._counts = _Counts()
        self._writes = 0

    @classmethod
    async def begin(cls, operator: RunningOperator) -> Meter:
        """Begin now. The operator runs."""
        meter = cls(operator)
        meter._counts = await _counted(operator)
        meter._writes = await _written()
        return meter

    def sample(self) -> None:
        """Look at its memory."""
        self._memory_mb = max(self._memory_mb, process_memory_mb(self._operator.pid))

    async def read(self) -> Cost:
        """What it did and took until now."""
        seconds, cpu_seconds = time.perf_counter() - self._started, process_cpu_seconds(self._operator.pid)
        self.sample()
        counts = await _counted(self._operator)
        return Cost(
            seconds,
            cpu_seconds - self._cpu_seconds,
            self._memory_mb,
            counts.calls - self._counts.calls,
            await _written() - self._writes,
            counts.reconciles - self._counts.reconciles,
        )


@dataclass(slots=True)
class Fleet:
    """Many topics of one operator.

    Args:
        kube: the API server.
        operator: looks after them.
        watch: when they became Ready.
        namespace: of the objects.
        pulsar_namespace: of the topics.
        applied_at_seconds: monotonic time at which each was declared, by its object's name.
    """

    kube: KubeClient
    operator: RunningOperator
    watch: FleetWatch
    namespace: str
    pulsar_namespace: str
    applied_at_seconds: dict[str, float] = field(default_factory=dict)

    async def apply(self, name: str) -> None:
        """Declare one topic."""
        self.applied_at_seconds[name] = time.monotonic()
        await self.kube.create(TOPICS, self.namespace, manifest(name, self.pulsar_namespace))

    async def grow(self, prefix: str, counts: Sequence[int]) -> dict[int, Cost]:
        """Declare topics as fast as the API server takes them, and wait for the operator to make them.

        Args:
            prefix: of their names.
            counts: ascending; the last is how many there are. Answered is what it took until so many were Ready.
        """
        meter, had = await Meter.begin(self.operator), len(self.watch.ready_at_seconds)
        numbers = iter(range(counts[-1]))

        async def applier() -> None:
            for number in numbers:
                await self.apply(f"{prefix}-{number}")

        found: dict[int, Cost] = {}
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_APPLIED_AT_ONCE):
                tasks.create_task(applier())
            for count in counts:
                within_seconds = 60 + _FOR_EACH_SECONDS * count
                waiting = tasks.create_task(self.watch.until_ready(had + count, within_seconds=within_seconds))
                while not waiting.done():
                    await asyncio.wait({waiting}, timeout=_SAMPLE_SECONDS)
                    meter.sample()
                await waiting
                found[count] = await meter.read()
                say(f"{count:,} topics are Ready after {found[count].seconds:.0f} s")
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
        await self.watch.until_ready(had + count, within_seconds=60 + _FOR_EACH_SECONDS * count)
        return [self.watch.ready_at_seconds[name] - self.applied_at_seconds[name] for name in names]

    async def rest(self, seconds: float) -> Cost:
        """Watch the operator for a while in which nothing is to be done."""
        meter = await Meter.begin(self.operator)
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            await asyncio.sleep(_SAMPLE_SECONDS)
            meter.sample()
        return await meter.read()

    async def restart(self) -> tuple[float, Cost]:
        """Kill the operator and start it again; answers the seconds until it had listed everything, and what it took
        from then on until every topic had been looked at and none waited.
        """
        self.operator.kill()
        started = time.perf_counter()
        await asyncio.to_thread(self.operator.start)
        listed_seconds = time.perf_counter() - started
        meter, topics = await Meter.begin(self.operator), len(self.watch.ready_at_seconds)
        ends = started + 60 + _FOR_EACH_SECONDS * topics
        while time.perf_counter() < ends:
            meter.sample()
            counts = await _counted(self.operator)
            if counts.reconciles >= topics and not counts.waiting:
                return listed_seconds, await meter.read()
            await asyncio.sleep(_SCRAPE_SECONDS)
        raise TimeoutError(f"not all of {topics} topics were looked at after a restart")


@asynccontextmanager
async def fleet(on: Stage, *, profile: Path | None = None, **connection: Any) -> AsyncIterator[Fleet]:
    """An operator with a connection and no topic yet, in namespaces of its own; it is killed at the end.

    Args:
        on: the servers.
        profile: file for what Python's profiler saw of the operator; None for no profiler.
        connection: goes into the spec of the connection.
    """
    namespace = random_name("fleet")
    await create_namespace(on.kube, namespace)
    world = await make_world(on.kube, on.view, on.pulsar, namespace, **{"probeIntervalSeconds": 60, **connection})
    log_file = on.folder / f"{namespace}.log"
    operator = RunningOperator(
        on.kubeconfig, namespace, log_file, _FLAGS, under_profiler(profile), start_seconds=_START_SECONDS
    )
    try:
        await asyncio.to_thread(operator.start)
        async with watched_fleet(namespace) as watch:
            yield Fleet(on.kube, operator, watch, namespace, world.pulsar_namespace)
        if profile is not None:
            # It is written at a clean end.
            await asyncio.to_thread(operator.stop)
            keep_text(profile)
    finally:
        operator.kill()


async def _counted(operator: RunningOperator) -> _Counts:
    counts = _Counts()
    # A page about ten thousand topics takes seconds to parse.
    lines = [line for line in (await read_page(operator)).splitlines() if line.startswith(_COUNTED)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            if sample.name == _CALLS:
                counts.calls[sample.labels["operation"]] += int(sample.value)
            elif sample.name == _RECONCILES and sample.labels == _TOPICS_DONE:
                counts.reconciles += int(sample.value)
            elif sample.name == _WAITING:
                counts.waiting = int(sample.value)
    return counts


async def _written() -> int:
    endpoint = load_endpoint()
    async with (
        aiohttp.ClientSession(headers=endpoint.headers, timeout=aiohttp.ClientTimeout(total=60)) as session,
        session.get(endpoint.server + "/metrics", ssl=endpoint.ssl_context or True) as response,
    ):
        lines = (await response.text()).splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if _WRITE.match(line))
