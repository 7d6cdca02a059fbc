"""Load on topics of Pulsar 5: the brokers split by the policy they were given, or the operator itself does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support.native_world import NativeWorld
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.v5_client import V5Client
from tests.support.world import NATIVE_CONNECTION
from tests.support.world_making import make_world

pytestmark = [pytest.mark.native, pytest.mark.slow]

_FLAGS = (*FAST_FLAGS, "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")
_KEYS = [f"key-{number}" for number in range(50)]
# A few messages a second are load enough; nothing is merged meanwhile.
_KNOBS = {
    "maxSegments": 2,
    "split": {"msgRateIn": 10, "cooldown": "1s"},
    "merge": {"msgRateIn": 0, "bytesRateIn": 0, "msgRateOut": 0, "bytesRateOut": 0},
}


@asynccontextmanager
async def _scaled(own_operator: MakeOperator, kube: KubeClient, pulsar: PulsarAccess) -> AsyncIterator[NativeWorld]:
    """Topics of the brokers, and an operator that may scale them."""
    operator = await own_operator(_FLAGS)
    operator.start()
    async with PulsarView(pulsar.admin_url, pulsar.superuser_token) as view:
        world = await make_world(
            *(kube, view, pulsar, operator.namespace),
            connection_name=NATIVE_CONNECTION,
            backend="Auto",
            load={"intervalSeconds": 5},
        )
        yield NativeWorld(world)
        await world.tidy_up()


@pytest.mark.parametrize("engine", ["Broker", "Operator"])
async def test_a_busy_segment_is_split_by_whom_the_topic_says(
    engine: str, own_operator: MakeOperator, kube: KubeClient, native_pulsar: PulsarAccess, v5: V5Client
) -> None:
    async with _scaled(own_operator, kube, native_pulsar) as native:
        world = native.world
        await native.make("busy", autoScale={**_KNOBS, "engine": engine})
        producer = await v5.producer(native.name("busy"), "producer", _KEYS, total=1_000_000)
        body = await world.until(
            TOPICS,
            "busy",
            lambda body: body["status"]["segments"]["active"] == 2,
            what="is split",
            within_seconds=90,
        )
        await producer.stop()
        split = body["status"]["actions"][1]
        assert (split["kind"], split["parents"]) == ("Split", [0])
        assert split["request"]["kind"] == ("Brokers" if engine == "Broker" else "AutoScale")
        stored = await native.call("GET", "busy", "/autoScalePolicy")
        assert stored.get("enabled", True) == (engine == "Broker"), "one controller at a time"
        await native.until_same("busy")


async def test_where_the_operator_decides_brokers_bring_segments_to_the_bucket_budget(
    own_operator: MakeOperator, kube: KubeClient, native_pulsar: PulsarAccess
) -> None:
    """pip-486: brokers make topics with a budget of their own, and never lower it."""
    async with _scaled(own_operator, kube, native_pulsar) as native:
        world = native.world
        knobs = {"engine": "Operator", "rebucket": {"cooldown": "1s", "downWindow": "10s"}}
        made = await native.make("shared", autoScale=knobs, bucketBudget=2)
        assert _buckets(made) == [4]
        # The layout shows it before the journal is closed.
        fewer = await world.until(
            TOPICS,
            "shared",
            lambda body: _buckets(body) == [2] and body["status"].get("operation") is None,
            what="has the budget",
            within_seconds=120,
        )
        rollover = fewer["status"]["actions"][-1]
        assert (rollover["kind"], rollover["request"]["kind"]) == ("Rebucket", "AutoScale")
        assert rollover["reason"].startswith("idle-buckets: 4 entry buckets in all, rebucket.budget is 2")
        await native.until_same("shared")


def _buckets(topic: Body) -> list[int]:
    return [one["buckets"] for one in topic["status"]["layout"]["segments"] if one["state"] == "Active"]
