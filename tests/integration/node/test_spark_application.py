"""The load pipeline as people run it on a cluster: a SparkApplication, whose driver and executor are pods."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dev.access import KubernetesAccess, NodeAccess, PulsarAccess
from scalable_topics_operator.api.connection import ScalableTopicConnection
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import CONFIG_MAPS, NAMESPACES, SECRETS, SPARK_APPLICATIONS
from scalable_topics_operator.load.pipeline_job import PipelineJob
from scalable_topics_operator.load.records import Pulse, SegmentRecord
from scalable_topics_operator.load.spark_application import application_name, render, thresholds_name
from scalable_topics_operator.load.spark_pods import THRESHOLDS_KEY
from tests.support import manifests
from tests.support.load_pipeline import Segments, read_records
from tests.support.node_pipeline import PODS, application_settings, make_companions
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world_making import random_name

pytestmark = [pytest.mark.node, pytest.mark.timeout(1800)]

APPLICATIONS = SPARK_APPLICATIONS[0]
CONNECTION = "pulsar"
JOB = application_name(CONNECTION)
DRIVER = f"{JOB}-driver"
# Spark in two pods on a machine of two cores, with brokers beside it.
START_SECONDS = 400


@pytest.fixture
async def kube(kubernetes: KubernetesAccess) -> AsyncIterator[KubeClient]:
    async with KubeClient(load_endpoint()) as client:
        yield client


@pytest.fixture
async def home(kube: KubeClient) -> AsyncIterator[str]:
    """A namespace of Kubernetes, which takes its pods along when it goes."""
    name = random_name("load")
    await kube.create(NAMESPACES, None, {"metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACES, None, name)


@pytest.fixture
async def segments(view: PulsarView, pulsar: PulsarAccess) -> AsyncIterator[Segments]:
    namespace = f"tests/{random_name('load')}"
    await view.create_namespace(namespace)
    made = Segments(view, namespace, pulsar.service_url, pulsar.superuser_token)
    yield made
    await made.close()


class Application:
    """The application on the cluster, as the operator renders it, and what it writes."""

    def __init__(self, kube: KubeClient, home: str, node: NodeAccess, records_topic: str, pulsar: PulsarAccess) -> None:
        self._kube = kube
        self._home = home
        self._node = node
        self._records_topic = records_topic
        self._pulsar = pulsar

    async def apply(self) -> None:
        await make_companions(self._kube, self._home, self._node)
        await self._kube.create(
            SECRETS, self._home, manifests.secret("pulsar-token", token=self._pulsar.superuser_token)
        )
        thresholds = {"metadata": {"name": thresholds_name(CONNECTION)}, "data": {THRESHOLDS_KEY: "{}"}}
        await self._kube.create(CONFIG_MAPS, self._home, thresholds)
        application = self._rendered()
        # It would go with a connection that is not there.
        del application["metadata"]["ownerReferences"]
        await self._kube.create(APPLICATIONS, self._home, application)

    def _rendered(self) -> dict[str, Any]:
        load = {"sparkApplication": application_settings(self._node), "intervalSeconds": 5}
        load |= {"source": "Pipeline", "runner": "SparkApplication"}
        body = manifests.connection(CONNECTION, self._pulsar.admin_url, load=load)
        spec = ScalableTopicConnection.model_validate(body).spec
        assert spec.load.spark_application is not None
        urls = (self._pulsar.admin_url, self._pulsar.service_url, self._records_topic)
        job = PipelineJob(self._home, CONNECTION, "nobody", *urls, spec.load.interval_seconds, timeout_seconds=5)
        return render(spec, spec.load.spark_application, job)

    async def driver(self) -> dict[str, Any] | None:
        with contextlib.suppress(KubeNotFound):
            return await self._kube.get(PODS, self._home, DRIVER)
        return None

    async def executors(self) -> list[str]:
        pods = await self._kube.list_all(PODS, self._home)
        return [
            pod["metadata"]["name"]
            for pod in pods
            if pod["metadata"]["labels"].get("spark-role") == "executor" and pod["status"]["phase"] == "Running"
        ]

    async def status(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self._kube.get(APPLICATIONS, self._home, JOB)).get("status", {})
        return found

    async def pods(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in await self._kube.list_all(PODS, self._home)]

    async def kill_driver(self) -> str:
        """Take the driver's pod away; answers its uid."""
        pod = await self.driver()
        assert pod is not None
        uid = str(pod["metadata"]["uid"])
        await self._kube.delete(PODS, self._home, DRIVER, uid=uid)
        return uid

    async def delete(self) -> None:
        await self._kube.delete(APPLICATIONS, self._home, JOB)

    async def records(self) -> tuple[dict[str, SegmentRecord], Pulse | None]:
        return await asyncio.to_thread(read_records, self._records_topic, self._pulsar)


async def test_a_spark_application_tells_the_load_and_is_begun_again_when_its_driver_dies(
    kube: KubeClient, home: str, segments: Segments, view: PulsarView, pulsar: PulsarAccess
) -> None:
    node = NodeAccess.from_environment()
    name = await segments.make(1)
    await segments.send(name, 50)
    namespace = "/".join(name.split("/")[2:4])
    records = f"persistent://{namespace}/records"
    application = Application(kube, home, node, records, pulsar)
    await application.apply()

    # Whoever reads a topic that is not there makes it, and the brokers delete it soon: the job makes it to stay.
    await eventually(
        lambda: view.topics(namespace),
        lambda topics: records in topics,
        what="the job has made the topic of its records",
        within_seconds=START_SECONDS,
        every_seconds=1.0,
    )
    found, pulse = await eventually(
        application.records,
        lambda seen: seen[1] is not None and name in seen[0] and seen[0][name].rates is not None,
        what="a pulse, and a record of the segment with its rates",
        within_seconds=START_SECONDS,
        every_seconds=1.0,
    )
    rates = found[name].rates
    assert rates is not None
    assert 20 < rates.msg_rate_in < 80
    assert pulse is not None
    assert pulse.silent == {}
    assert len(await application.executors()) == 1
    assert (await application.status())["applicationState"]["state"] == "RUNNING"

    killed = await application.kill_driver()

    async def new_driver() -> str | None:
        pod = await application.driver()
        return pod["metadata"]["uid"] if pod and pod["status"]["phase"] == "Running" else None

    await eventually(
        new_driver,
        lambda uid: uid not in (None, killed),
        what="the spark-operator begins the job again",
        within_seconds=START_SECONDS,
        every_seconds=1.0,
    )
    _, before = await application.records()
    assert before is not None
    found, _ = await eventually(
        application.records,
        lambda seen: seen[1] is not None and seen[1].at_ms > before.at_ms,
        what="pulses go on",
        within_seconds=START_SECONDS,
        every_seconds=1.0,
    )
    assert found[name].rates is not None, "the checkpoint in the shared folder tells that it counts already"
    assert (await application.status())["executionAttempts"] == 2

    await application.delete()
    await eventually(application.pods, lambda pods: pods == [], what="all pods go", within_seconds=90)
