"""What processes, brokers and the API server hold, looked at every so often."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.lease_record import LEASES
from scalable_topics_operator.cluster.resources import (
    CONFIG_MAPS,
    CONNECTIONS,
    EVENTS,
    POLICIES,
    SECRETS,
    SEGMENT_OPERATIONS,
    SUBSCRIPTIONS,
    TOPICS,
)
from tests.support.embedded_pipeline import load_fresh
from tests.support.metrics import read_metric
from tests.support.running_operator import RunningOperator

KINDS = (CONNECTIONS, TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS, POLICIES, SECRETS, CONFIG_MAPS, LEASES, EVENTS)
MEMORY, FILES, THREADS, TASKS = "resident memory, MiB", "file descriptors", "threads", "asyncio tasks"
_MIB = 1024 * 1024
_LOOK_SECONDS = 10.0
# An operator that is stopped answers nothing, and the others are not to wait for it.
_TASKS_SECONDS = 2.0
_SEPARATOR = "-segment-"

Reading = Mapping[str, float]
"""Numbers by what they count."""


def process_reading(pid: int) -> dict[str, float]:
    """What a process holds, from /proc. Raises OSError if there is none."""
    folder = Path(f"/proc/{pid}")
    status = dict(line.partition(":")[::2] for line in (folder / "status").read_text().splitlines())
    if "VmRSS" not in status:
        raise ProcessLookupError(f"process {pid} has ended")
    return {
        MEMORY: int(status["VmRSS"].split()[0]) * 1024 / _MIB,
        FILES: float(sum(1 for _ in (folder / "fd").iterdir())),
        THREADS: float(status["Threads"]),
    }


@dataclass(slots=True)
class Life:
    """One life of a process: its samples, each a list of seconds and value by what was measured."""

    pid: int
    series: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, at_seconds: float, reading: Reading) -> None:
        """Keep what was measured."""
        for what, value in reading.items():
            self.series[what].append((at_seconds, value))


class Sampler:
    """Looks at everything every so often while its task runs.

    Args:
        operators: by name.
        clients: process ids by name, asked for at every look.
        brokers: where topics are.
        pulsar_namespace: `tenant/namespace` whose topics and cursors are counted.
        kube: a client of the run's own.
        namespace: Kubernetes namespace whose objects are counted.
        every_seconds: from one look to the next.
    """

    def __init__(
        self,
        operators: Mapping[str, RunningOperator],
        clients: Callable[[], Mapping[str, int]],
        brokers: PulsarAccess,
        pulsar_namespace: str,
        kube: KubeClient,
        namespace: str,
        every_seconds: float,
    ) -> None:
        self._operators = operators
        self._clients = clients
        self._brokers = brokers
        self._pulsar_namespace = pulsar_namespace
        self._kube = kube
        self._namespace = namespace
        self._every_seconds = every_seconds
        self._began = time.monotonic()
        self.lives: dict[str, list[Life]] = defaultdict(list)
        """Of each process, in their order."""
        self.on_servers: dict[str, list[tuple[float, float]]] = defaultdict(list)
        """Counts on the brokers and the API server; a look while one of them is dead has none."""
        self.sources: Counter[tuple[str, str]] = Counter()
        """Where the load came from, at how many looks."""

    async def run(self) -> None:
        """Look until it is cancelled."""
        due = time.monotonic()
        headers = {"Authorization": f"Bearer {self._brokers.superuser_token}"}
        timeout = aiohttp.ClientTimeout(total=_LOOK_SECONDS)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
            while True:
                await self._look(session)
                due = max(due + self._every_seconds, time.monotonic())
                await asyncio.sleep(due - time.monotonic())

    async def _look(self, session: aiohttp.ClientSession) -> None:
        at_seconds = time.monotonic() - self._began
        for name, operator in self._operators.items():
            if operator.running:
                life = self._sample(at_seconds, name, operator.pid)
                await self._sample_tasks(at_seconds, life, operator)
        for name, pid in self._clients().items():
            self._sample(at_seconds, name, pid)
        for reading in await asyncio.gather(self._on_brokers(session), self._on_api_server()):
            for what, value in reading.items():
                self.on_servers[what].append((at_seconds, value))

    def _sample(self, at_seconds: float, name: str, pid: int) -> Life | None:
        try:
            reading = process_reading(pid)
        except OSError:
            return None
        lives = self.lives[name]
        if not lives or lives[-1].pid != pid:
            lives.append(Life(pid))
        lives[-1].add(at_seconds, reading)
        return lives[-1]

    async def _sample_tasks(self, at_seconds: float, life: Life | None, operator: RunningOperator) -> None:
        try:
            async with asyncio.timeout(_TASKS_SECONDS):
                tasks = await read_metric(operator, "scalable_topics_asyncio_tasks ")
        except (aiohttp.ClientError, OSError, TimeoutError, RuntimeError):
            # It is stopped, has just been killed, or has only just begun.
            return
        # Zero before it has counted the first time.
        if life is not None and tasks:
            life.add(at_seconds, {TASKS: tasks})

    async def _on_brokers(self, session: aiohttp.ClientSession) -> Reading:
        counts: Counter[str] = Counter()
        try:
            for url in self._brokers.broker_admin_urls:
                # What a broker serves, by namespace, bundle, and kind of topic.
                async with session.get(f"{url}/admin/v2/broker-stats/topics") as response:
                    response.raise_for_status()
                    found = await response.json(content_type=None)
                for bundle in found.get(self._pulsar_namespace, {}).values():
                    for name, topic in bundle.get("persistent", {}).items():
                        is_segment = _SEPARATOR in name
                        counts["segments served by brokers"] += is_segment
                        counts["other topics served by brokers"] += not is_segment and "__change_events" not in name
                        counts["cursors of segments"] += len(topic["subscriptions"]) if is_segment else 0
        except (aiohttp.ClientError, OSError, TimeoutError):
            return {}
        return {what: float(count) for what, count in counts.items()}

    async def _on_api_server(self) -> Reading:
        counts = {}
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                for resource in KINDS:
                    bodies = await self._kube.list_all(resource, self._namespace)
                    counts[f"{resource.kind}s"] = float(len(bodies))
                    if resource == CONNECTIONS:
                        self.sources.update(map(load_fresh, bodies))
        except (KubeError, TimeoutError):
            return {}
        return counts
