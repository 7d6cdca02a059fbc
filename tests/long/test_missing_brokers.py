"""Brokers that are missing, restarted or silent while segments are due to be merged: `make show-missing-brokers`."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from dev.brokers import broker_name
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import POLICIES, TOPICS
from scalable_topics_operator.operator_process import OperatorProcess
from tests.support import manifests
from tests.support.evidence import Evidence, table
from tests.support.operator_in_process import operator_in_process
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world import World
from tests.support.world_making import create_namespace, make_world, random_name

_PART = "Segments that are due to be merged"
_INTERVAL_SECONDS, _SAMPLE_SECONDS, _STATISTICS_SECONDS = 5.0, 1, 5
_DECISIONS = 4
_FROZEN_SECONDS = 22.0
_SEGMENTS = 4
_COLD: dict[str, Any] = {"merge": {"cooldown": "0s", "window": "0s"}}


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence(
        "missing-brokers.md", "Nothing is decided on brokers that do not answer", "make show-missing-brokers", (_PART,)
    )
    yield page
    page.write()


@pytest.mark.timeout(600)
async def test_R34_brokers_that_are_missing_restarted_or_silent_decide_nothing(
    local_cluster: Callable[[Shape], LocalCluster], kube: KubeClient, evidence: Evidence
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=2))
    access, namespace = cluster.pulsar.access, random_name("missing")
    await create_namespace(kube, namespace)
    rows = []
    async with (
        PulsarView(access.admin_url, access.superuser_token) as view,
        operator_in_process(namespace, auto_scale_interval_seconds=_INTERVAL_SECONDS) as operator,
    ):
        world = await make_world(kube, view, access, namespace, load={"intervalSeconds": _SAMPLE_SECONDS})
        for name in ("bereft", "unheard"):
            await _make_held(world, name)
        await _spread(world, access.broker_admin_urls)
        for name in ("bereft", "unheard"):
            await _until_explained(operator, world, name, "at-min-segments")

        await asyncio.to_thread(cluster.pulsar.kill_broker, 1)
        told = await _until_explained(operator, world, "bereft", "load-stale")
        await world.delete(POLICIES, "bereft")
        await _stays(operator, world, "bereft", "load-stale", _DECISIONS * _INTERVAL_SECONDS)
        said = _named(told, access.broker_admin_urls)
        rows.append(("one of two brokers killed", f"nothing, in {_DECISIONS} decisions: {said}"))
        await asyncio.to_thread(cluster.pulsar.start_broker, 1)
        served_at = time.time()
        merged_seconds = await _until_merged(world, "bereft") - served_at
        assert merged_seconds > 0
        rows.append(("it serves again", f"first merge {merged_seconds:.0f} s later"))

        await _until_explained(operator, world, "unheard", "at-min-segments")
        pids = [cluster.running()[broker_name(index)] for index in range(2)]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            frozen_at = time.time()
            await world.delete(POLICIES, "unheard")
            told = await _until_explained(operator, world, "unheard", "load-stale", "load-unknown")
            await asyncio.sleep(_FROZEN_SECONDS - (time.time() - frozen_at))
            frozen_seconds = time.time() - frozen_at
            assert await _merges(world, "unheard") == []
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        thawed_at = time.time()
        rows.append((f"both stopped for {frozen_seconds:.0f} s", f"nothing: {_named(told, access.broker_admin_urls)}"))
        rows.append(("both go on", f"first merge {await _until_merged(world, 'unheard') - thawed_at:.0f} s later"))
        for name in ("bereft", "unheard"):
            await world.assert_brokers_agree(name, name, {"s"})
    evidence.show(
        _PART,
        f"Topics of {_SEGMENTS} segments without traffic, served by two brokers; what keeps them from being merged",
        f"is taken away once the brokers are. Brokers renew their statistics every {_STATISTICS_SECONDS} s, samples",
        f"are taken every {_SAMPLE_SECONDS} s, decisions made every {_INTERVAL_SECONDS:.0f} s. In the end both topics",
        "have one segment, with its cursor.",
        "",
        *table(("what happened", "what was done"), rows),
        "",
        "What has just been loaded counts only after a whole period of its broker's statistics.",
    )


async def _make_held(world: World, name: str) -> None:
    """A topic of cold segments, and a policy of the same name that keeps them from being merged."""
    topic = manifests.topic(
        name, f"{world.pulsar_namespace}/{name}", initial=_SEGMENTS, subscriptions=["s"], autoScale=_COLD
    )
    topic["metadata"]["labels"] = {"app": name}
    target = {"selector": {"matchLabels": {"app": name}}}
    await world.apply(manifests.policy(name, "Topics", target, minSegments=_SEGMENTS))
    await world.apply(topic)
    await world.until_ready(name)


async def _spread(world: World, broker_urls: tuple[str, ...]) -> None:
    """Have each broker serve segments of each topic, whatever their load balancer thinks."""
    for name in ("bereft", "unheard"):
        segments = sorted(await world.segment_topics(name))
        bundles = sorted({await world.pulsar.bundle(segment) for segment in segments})
        assert len(bundles) > 1, "the names' hashes should have spread them"
        for number, bundle in enumerate(bundles):
            broker = broker_urls[number % len(broker_urls)].removeprefix("http://")
            await world.pulsar.move_bundle(world.pulsar_namespace, bundle, broker)

        async def owners(segments: list[str] = segments) -> set[str]:
            return {(await world.pulsar.stats(segment))["ownerBroker"] for segment in segments}

        await eventually(owners, lambda found: len(found) == 2, what=f"the brokers share {name}", within_seconds=60)


def _finding(operator: OperatorProcess, world: World, name: str) -> tuple[str, str]:
    """The code of the last decision, and the first finding with that code in words."""
    explained = operator.views.explain(ObjectKey(TOPICS.plural, world.namespace, name)) if operator.views else None
    if not explained:
        return "", ""
    code = explained["decision"]["code"]
    return code, next((one["why"] for one in explained["findings"] if one["code"] == code), "")


async def _until_explained(operator: OperatorProcess, world: World, name: str, *codes: str) -> str:
    async def look() -> tuple[str, str]:
        return _finding(operator, world, name)

    _, why = await eventually(look, lambda found: found[0] in codes, what=f"{name} says {codes}", within_seconds=60)
    return why


async def _stays(operator: OperatorProcess, world: World, name: str, code: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert _finding(operator, world, name)[0] == code
        assert await _merges(world, name) == []
        await asyncio.sleep(0.5)


async def _merges(world: World, name: str) -> list[float]:
    """When the automatic merges were committed, seconds since 1970."""
    actions = (await world.get(TOPICS, name))["status"].get("actions", ())
    return [datetime.fromisoformat(one["at"]).timestamp() for one in actions if one["kind"] == "Merge"]


async def _until_merged(world: World, name: str) -> float:
    """Wait until it has one segment; answers when the first merge was committed."""
    await world.until(
        TOPICS, name, lambda body: body["status"]["segments"]["active"] == 1, what="has 1 segment", within_seconds=120
    )
    await world.until_ready(name, within_seconds=60)
    return min(await _merges(world, name))


def _named(why: str, urls: tuple[str, ...]) -> str:
    """A reason with brokers called by their number."""
    for number, url in enumerate(urls):
        why = why.replace(url.removeprefix("http://"), str(number))
    return why
