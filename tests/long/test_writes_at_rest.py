"""What three replicas write while nothing is to be done, and over a rolling restart: `make show-writes-at-rest`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.evidence import Evidence, table
from tests.support.fault_proxy import FaultProxy
from tests.support.fleet import process_cpu_seconds, process_memory_mb
from tests.support.proxied_operator import proxy_kubeconfig
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.waiting import eventually
from tests.support.world import is_ready

_FLEETS = tuple(int(count) for count in os.environ.get("REST_TOPICS", "10,100,1000").split(","))
_WATCHED_SECONDS = float(os.environ.get("REST_SECONDS", "120"))
_REPLICAS = 3
_LEASE_SECONDS = LeaseTimes().lease_seconds
# Every topic is compared with the brokers at least once while it is watched.
_FLAGS = (f"--lease-seconds={_LEASE_SECONDS:.0f}", "--drift-seconds=100", "--drift-per-second=100")
_APPLIED_AT_ONCE = 16
_REST_PART, _ROLLING_PART = "At rest", "A rolling restart"


@dataclass(frozen=True, slots=True)
class _Watched:
    """What the replicas did in some seconds."""

    topics: int
    seconds: float
    lease_writes: int
    other_writes: list[str]
    changed: list[str]
    cpu_percent: float
    memory_mb: float


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence(
        "writes-at-rest.md",
        "What three replicas write at rest",
        "make show-writes-at-rest",
        (_REST_PART, _ROLLING_PART),
    )
    yield page
    page.write()


@pytest.mark.timeout(3000)
async def test_R5_c24_replicas_at_rest_write_leases_only_and_a_rolling_restart_nothing_per_topic(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
    evidence: Evidence,
) -> None:
    endpoint = load_endpoint()
    async with FaultProxy(endpoint.server, endpoint.ssl_context, endpoint.headers) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(proxy_kubeconfig(proxy.url))
        async with replicas(_REPLICAS, kube, view, pulsar, kubeconfig, tmp_path, _FLAGS) as found:
            await found.until_shared()
            rest, rolling = [], []
            made = 0
            for count in _FLEETS:
                await _create(found, range(made, count))
                made = count
                await asyncio.sleep(2 * _LEASE_SECONDS)
                rest.append(await _watch(found, proxy, count))
                rolling.append(await _restart_all(found, proxy, count))
    for watched in (*rest, *rolling):
        assert watched.other_writes == []
        assert watched.changed == []
    evidence.show(_REST_PART, *_rest_lines(rest))
    evidence.show(_ROLLING_PART, *_rolling_lines(rolling))


async def _create(found: Replicas, numbers: range) -> None:
    world, gate = found.world, asyncio.Semaphore(_APPLIED_AT_ONCE)

    async def apply(number: int) -> None:
        async with gate:
            name = f"rests-{number}"
            await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", subscriptions=["s"]))

    await asyncio.gather(*map(apply, numbers))

    async def not_ready() -> int:
        return sum(not is_ready(body) for body in await world.kube.list_all(TOPICS, world.namespace))

    await eventually(
        not_ready, lambda count: count == 0, what="all topics are Ready", within_seconds=900, every_seconds=5.0
    )


async def _versions(found: Replicas) -> dict[str, str]:
    world = found.world
    return {
        body["metadata"]["name"]: body["metadata"]["resourceVersion"]
        for resource in (TOPICS, CONNECTIONS)
        for body in await world.kube.list_all(resource, world.namespace)
    }


def _cpu_seconds(found: Replicas) -> float:
    return sum(process_cpu_seconds(operator.pid) for operator in found.operators)


async def _watch(found: Replicas, proxy: FaultProxy, topics: int) -> _Watched:
    before, begun_at, since, cpu = await _versions(found), time.monotonic(), len(proxy.seen), _cpu_seconds(found)
    await asyncio.sleep(_WATCHED_SECONDS)
    return await _seen(found, proxy, topics, before, begun_at, since, cpu)


async def _restart_all(found: Replicas, proxy: FaultProxy, topics: int) -> _Watched:
    """Each replica in turn, as a Deployment does it."""
    before, begun_at, since = await _versions(found), time.monotonic(), len(proxy.seen)
    for operator in found.operators:
        await asyncio.to_thread(operator.stop)
        await asyncio.to_thread(operator.start)
        await found.until_shared()
    return await _seen(found, proxy, topics, before, begun_at, since, 0.0)


async def _seen(
    found: Replicas, proxy: FaultProxy, topics: int, before: dict[str, str], begun_at: float, since: int, cpu: float
) -> _Watched:
    seconds = time.monotonic() - begun_at
    after = await _versions(found)
    return _Watched(
        topics,
        seconds,
        len(proxy.lease_writes(since)),
        [str(call) for call in proxy.writes(since)],
        sorted(name for name in after if after[name] != before.get(name)),
        100 * (_cpu_seconds(found) - cpu) / seconds,
        max(process_memory_mb(operator.pid) for operator in found.operators),
    )


def _rest_lines(rest: list[_Watched]) -> list[str]:
    rows = [
        (
            watched.topics,
            f"{watched.seconds:.0f} s",
            f"{watched.lease_writes * 3600 / watched.seconds:.0f}",
            len(watched.other_writes),
            f"{watched.cpu_percent:.0f} % of a core",
            f"{watched.memory_mb:.0f} MB",
        )
        for watched in rest
    ]
    return [
        f"{_REPLICAS} replicas, 4 shards, lease {_LEASE_SECONDS:.0f} s; every topic is compared with the brokers every "
        "100 s. All calls go through a proxy that counts them.",
        "",
        *table(
            ("topics", "watched for", "Lease writes an hour", "other writes", "all replicas", "the largest"),
            rows,
        ),
    ]


def _rolling_lines(rolling: list[_Watched]) -> list[str]:
    rows = [
        (watched.topics, f"{watched.seconds:.0f} s", watched.lease_writes, len(watched.other_writes))
        for watched in rolling
    ]
    return [
        "Each replica in turn is ended with SIGTERM and started again, and the shards are shared anew each time.",
        "",
        *table(("topics", "took", "Lease writes", "other writes"), rows),
    ]
