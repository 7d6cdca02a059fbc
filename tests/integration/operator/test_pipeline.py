"""The operator with a real pipeline on Spark: topics follow its records, and the brokers while it is silent."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.lease_record import LEASES
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.embedded_pipeline import load_fresh, piped_world, until_followed
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.processes import command_lines
from tests.support.pulsar_view import PulsarView
from tests.support.world import World, condition

pytestmark = pytest.mark.spark

# Rates of a test, not of a production topic; nothing is merged, so that what has grown stays.
POLICY: dict[str, Any] = {
    "maxSegments": 3,
    "split": {"cooldown": "1s", "msgRateIn": 50, "bytesRateIn": "1G", "msgRateOut": "1M", "bytesRateOut": "1G"},
    "merge": {"window": "1h", "msgRateIn": 5, "bytesRateIn": "1M", "msgRateOut": 5, "bytesRateOut": "1M"},
    "rebucket": {"splitVsRebucketMinMsgRateIn": 0},
}


@pytest.mark.timeout(900)
async def test_topics_follow_the_pipeline_and_brokers_themselves_while_it_is_silent(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    """Hazards C56 and C57."""
    folder = tmp_path / "pipelines"
    flags = ("--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")
    operator, world = await piped_world(own_operator, kube, view, pulsar, folder, *flags, intervalSeconds=5)
    connection = await world.get(CONNECTIONS, "pulsar")
    await world.apply(manifests.topic("busy", f"{world.pulsar_namespace}/busy", autoScale=POLICY))
    await world.until_ready("busy")
    uid = connection["metadata"]["uid"]
    leases = await kube.list_all(LEASES, operator.namespace)
    assert any(lease["metadata"]["name"] == f"scalable-topics-pipeline-{uid}" for lease in leases)
    streams = command_lines("segment_load", str(folder / uid))
    assert len(streams) == 1
    assert not any(pulsar.superuser_token in line for line in streams.values())

    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
        producer = await client.producer(f"{world.pulsar_namespace}/busy")
        async with KeyedTraffic(producer, keys=64, burst=10, pause_seconds=0.02) as traffic:
            await _grows(world, 2)
            # The pipeline hangs: that is told, and the brokers are asked instead.
            (stream,) = streams
            os.kill(stream, signal.SIGSTOP)
            silent = await world.until(
                CONNECTIONS,
                "pulsar",
                lambda body: load_fresh(body) == ("False", "PipelineStale"),
                what="misses its pipeline",
                within_seconds=240,
            )
            assert (
                "brokers are sampled directly: the pipeline wrote nothing for"
                in condition(silent, "LoadFresh")["message"]
            )
            await _grows(world, 3)
            os.kill(stream, signal.SIGKILL)
            await until_followed(world)
        assert not traffic.failures
    assert command_lines("segment_load", str(folder / uid)).keys().isdisjoint({stream})

    # The connection wants none any more: what is left of it goes, but for the topic of records.
    await world.change(CONNECTIONS, "pulsar", {"load": {"source": "Direct"}})
    await world.until(
        CONNECTIONS, "pulsar", lambda body: load_fresh(body) == ("True", "Sampled"), what="is sampled directly"
    )
    await world.until(
        LEASES,
        f"scalable-topics-pipeline-{uid}",
        lambda lease: not lease["spec"].get("holderIdentity"),
        what="is released",
    )
    assert not command_lines("segment_load", str(folder / uid))


async def _grows(world: World, segments: int) -> None:
    await world.until(
        TOPICS,
        "busy",
        lambda topic: int(topic["status"]["segments"]["active"]) >= segments,
        what=f"has {segments} segments",
        within_seconds=150,
    )
