"""An unload, and the death of one of two brokers, at every write of an operation: `make show-broker-steps`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from enum import StrEnum

import pytest

from dev.instance import LocalCluster, Shape
from tests.integration.operator.conftest import MakeProxied
from tests.support.crash_scenarios import endure
from tests.support.crash_steps import STEPS, Kind
from tests.support.evidence import Evidence, table
from tests.support.running_operator import FAST_FLAGS

_KINDS = (Kind.SPLIT, Kind.MERGE, Kind.REBUCKET, Kind.PRUNE)


class Disturbance(StrEnum):
    """What happens to the brokers; also the heading of what came of it."""

    UNLOAD = "The namespace is unloaded"
    DEATH = "One of the two brokers is killed"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence(
        "broker-steps.md", "Two brokers, disturbed at every step", "make show-broker-steps", tuple(Disturbance)
    )
    yield page
    page.write()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("disturbance", Disturbance)
async def test_work_survives_unloads_and_the_death_of_a_broker_at_every_step(
    local_cluster: Callable[[Shape], LocalCluster],
    proxied: MakeProxied,
    evidence: Evidence,
    disturbance: Disturbance,
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=2))
    bench = await proxied(cluster.pulsar.access, flags=(*FAST_FLAGS, "--drift-seconds=8"))
    rows = []

    async def disturb() -> None:
        if disturbance is Disturbance.UNLOAD:
            await bench.world.pulsar.unload_namespace(bench.world.pulsar_namespace)
        else:
            await asyncio.to_thread(cluster.pulsar.kill_broker, 1)

    for kind in _KINDS:
        started = time.monotonic()
        await endure(bench, [(kind, step) for step in STEPS[kind]], disturb)
        rows.append((kind, len(STEPS[kind]), f"{time.monotonic() - started:.0f} s"))
        if disturbance is Disturbance.DEATH:
            await asyncio.to_thread(cluster.pulsar.start_broker, 1)
    evidence.show(
        disturbance,
        "On one topic for each write of an operation the write was held; when all were, this happened once, and they",
        "went on. The same operator process ended all the work, with nobody's help; brokers and record agreed, with",
        "every cursor on every segment, and no segment id was used twice.",
        "",
        *table(("work", "steps", "from the first topic made to the last one checked"), rows),
    )
