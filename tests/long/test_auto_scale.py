"""Topics that follow their load on real brokers, and noise around every threshold: `make show-auto-scale`."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from pulsar import AuthenticationToken

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.evidence import Evidence, table
from tests.support.load_ramp import ALWAYS_COLD, HEADER, OUT_OF_REACH, ramp
from tests.support.paced_traffic import PacedTraffic
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.world import World
from tests.support.world_making import make_world

_NOISE_SECONDS = float(os.environ.get("NOISE_SECONDS", "600"))
_INTERVAL_SECONDS, _STATISTICS_SECONDS, _SAMPLE_SECONDS = 5, 5, 1
_FLAGS = (*FAST_FLAGS, "--auto-scale-enabled=true", f"--auto-scale-interval-seconds={_INTERVAL_SECONDS}")
_RAMP, _NOISE = "A load of sixteen segments, and none again", "Noise around every threshold"
_SPLIT_RATE = 100.0
_PAYLOAD_BYTES = 100


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("auto-scale.md", "Topics that follow their load", "make show-auto-scale", (_RAMP, _NOISE))
    yield page
    page.write()


@pytest_asyncio.fixture
async def scaled(
    own_operator: MakeOperator,
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
) -> AsyncIterator[tuple[RunningOperator, World]]:
    operator = await own_operator(_FLAGS)
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": _SAMPLE_SECONDS})
    await asyncio.to_thread(operator.start)
    yield operator, world
    await asyncio.to_thread(operator.stop)


@pytest.mark.timeout(1200)
async def test_a_ramp_of_sixteen_is_followed_up_and_down(
    scaled: tuple[RunningOperator, World], pulsar: PulsarAccess, evidence: Evidence
) -> None:
    rows = [await ramp(*scaled, pulsar, fanout) for fanout in (2, 8)]
    evidence.show(
        _RAMP,
        "Messages of 512 keys at 13 times `split.msgRateIn`, from one moment to the next; after a while none. Brokers",
        f"renew their statistics every {_STATISTICS_SECONDS} s, samples are taken every {_SAMPLE_SECONDS} s, decisions",
        f"made every {_INTERVAL_SECONDS} s, cool-downs are 1 s, and segments are cold after 10 s.",
        "",
        *table(HEADER, rows),
        "",
        "A new segment counts only after it has been at its broker for a whole statistics period, which is most of",
        "what one step of a ramp takes.",
    )


@pytest.mark.timeout(_NOISE_SECONDS + 300)
async def test_noise_around_a_threshold_makes_nothing_flap(
    scaled: tuple[RunningOperator, World], pulsar: PulsarAccess, evidence: Evidence
) -> None:
    _, world = scaled
    cases = {f"{edge}-{metric.lower()}": (edge, metric) for edge in ("split", "merge") for metric in OUT_OF_REACH}
    for name, (edge, metric) in cases.items():
        await world.apply(
            manifests.topic(
                name,
                f"{world.pulsar_namespace}/{name}",
                initial=1 if edge == "split" else 2,
                autoScale=_edge_knobs(edge, metric),
                subscriptions=["s"],
            )
        )
    for name in cases:
        await world.until_ready(name)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token))
        )
        for name in cases:
            topic = f"{world.pulsar_namespace}/{name}"
            consumer = await client.queue_consumer(topic, "s")
            draw = random.Random(name)
            traffic = PacedTraffic(
                await client.producer(topic), _noisy(draw), size_bytes=_PAYLOAD_BYTES, consumer=consumer
            )
            await stack.enter_async_context(traffic)
        await asyncio.sleep(_NOISE_SECONDS)
        found = {name: await world.get(TOPICS, name) for name in cases}
    rows = []
    for name, (edge, metric) in cases.items():
        kinds = _kinds(found[name])
        turns = sum(one != other for one, other in pairwise(kinds))
        rows.append((f"{edge}.{metric}", found[name]["status"]["segments"]["active"], ", ".join(kinds) or "-", turns))
        assert turns == 0, (name, kinds)
        assert len(kinds) <= 3, (name, kinds)
    evidence.show(
        _NOISE,
        f"Eight topics for {_NOISE_SECONDS:.0f} s, each with one threshold at its load, which wanders by ±20 % around",
        "it; the other thresholds are out of reach.",
        "",
        *table(("threshold", "segments in the end", "what was done", "changes of mind"), rows),
    )


def _edge_knobs(edge: str, metric: str) -> dict[str, Any]:
    """Knobs with one threshold at the load of `_noisy`: of one segment for a split, of each of two for a merge."""
    amount = int(_SPLIT_RATE * (_PAYLOAD_BYTES + 70 if metric.startswith("bytes") else 1))
    split = dict(OUT_OF_REACH)
    # A merge is asked for by all four rates: the others are cold, whatever they are.
    merge: dict[str, Any] = dict(ALWAYS_COLD)
    if edge == "split":
        split[metric], merge[metric] = str(amount), str(amount // 10)
    else:
        merge[metric] = str(amount // 2)
    return {
        "maxSegments": 8,
        "split": {**split, "cooldown": "1s"},
        "merge": {**merge, "cooldown": "1s", "window": "10s"},
    }


def _noisy(draw: random.Random) -> Any:
    """A rate that takes another value around the threshold every ten seconds."""
    levels = [_SPLIT_RATE * draw.uniform(0.8, 1.2) for _ in range(1000)]
    return lambda seconds: levels[int(seconds // 10)]


def _kinds(topic: Body) -> list[str]:
    return [one["kind"] for one in topic["status"].get("actions", ()) if one["request"]["kind"] == "AutoScale"]
