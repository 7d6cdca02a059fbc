"""What three replicas write while nothing is to be done, and over a rolling restart: `make show-writes-at-rest`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.evidence import Evidence, table
from tests.support.pulsar_view import PulsarView
from tests.support.resting_fleet import Watched, resting_fleet

_FLEETS = tuple(int(count) for count in os.environ.get("REST_TOPICS", "10,100,1000").split(","))
_WATCHED_SECONDS = float(os.environ.get("REST_SECONDS", "120"))
_REPLICAS = 3
_LEASE_SECONDS = LeaseTimes().lease_seconds
# Every topic is compared with the brokers at least once while it is watched.
_FLAGS = (f"--lease-seconds={_LEASE_SECONDS:.0f}", "--drift-seconds=100", "--drift-per-second=100")
_REST_PART, _ROLLING_PART = "At rest", "A rolling restart"


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
    tmp_path: Path,
    evidence: Evidence,
) -> None:
    async with resting_fleet(_REPLICAS, kube, view, pulsar, tmp_path, _FLAGS) as fleet:
        rest, rolling = [], []
        for count in _FLEETS:
            await fleet.grow(count)
            await asyncio.sleep(2 * _LEASE_SECONDS)
            rest.append(await fleet.watch(_WATCHED_SECONDS))
            rolling.append(await fleet.restart_all())
    for watched in (*rest, *rolling):
        assert watched.other_writes == []
        assert watched.changed == []
    evidence.show(_REST_PART, *_rest_lines(rest))
    evidence.show(_ROLLING_PART, *_rolling_lines(rolling))


def _rest_lines(rest: list[Watched]) -> list[str]:
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


def _rolling_lines(rolling: list[Watched]) -> list[str]:
    rows = [
        (watched.topics, f"{watched.seconds:.0f} s", watched.lease_writes, len(watched.other_writes))
        for watched in rolling
    ]
    return [
        "Each replica in turn is ended with SIGTERM and started again, and the shards are shared anew each time.",
        "",
        *table(("topics", "took", "Lease writes", "other writes"), rows),
    ]
