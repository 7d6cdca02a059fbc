"""A load of sixteen segments, and none again: how fast a topic follows."""

from __future__ import annotations

import asyncio
import time

from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.metrics import read_metric
from tests.support.paced_traffic import PacedTraffic
from tests.support.running_operator import RunningOperator
from tests.support.world import World

HEADER = ("maxFanout", "splits", "first committed", "16 segments", "merges", "1 segment again, after the end")
"""Of the rows that `ramp` answers."""
OUT_OF_REACH = {"msgRateIn": "1M", "bytesRateIn": "1G", "msgRateOut": "1M", "bytesRateOut": "1G"}
"""Split thresholds that no test reaches."""
ALWAYS_COLD = {"msgRateIn": "100k", "bytesRateIn": "100M", "msgRateOut": "100k", "bytesRateOut": "100M"}
"""Merge thresholds that no test reaches."""
_SPLIT_RATE = 100.0
_STEADY_SECONDS = 30
_PATIENCE_SECONDS = 400


async def ramp(operator: RunningOperator, world: World, pulsar: PulsarAccess, fanout: int) -> tuple[object, ...]:
    """Send at 13 times `split.msgRateIn`, then nothing; answers a row of evidence.

    Args:
        operator: leads everything.
        world: where the topic is made.
        pulsar: the brokers.
        fanout: into how many parts one split may go.
    """
    name = f"ramp-{fanout}"
    knobs = {
        "maxSegments": 16,
        "split": {**OUT_OF_REACH, "cooldown": "1s", "msgRateIn": int(_SPLIT_RATE), "maxFanout": fanout},
        "merge": {**ALWAYS_COLD, "cooldown": "1s", "window": "10s", "msgRateIn": 5},
    }
    await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", autoScale=knobs))
    await world.until_ready(name)
    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
        producer = await client.producer(f"{world.pulsar_namespace}/{name}")
        began = time.monotonic()
        async with PacedTraffic(producer, lambda _: 13 * _SPLIT_RATE):
            await _until_active(world, name, 2, at_least=True)
            first_seconds = time.monotonic() - began
            await _until_active(world, name, 16)
            all_seconds = time.monotonic() - began
            # Nothing is undone while the load stays.
            await asyncio.sleep(_STEADY_SECONDS)
            splits, merges = await _changes(operator, world, name)
            assert merges == 0
        ended = time.monotonic()
        await _until_active(world, name, 1)
    down_seconds = time.monotonic() - ended
    _, merges = await _changes(operator, world, name)
    return fanout, splits, f"{first_seconds:.0f} s", f"{all_seconds:.0f} s", merges, f"{down_seconds:.0f} s"


async def _changes(operator: RunningOperator, world: World, name: str) -> tuple[int, int]:
    """How many automatic splits and merges there were."""
    found = [
        await read_metric(
            operator, f'pulsar_scalable_topic_auto_{kind}_total{{topic="topic://{world.pulsar_namespace}/{name}"}}'
        )
        for kind in ("splits", "merges")
    ]
    return int(found[0] or 0), int(found[1] or 0)


async def _until_active(world: World, name: str, count: int, *, at_least: bool = False) -> Body:
    def holds(topic: Body) -> bool:
        active = topic["status"]["segments"]["active"]
        return bool(active >= count if at_least else active == count)

    return await world.until(TOPICS, name, holds, what=f"has {count} segments", within_seconds=_PATIENCE_SECONDS)
