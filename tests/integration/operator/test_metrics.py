"""What alerts and dashboards ask for is there: on the page of a running operator, with names that promtool likes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.admin import AdminClient
from scalable_topics.sdk import Client, GatewayOptions
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.load.records import PULSE, Pulse, encode_pulse
from tests.integration.chart.rendering import documents, rendered
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.admin_caller import make_admin
from tests.support.chart_expressions import alert_expressions, dashboard_expressions, metrics_in
from tests.support.metrics import naming_problems, read_page, sampled, until_metric
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.waiting import eventually
from tests.support.world import World, phase
from tests.support.world_making import make_world

_STARTED = "scalable_topics_operation_start_timestamp_seconds"
_UNDRAINED = "scalable_topics_undrained_segments"
_SINCE = "scalable_topics_undrained_segment_sealed_timestamp_seconds"
_TERMINATED = "scalable_topics_terminated_active_segments"
_REPLACED = "scalable_topics_segments_replaced_total"


@pytest.mark.timeout(180)
async def test_everything_that_alerts_and_dashboards_ask_for_has_series(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, pulsar_client: PulsarClient
) -> None:
    """A fleet with one of each: an ordered and a declared subscription, a stalled topic, a pipeline, a split."""
    flags = (*FAST_FLAGS, "--per-segment-metrics=true", "--auto-scale-interval-seconds=5")
    operator = await own_operator(flags)
    await asyncio.to_thread(operator.start)
    empty = sampled(await read_page(operator))
    # Before anything has happened: what `increase()` is asked of begins at 0.
    for name in ("scalable_topics_operations_total", "scalable_topics_shards_lost_total"):
        assert empty[name] == 0
    assert {"scalable_topics_reconciles_total", "scalable_topics_lease_writes_total"} <= empty.keys()
    # As many workers as it has at least.
    await until_metric(operator, "scalable_topics_asyncio_tasks ", lambda tasks: tasks is not None and tasks > 32)

    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 1})
    await world.apply(manifests.topic("orders", f"{world.pulsar_namespace}/orders", subscriptions=["billing"]))
    await world.until_ready("orders")
    await world.apply(manifests.topic("twin", f"{world.pulsar_namespace}/orders"))
    await world.until_reason("twin", "Conflict")
    token = await make_admin(kube, world.namespace, "reader")
    gateway = GatewayOptions(operator.gateway_url, token=token)
    async with AdminClient(gateway) as admin:
        assert (await admin.get_stats(str(world.topic_name("orders")))).epoch == 0
    async with (
        _written_records(world, view, pulsar) as pulse,
        Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token), gateway=gateway) as client,
    ):
        consumer = await client.stream_consumer(f"{world.pulsar_namespace}/orders", "ledger")
        await _split_slowly(operator, world, pulsar_client)
        asked = {name for one in (*dashboard_expressions(), *_alerts()) for name in metrics_in(one)}
        # Seen while the split was under way.
        asked.discard(_STARTED)

        async def missing() -> set[str]:
            await pulse()
            return asked - sampled(await read_page(operator)).keys()

        await eventually(missing, lambda names: not names, what="series of all metrics", within_seconds=60.0)
        page = await read_page(operator)
        await consumer.close()
    assert len(asked) > 50
    assert naming_problems(page) == ""


async def test_a_segment_is_undrained_until_it_is_read(
    world: World, shared_operator: RunningOperator, pulsar_client: PulsarClient
) -> None:
    name = "undrained"
    topic = str(world.topic_name(name))
    labels = f'connection="{world.namespace}/pulsar",topic="{topic}"'
    await world.apply(manifests.topic(name, topic, subscriptions=["reader"]))
    await world.until_ready(name)
    (segment,) = (await world.segment_names(name, name)).values()
    await pulsar_client.send(segment, "kept")
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
    await until_metric(shared_operator, f"{_UNDRAINED}{{{labels}}}", lambda seen: seen == 1)
    sealed_at = await until_metric(shared_operator, f"{_SINCE}{{{labels}}}", bool)
    assert sealed_at is not None
    assert 0 <= time.time() - sealed_at < 120
    await world.change(TOPICS, name, {"paused": True})
    await until_metric(shared_operator, f"{_SINCE}{{{labels}}}", lambda seen: seen is None)
    await world.change(TOPICS, name, {"paused": False})
    assert await until_metric(shared_operator, f"{_SINCE}{{{labels}}}", bool) == sealed_at
    assert await pulsar_client.receive(segment, "reader", 1) == ["kept"]
    await until_metric(shared_operator, f"{_UNDRAINED}{{{labels}}}", lambda seen: seen == 0)
    await until_metric(shared_operator, f"{_SINCE}{{{labels}}}", lambda seen: seen is None)


async def test_an_active_segment_that_somebody_terminates_is_counted_once_it_is_replaced(
    world: World, shared_operator: RunningOperator
) -> None:
    """Hazard B1."""
    name = "terminated"
    topic = str(world.topic_name(name))
    labels = f'connection="{world.namespace}/pulsar",topic="{topic}"'
    await world.apply(manifests.topic(name, topic, initial=2))
    await world.until_ready(name)
    await until_metric(shared_operator, f"{_TERMINATED}{{{labels}}}", lambda seen: seen == 0)
    segments = await world.segment_names(name, name)
    await world.pulsar.terminate(segments[0])
    await until_metric(shared_operator, f"{_REPLACED}{{{labels}}}", lambda seen: seen == 1)
    await until_metric(shared_operator, f"{_TERMINATED}{{{labels}}}", lambda seen: seen == 0)


def _alerts() -> list[str]:
    return list(alert_expressions(documents(rendered("full"))))


@asynccontextmanager
async def _written_records(world: World, view: PulsarView, pulsar: PulsarAccess) -> AsyncIterator[Callable[[], Any]]:
    """A connection with a pipeline that nobody runs; gives what writes a pulse to its records in its place."""
    records = f"persistent://{world.pulsar_namespace}/records"
    await view.create_topic(records)
    load = {"source": "Pipeline", "runner": "Embedded", "recordsTopic": records, "intervalSeconds": 5}
    await world.apply(manifests.connection("piped", world.admin_url, load=load))
    with PulsarClient(pulsar.service_url, pulsar.superuser_token) as client:
        producer = await client.producer(records)

        async def pulse() -> None:
            data = encode_pulse(Pulse(time.time_ns() // 1_000_000, 120.0, True, 0))
            await asyncio.to_thread(producer.send, data, partition_key=PULSE)

        yield pulse


async def _split_slowly(operator: RunningOperator, world: World, pulsar_client: PulsarClient) -> None:
    """Split a segment under a producer that does not leave when it is told to, and see the operation under way."""
    labels = f'connection="{world.namespace}/pulsar",kind="Split",topic="{world.topic_name("orders")}"'
    started = f"{_STARTED}{{{labels}}}"
    (segment,) = (await world.segment_names("orders", "orders")).values()
    await pulsar_client.send(segment, "unread")
    await pulsar_client.producer(segment)
    splitting = asyncio.create_task(world.operate("orders", "Split", segment=0))
    begun = await until_metric(operator, started, bool)
    assert begun is not None
    assert abs(time.time() - begun) < 60
    assert phase(await splitting) == "Succeeded"
    await until_metric(operator, started, lambda seen: seen is None)
