"""A real HorizontalPodAutoscaler on a ScalableTopic, by the operator's metrics of real traffic (examples/hpa.yaml)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support.external_metrics import external_metrics
from tests.support.paced_traffic import PacedTraffic
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.world_making import make_world

EXAMPLE = Path(__file__).parents[3] / "examples" / "hpa.yaml"
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
_SEGMENT_RATE = 50


def _lowered(manifest: Body, namespace: str) -> Body:
    """The example at the rates of a test, without its calm, in another namespace."""
    spec: dict[str, Any] = manifest["spec"]
    manifest["metadata"]["namespace"] = namespace
    spec["metrics"][0]["external"]["metric"]["selector"]["matchLabels"]["scalabletopic_namespace"] = namespace
    spec["metrics"][0]["external"]["target"]["averageValue"] = str(_SEGMENT_RATE)
    spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
    return manifest


async def test_R30_a_horizontal_pod_autoscaler_scales_a_topic_by_the_operators_metrics(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    operator = await own_operator((*FAST_FLAGS, "--auto-scale-interval-seconds=5"))
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 1})
    await asyncio.to_thread(operator.start)
    topic, autoscaler = yaml.safe_load_all(EXAMPLE.read_text())
    most = autoscaler["spec"]["maxReplicas"]
    topic["metadata"]["namespace"] = world.namespace
    topic["spec"]["topic"] = f"{world.pulsar_namespace}/orders"
    await world.apply(topic)
    await world.until_ready("orders")

    def has(count: int) -> Any:
        return lambda body: body["spec"]["segments"]["desired"] == body["status"]["segments"]["active"] == count

    async with (
        external_metrics(kube, operator, tmp_path),
        Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client,
    ):
        producer = await client.producer(f"{world.pulsar_namespace}/orders")
        async with PacedTraffic(producer, lambda _: (most - 0.5) * _SEGMENT_RATE):
            await kube.create(AUTOSCALERS, world.namespace, _lowered(autoscaler, world.namespace))
            await world.until(TOPICS, "orders", has(most), what=f"has {most} segments", within_seconds=90)
        await world.until(TOPICS, "orders", has(1), what="has 1 segment", within_seconds=90)
        seen = await kube.get(AUTOSCALERS, world.namespace, "orders")
        await kube.delete(AUTOSCALERS, world.namespace, "orders")
    conditions = {one["type"]: one["status"] for one in seen["status"]["conditions"]}
    assert conditions["AbleToScale"] == "True"
    await world.until_ready("orders")
    await world.assert_brokers_agree("orders", "orders", set())
    actions = (await world.get(TOPICS, "orders"))["status"]["actions"]
    assert "AutoScale" not in {one["request"]["kind"] for one in actions}
