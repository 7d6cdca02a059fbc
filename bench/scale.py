"""Ten thousand topics: how fast they are made beside a bare loop, and what they cost at rest and over a restart."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from unittest.mock import patch

from bench.fleet import Cost, fleet
from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.section import Run, Section, Servers
from bench.stage import Stage, stage
from bench.topic_calls import BESIDE_BARE, beside_bare, recorded, send_many
from dev.broker_settings import Profile
from dev.console import say
from dev.instance import LocalCluster, Shape

_FULL, _SMALL = (1_000, 5_000, 10_000), (10, 20, 30)
_REST_SECONDS = 330
"""A list of all objects, every 300 s, lies within."""
_MIB = 1024**2 / 1e6
_CORES = Target("a quarter of a core for 10,000 topics at rest", 0.25)
_MEMORY = Target("400 MiB for 10,000 topics at rest", 400 * _MIB)
# Brokers renew their statistics once a minute by default: looking at those of 40,000 segments more often tells nothing.
_LOAD = MappingProxyType({"intervalSeconds": 60})


async def _measure(run: Run) -> Measured:
    counts = _SMALL if run.is_small else _FULL
    bare, calls = await _bare(counts[:2])
    async with _cluster() as on, fleet(on, load=dict(_LOAD)) as many:
        growth = await many.grow("topic", counts)
        rest = await many.rest(run.size(_REST_SECONDS, 5))
        say(str(rest))
        listed_seconds, restart = await many.restart()
    groups = [
        beside_bare(
            f"From an empty broker to {count:,} topics",
            [count / bare[count]] if count in bare else [],
            [count / cost.seconds],
        )
        for count, cost in growth.items()
    ]
    groups.append(_growth(growth))
    groups.append(_at_rest(counts[-1], rest))
    groups.append(_restarted(counts[-1], listed_seconds, restart))
    return Measured(tuple(groups), (f"One creation is {calls} calls to the broker, by the record of one.",))


async def _bare(counts: tuple[int, ...]) -> tuple[dict[int, float], int]:
    """Seconds of the bare loop until so many topics were there, on a broker of its own, and calls of one of them."""
    async with _cluster() as on:
        calls = await recorded(on)
        return await send_many(calls, on.pulsar, "bare", counts), len(calls)


def _growth(growth: Mapping[int, Cost]) -> Group:
    rows = []
    for count, cost in growth.items():
        for_each = f"until {count:,} topics"
        rows += [
            Measurement(f"processor, {for_each}", "ms a topic", (cost.cpu_seconds * 1000 / count,), Better.LOWER),
            Measurement(f"most memory, {for_each}", "MB", (cost.memory_mb,), Better.LOWER),
            Measurement(f"calls, {for_each}", "a topic", (sum(cost.calls.values()) / count,), Better.LOWER),
            Measurement(f"writes of objects, {for_each}", "a topic", (cost.writes / count,), Better.LOWER),
        ]
    return Group("What the operator takes to make them", tuple(rows))


def _at_rest(count: int, rest: Cost) -> Group:
    rows = (
        Measurement("processor", "cores", (rest.cores,), Better.LOWER, _CORES),
        Measurement("most memory", "MB", (rest.memory_mb,), Better.LOWER, _MEMORY),
        Measurement(
            "writes of objects", "writes", (rest.writes,), Better.LOWER, Target("none over a resync", 0), is_exact=True
        ),
        Measurement("calls to the broker", "calls/s", (sum(rest.calls.values()) / rest.seconds,), Better.LOWER),
        Measurement("reconciles of topics", "reconciles/s", (rest.reconciles / rest.seconds,), Better.NEITHER),
    )
    return Group(f"{count:,} topics at rest for {rest.seconds:.0f} s, one resync included", rows)


def _restarted(count: int, listed_seconds: float, restart: Cost) -> Group:
    rows = (
        Measurement("until all objects are listed", "s", (listed_seconds,), Better.LOWER),
        Measurement("from then until every topic was looked at", "s", (restart.seconds,), Better.LOWER),
        Measurement("processor meanwhile", "s", (restart.cpu_seconds,), Better.LOWER),
        Measurement("most memory", "MB", (restart.memory_mb,), Better.LOWER),
        Measurement("writes of objects", "writes", (restart.writes,), Better.LOWER, is_exact=True),
        Measurement("calls to the broker", "a topic", (sum(restart.calls.values()) / count,), Better.LOWER),
    )
    return Group(f"A restart over {count:,} topics", rows)


SECTION = Section(
    "scale",
    "Ten thousand topics",
    "Topics of 4 segments, 2 subscriptions and 2 policies, declared as fast as a real API server takes the objects, on "
    "an empty broker with room for them. One replica of the operator runs as installed, but for a "
    "`load.intervalSeconds` of 60, in which brokers renew their statistics. The bare loop sends the calls that the "
    "operator was seen to send for one topic, for one topic after the other, as many at a time as the operator may "
    "(16): the most that any controller could do with these calls on these cores. Broker, API server, etcd, operator "
    "and the measuring itself share the machine.",
    _measure,
    Servers.OWN,
    {
        BESIDE_BARE.text: "As above, and what is there already costs something, too: every topic is decided on once a "
        "minute, and from the tenth minute on compared with its brokers, which is a quarter of all calls by then. "
        "Comparisons give way to creations since; that is not measured at this size yet.",
        _CORES.text: "Some two thirds of it are decisions, one a topic and minute: each read the object anew, which "
        "took two thirds of its time and is not done any more; that is not measured at this size yet. The rest is the "
        "statistics of 40,000 segments once a minute, comparisons with brokers, and the list.",
        _MEMORY.text: "Between two samples it has 430 to 460 MB, some 37 kB a topic, of which the object is 10. "
        "What is more was the text of one broker's statistics, 37 MB, received whole and decoded whole; it is kept "
        "packed since, and not measured at this size yet.",
    },
)


@asynccontextmanager
async def _cluster() -> AsyncIterator[Stage]:
    """A broker and an API server with nothing in them; this process's environment names them meanwhile."""
    local = LocalCluster.private(Shape(profile=Profile.FLEET))
    await asyncio.to_thread(local.start)
    try:
        with patch.dict(os.environ, local.environment()):
            async with stage() as on:
                yield on
    finally:
        await asyncio.to_thread(local.stop, keep_logs=False)
