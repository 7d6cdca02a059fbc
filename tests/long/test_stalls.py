"""How long messages wait while a segment is split and merged, ordinary and stressed: `make show-stalls`."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from dev.broker_settings import Profile
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.application import Application
from tests.support.evidence import Evidence, table
from tests.support.operator_guarantee import percentile
from tests.support.own_bench import own_bench
from tests.support.world import World, phase

_CHANGES = int(os.environ.get("STALL_CHANGES", "100"))
_SEED = int(os.environ.get("STALL_SEED", "468"))
_PAUSE_SECONDS = 1.5
# Sealed segments leave soon, else a hundred changes leave more of them than people have.
_FLAGS = ("--log-level=INFO", "--settle-window-seconds=10", "--prune-seconds=10")
_ORDINARY, _STRESSED = "Ordinary settings", "Ledgers roll over, and eight producers load the machine"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("stalls.md", "How long messages wait for a change", "make show-stalls", (_ORDINARY, _STRESSED))
    yield page
    page.write()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("part", "profile", "producers", "consumers"),
    [(_ORDINARY, Profile.ORDINARY, 2, 2), (_STRESSED, Profile.ROLLOVER, 8, 4)],
    ids=["ordinary", "stressed"],
)
async def test_stalls(
    local_cluster: Callable[[Shape], LocalCluster],
    own_operator: MakeOperator,
    kube: KubeClient,
    evidence: Evidence,
    part: str,
    profile: Profile,
    producers: int,
    consumers: int,
) -> None:
    name = part.split(maxsplit=1)[0].lower()
    shape = Shape(kubernetes=False, profile=profile)
    async with own_bench(local_cluster, own_operator, kube, shape, _FLAGS) as bench:
        world = bench.world
        topic = f"{world.pulsar_namespace}/{name}"
        body = manifests.topic(name, topic, initial=4, bucketBudget=4, subscriptions=["work"], deduplication=True)
        await world.apply(body)
        await world.until_ready(name)
        async with Application(bench.brokers, topic, "work", producers=producers, consumers=consumers) as running:
            await running.until_sent(1000)
            changes = [await _change(world, name, turn) for turn in range(_CHANGES)]
    # Only now every message has its outcome.
    stalls_ms: dict[str, list[float]] = defaultdict(list)
    for kind, began, ended in changes:
        stalls_ms[kind].append(running.journal.longest_ms(began, ended))
    assert running.journal.failed == []
    assert running.journal.not_received == []
    ordinary = sorted(took for _, took in running.journal.sends)
    lines = [
        f"{producers} producers of 100 messages a second and {consumers} queue consumers in one process; "
        f"{len(running.journal.sends)} messages stored and received, no send failed.",
        f"Half of all messages took at most {1000 * percentile(ordinary, 0.5):.0f} ms to be stored, 99 % at most "
        f"{1000 * percentile(ordinary, 0.99):.0f} ms. The longest that any message under way during a change took:",
        "",
        *table(
            ("change", "how many", "p50", "p90", "p99", "max"),
            [
                (kind, str(len(ms)), *(f"{percentile(sorted(ms), share):.0f} ms" for share in (0.5, 0.9, 0.99, 1)))
                for kind, ms in stalls_ms.items()
            ],
        ),
    ]
    print(*lines, sep="\n")
    evidence.show(part, *lines)


async def _change(world: World, name: str, turn: int) -> tuple[str, float, float]:
    """Split a segment, or merge two neighbours in the next turn; answers which, and when it began and ended."""
    active = (await world.layout(name)).active
    random = Random(_SEED + turn)
    kind, block = "Split", dict[str, Any](segment=max(active, key=lambda one: one.hash_range.size).segment_id)
    if turn % 2:
        first = random.randrange(len(active) - 1)
        kind, block = "Merge", {"segments": [one.segment_id for one in active[first : first + 2]]}
    began = asyncio.get_running_loop().time()
    operation = await world.operate(name, kind, within_seconds=120.0, **block)
    ended = asyncio.get_running_loop().time()
    assert phase(operation) == "Succeeded"
    await asyncio.sleep(_PAUSE_SECONDS)
    await world.delete(SEGMENT_OPERATIONS, operation["metadata"]["name"])
    return kind, began, ended
