"""Topics that follow a load by a pipeline in pods, run by a real Spark operator: `make show-pipeline-pods`."""

from __future__ import annotations

import asyncio

import pytest

from dev.access import NodeAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, SPARK_APPLICATIONS
from tests.integration.operator.conftest import MakeOperator
from tests.support.embedded_pipeline import until_followed
from tests.support.evidence import Evidence, table
from tests.support.load_ramp import HEADER, ramp
from tests.support.metrics import read_metric
from tests.support.node_pipeline import PODS, application_settings, make_companions
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import World
from tests.support.world_making import make_world

_INTERVAL_SECONDS, _STATISTICS_SECONDS, _SAMPLE_SECONDS = 5, 5, 5
_FLAGS = ("--auto-scale-enabled=true", f"--auto-scale-interval-seconds={_INTERVAL_SECONDS}")
_RAMP, _DRIVER = "A load of sixteen segments, and none again", "The driver's pod is killed"
_APPLICATIONS = SPARK_APPLICATIONS[0]

pytestmark = pytest.mark.node


@pytest.mark.timeout(2400)
async def test_a_ramp_is_followed_by_a_pipeline_in_pods_and_a_killed_driver_comes_back(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> None:
    page = Evidence(
        "pipeline-pods.md", "A pipeline in pods, for topics that follow it", "make show-pipeline-pods", (_RAMP, _DRIVER)
    )
    node = NodeAccess.from_environment()
    operator = await own_operator((*FAST_FLAGS, *_FLAGS))
    await make_companions(kube, operator.namespace, node)
    load = {
        "source": "Pipeline",
        "runner": "SparkApplication",
        "intervalSeconds": _SAMPLE_SECONDS,
        "sparkApplication": application_settings(node),
    }
    world = await make_world(kube, view, pulsar, operator.namespace, load=load)
    await asyncio.to_thread(operator.start)
    await until_followed(world)
    application = await _application(world)
    assert application["status"]["applicationState"]["state"] == "RUNNING"
    rows = [await ramp(operator, world, pulsar, fanout) for fanout in (2, 8)]
    assert await read_metric(operator, 'scalable_topics_pipeline_followed{name="pulsar"') == 1

    driver = await kube.get(PODS, operator.namespace, f"{application['metadata']['name']}-driver")
    await kube.delete(PODS, operator.namespace, driver["metadata"]["name"], uid=driver["metadata"]["uid"])
    began = asyncio.get_running_loop().time()
    await eventually(
        lambda: read_metric(operator, 'scalable_topics_pipeline_followed{name="pulsar"'),
        lambda followed: followed == 0,
        what="the brokers are asked instead",
        within_seconds=120,
    )
    silent_seconds = asyncio.get_running_loop().time() - began
    await eventually(
        lambda: read_metric(operator, 'scalable_topics_pipeline_followed{name="pulsar"'),
        lambda followed: followed == 1,
        what="the pipeline is followed again",
        within_seconds=300,
        every_seconds=0.5,
    )
    again_seconds = asyncio.get_running_loop().time() - began
    uid = (await _application(world))["metadata"]["uid"]
    assert uid == application["metadata"]["uid"], "its Spark operator has started the driver again, not ours"

    # With the connection goes all that was made for it.
    await world.change(CONNECTIONS, "pulsar", {"load": {"source": "Direct"}})
    await world.until_gone(_APPLICATIONS, application["metadata"]["name"], within_seconds=60)
    await world.until_gone(PODS, driver["metadata"]["name"], within_seconds=120)
    await asyncio.to_thread(operator.stop)
    page.show(
        _RAMP,
        "Runner `SparkApplication`: the operator makes it, the kubeflow spark-operator v2.4.0 runs it as a driver and",
        "an executor pod on a real node. Messages of 512 keys at 13 times `split.msgRateIn`, from one moment to the",
        f"next; after a while none. Brokers renew their statistics every {_STATISTICS_SECONDS} s, there is a batch",
        f"every {_SAMPLE_SECONDS} s, decisions are made every {_INTERVAL_SECONDS} s, cool-downs are 1 s, and segments",
        "are cold after 10 s.",
        "",
        *table(HEADER, rows),
    )
    page.show(
        _DRIVER,
        f"The operator asks the brokers itself {silent_seconds:.0f} s after the pod was deleted, and follows the",
        f"pipeline again {again_seconds:.0f} s after it. The SparkApplication is the same. With `source: Direct` it",
        "goes, and its pods with it.",
    )
    assert page.write()


async def _application(world: World) -> Body:
    (found,) = await world.kube.list_all(_APPLICATIONS, world.namespace)
    return found
