"""Topics grow under load, shrink when cold, and tell why, on real brokers with real traffic (pip-483, DESIGN §8)."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from scalable_topics_operator.operator_process import OperatorProcess
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.metrics import read_metric, until_metric
from tests.support.operator_in_process import operator_in_process
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.waiting import eventually
from tests.support.world import World, condition, is_ready
from tests.support.world_making import create_namespace, make_world, random_name

INTERVAL_SECONDS = 5
# Nobody takes over here; after a lapse on a busy machine counters and windows would begin anew.
FLAGS = (
    *FAST_FLAGS,
    "--lease-seconds=15",
    "--auto-scale-enabled=true",
    f"--auto-scale-interval-seconds={INTERVAL_SECONDS}",
)
# Rates of a test, not of a production topic: a split above 50 messages a second, and the rest out of the way.
LOW: dict[str, Any] = {
    "maxSegments": 3,
    "split": {"cooldown": "1s", "msgRateIn": 50, "bytesRateIn": "1G", "msgRateOut": "1M", "bytesRateOut": "1G"},
    "merge": {
        "cooldown": "1s",
        "window": "3s",
        "msgRateIn": 5,
        "bytesRateIn": "1M",
        "msgRateOut": 5,
        "bytesRateOut": "1M",
    },
    "rebucket": {"cooldown": "1s", "splitVsRebucketMinMsgRateIn": 0},
}
NOTHING_COLD = {**LOW, "merge": {**LOW["merge"], "window": "1h"}}


@pytest.fixture
async def scaling(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> tuple[RunningOperator, World]:
    """An operator that decides every few seconds, and a connection that samples every second."""
    operator = await own_operator(FLAGS)
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 1})
    await asyncio.to_thread(operator.start)
    return operator, world


def active(topic: Body) -> int:
    return int(topic["status"]["segments"]["active"])


def _is_changing(topic: Body) -> bool:
    return topic["status"].get("operation") is not None or active(topic) == 3


def automatic(topic: Body) -> list[Body]:
    return [action for action in topic["status"].get("actions", ()) if action["request"]["kind"] == "AutoScale"]


async def test_a_topic_grows_under_load_and_shrinks_when_cold_and_says_why(
    scaling: tuple[RunningOperator, World], pulsar: PulsarAccess
) -> None:
    """Hazards B16 and C48."""
    operator, world = scaling
    await world.apply(manifests.topic("busy", f"{world.pulsar_namespace}/busy", autoScale=LOW, subscriptions=["s"]))
    await world.until_ready("busy")
    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
        producer = await client.producer(f"{world.pulsar_namespace}/busy")
        async with KeyedTraffic(producer, keys=64, burst=10, pause_seconds=0.02) as traffic:
            grown = await world.until(
                TOPICS, "busy", lambda topic: active(topic) == 3, what="has 3 segments", within_seconds=90
            )
            series = f'{{topic="topic://{world.pulsar_namespace}/busy"}}'
            await until_metric(
                operator, f"pulsar_scalable_topic_split_suppressed_max_segments_total{series}", bool, within_seconds=40
            )
        assert not traffic.failures
    splits = automatic(grown)
    assert [action["kind"] for action in splits] == ["Split"] * 2
    assert all(re.match(r"msgRateIn: segment \d+ is at \d+ % of split\.msgRateIn", one["reason"]) for one in splits)
    assert condition(grown, "AutoScale")["status"] == "True"
    assert grown["status"]["clocks"]["splitAtMs"] > 0
    shrunk = await world.until(
        TOPICS, "busy", lambda topic: active(topic) == 1 and is_ready(topic), what="has 1 segment", within_seconds=90
    )
    merges = [action for action in automatic(shrunk) if action["kind"] == "Merge"]
    assert len(merges) == 2
    assert all(one["reason"].startswith("cold: segments ") for one in merges)
    for kind in ("splits", "merges"):
        assert await read_metric(operator, f"pulsar_scalable_topic_auto_{kind}_total{series}") == 2
    assert await read_metric(operator, "scalable_topics_decision_seconds_count")
    assert await read_metric(operator, 'scalable_topics_load_age_seconds{name="pulsar"') is not None
    told = {reason for reason, _ in await world.events("busy")}
    assert {"AutoSplit", "AutoMerge"} <= told
    await world.assert_brokers_agree("busy", "busy", {"s"})


async def test_R30_where_nothing_is_done_automatically_the_topic_says_so(
    scaling: tuple[RunningOperator, World], pulsar: PulsarAccess
) -> None:
    _, world = scaling
    wishes: dict[str, dict[str, Any]] = {
        "Disabled": {"autoScale": {**LOW, "enabled": False}},
        "DesiredSet": {"autoScale": LOW, "segments": {"desired": 1}},
        "InvalidPolicy": {"autoScale": {"minSegments": 100}},
    }
    for reason, spec in wishes.items():
        name = reason.lower()
        await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", **spec))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token))
        )
        for reason in wishes:
            topic = await world.until(
                TOPICS,
                reason.lower(),
                lambda topic, reason=reason: condition(topic, "AutoScale").get("reason") == reason,  # type: ignore[misc]
                what=f"says {reason}",
            )
            assert condition(topic, "AutoScale")["status"] == "False"
            producer = await client.producer(f"{world.pulsar_namespace}/{reason.lower()}")
            await stack.enter_async_context(KeyedTraffic(producer, keys=64, burst=10, pause_seconds=0.05))
        # What nothing keeps from it is split for the same load meanwhile.
        await world.apply(manifests.topic("free", f"{world.pulsar_namespace}/free", autoScale=NOTHING_COLD))
        await world.until_ready("free")
        producer = await client.producer(f"{world.pulsar_namespace}/free")
        await stack.enter_async_context(KeyedTraffic(producer, keys=64, burst=10, pause_seconds=0.05))
        await world.until(TOPICS, "free", lambda topic: active(topic) > 1, what="is split", within_seconds=60)
    for reason in wishes:
        assert active(await world.get(TOPICS, reason.lower())) == 1


async def test_the_connection_says_that_its_load_is_fresh(scaling: tuple[RunningOperator, World]) -> None:
    _, world = scaling
    await world.until(
        CONNECTIONS, "pulsar", lambda body: condition(body, "LoadFresh").get("reason") == "Sampled", what="says Sampled"
    )
    await world.change(CONNECTIONS, "pulsar", {"load": {"source": "Pipeline"}})
    body = await world.until(
        CONNECTIONS,
        "pulsar",
        lambda body: condition(body, "LoadFresh").get("reason") == "NoEmbeddedRunner",
        what="says that nothing here runs a pipeline",
        within_seconds=100,
    )
    told = condition(body, "LoadFresh")
    assert told["status"] == "False"
    assert told["message"].startswith("brokers are sampled directly: this operator runs no pipelines itself")


class TestConsumers:
    """Counts come from a feed, as consumer sessions will be one."""

    @pytest.fixture
    async def world(self, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess) -> World:
        namespace = random_name("fed")
        await create_namespace(kube, namespace)
        return await make_world(kube, view, pulsar, namespace, load={"intervalSeconds": 1})

    async def test_a_consumer_more_than_segments_brings_a_split_within_two_seconds(self, world: World) -> None:
        async with operator_in_process(world.namespace, auto_scale_interval_seconds=3600.0) as operator:
            took = []
            # The best of three: a machine may pause for as long by itself.
            for name in ("shared", "shared-2", "shared-3"):
                key = ObjectKey(TOPICS.plural, world.namespace, name)
                topic = f"{world.pulsar_namespace}/{name}"
                await world.apply(manifests.topic(name, topic, initial=2, autoScale=NOTHING_COLD))
                await world.until_ready(name)
                operator.consumers.set(key, "s", 2)
                await asyncio.sleep(1.0)
                assert active(await world.get(TOPICS, name)) == 2
                asked = time.monotonic()
                operator.consumers.set(key, "s", 3)
                await world.until(TOPICS, name, _is_changing, what="begins to be split")
                # How long the split itself takes is another matter, and the machine's.
                took.append(time.monotonic() - asked)
                split = await world.until(TOPICS, name, lambda topic: active(topic) == 3, what="is split")
                assert automatic(split)[0]["reason"].startswith("consumer-count: 3 consumers of one subscription")
            assert min(took) < 2.0

    async def test_peer_case_follow_up_after_a_rebucket_runs_on_the_rebucket_cooldown(self, world: World) -> None:
        """ControllerAutoScale: "follow-up after a rebucket runs on the rebucket cooldown" (hazard A2-26434c)."""
        key = ObjectKey(TOPICS.plural, world.namespace, "few")
        policy = {**NOTHING_COLD, "maxSegments": 1, "rebucket": {"cooldown": "3s"}}
        async with operator_in_process(world.namespace, auto_scale_interval_seconds=3600.0) as operator:
            await world.apply(manifests.topic("few", f"{world.pulsar_namespace}/few", autoScale=policy))
            await world.until_ready("few")
            operator.consumers.set(key, "s", 5)
            await world.until(TOPICS, "few", lambda topic: _buckets(topic) == [8], what="has 8 buckets")
            operator.consumers.set(key, "s", 9)
            await world.until(TOPICS, "few", lambda topic: _buckets(topic) == [16], what="has 16 buckets")

    async def test_buckets_go_back_to_the_budget_when_consumers_have_gone_and_follow_it_when_it_changes(
        self, world: World
    ) -> None:
        """Hazard B11."""
        key = ObjectKey(TOPICS.plural, world.namespace, "idle")
        policy = {**NOTHING_COLD, "maxSegments": 1, "rebucket": {"cooldown": "1s", "downWindow": "6s"}}
        async with operator_in_process(world.namespace, auto_scale_interval_seconds=3.0) as operator:
            topic = f"{world.pulsar_namespace}/idle"
            await world.apply(manifests.topic("idle", topic, autoScale=policy, bucketBudget=2))
            made = await world.until_ready("idle")
            assert _buckets(made) == [2]
            operator.consumers.set(key, "s", 5)
            await world.until(TOPICS, "idle", lambda topic: _buckets(topic) == [8], what="has 8 buckets")
            operator.consumers.set(key, "s", 1)
            back = await world.until(
                TOPICS, "idle", lambda topic: _buckets(topic) == [2], what="has 2 buckets again", within_seconds=60
            )
            up, down = automatic(back)
            assert back["status"]["clocks"]["rebucketAtMs"] > 0
            assert up["reason"].startswith("at-max-segments: 5 consumers")
            assert down["reason"].startswith("idle-buckets: 8 entry buckets in all, rebucket.budget is 2")
            await world.change(TOPICS, "idle", {"bucketBudget": 4})
            await world.until(TOPICS, "idle", lambda topic: _buckets(topic) == [4], what="has 4", within_seconds=60)

    async def test_peer_case_cooldown_survives_failover(self, world: World) -> None:
        """ControllerAutoScale: "cooldown survives failover"; a manual split counts, too (hazard A2-25980c)."""
        key = ObjectKey(TOPICS.plural, world.namespace, "slow")
        policy = {**NOTHING_COLD, "split": {**LOW["split"], "cooldown": "1h"}}
        async with operator_in_process(world.namespace, auto_scale_interval_seconds=5.0) as operator:
            await world.apply(manifests.topic("slow", f"{world.pulsar_namespace}/slow", autoScale=policy))
            await world.until_ready("slow")
            await world.operate("slow", "Split", segment=0)
            operator.consumers.set(key, "s", 3)
            await _until_code(operator, key, "split-cooldown")
        async with operator_in_process(world.namespace, auto_scale_interval_seconds=5.0) as operator:
            operator.consumers.set(key, "s", 3)
            await _until_code(operator, key, "split-cooldown")
        assert active(await world.get(TOPICS, "slow")) == 2


async def _until_code(operator: OperatorProcess, key: ObjectKey, code: str) -> None:
    async def look() -> str:
        explained = operator.views.explain(key) if operator.views is not None else None
        return explained["decision"]["code"] if explained else ""

    await eventually(look, lambda shown: shown == code, what=f"the decision is {code}", within_seconds=30)


def _buckets(topic: Body) -> list[int]:
    return [one["buckets"] for one in topic["status"]["layout"]["segments"] if one["state"] == "Active"]
