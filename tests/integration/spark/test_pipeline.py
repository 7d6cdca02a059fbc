"""The pipeline on real Spark and real brokers: what it reads and writes, and what it makes of losses (R34, R35)."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.access import PulsarAccess
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.load.records import Pulse, SegmentRecord
from segment_load.broker_access import BrokerAccess
from segment_load.broker_source import SOURCE
from segment_load.record_sink import RecordTopic
from segment_load.stream import StreamSettings
from tests.support.load_pipeline import FOREIGN, INTERVAL_SECONDS, Pipeline, Segments, start_job
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world_making import random_name

pytestmark = pytest.mark.spark


async def test_the_source_reads_all_brokers(
    spark: SparkSession, access: BrokerAccess, segments: Segments, pulsar: PulsarAccess
) -> None:
    name = await segments.make(1)
    await segments.send(name, 50)
    options = {"adminUrl": access.admin_url, "tokenFile": access.token_file}
    frame = spark.read.format(SOURCE).options(**options).load()

    async def look() -> list[tuple[str, float]]:
        rows = await asyncio.to_thread(frame.collect)
        heartbeats = [row for row in rows if row["segment"] is None]
        assert [row["broker"] for row in heartbeats] == sorted(
            url.removeprefix("http://") for url in pulsar.broker_admin_urls
        )
        assert all(row["silence"] is None for row in heartbeats)
        return [(row["segment"], row["msg_rate_in"]) for row in rows if row["segment"] == name]

    await eventually(look, lambda found: bool(found) and 20 < found[0][1] < 80, what="a rate", within_seconds=40)


async def test_records_follow_a_segment_through_its_life_and_survive_every_loss(
    pipeline: Pipeline, segments: Segments, view: PulsarView
) -> None:
    name, idle = await segments.make(1), await segments.make(2)
    await segments.send(name, 50)
    await pipeline.start()
    # A period in which the machine stalls has another rate.
    await eventually(
        lambda: pipeline.until_told(name),
        lambda hot: hot.rates is not None and 20 < hot.rates.msg_rate_in < 80,
        what="the rate is told",
        within_seconds=120,
    )
    assert (await pipeline.until_told(idle)).rates is not None

    segments.hush()

    def is_idle(seen: tuple[dict[str, SegmentRecord], Pulse | None]) -> bool:
        rates = seen[0][name].rates
        return rates is not None and rates.msg_rate_in == 0

    await eventually(pipeline.table, is_idle, what="silence is told", within_seconds=60, every_seconds=1.0)
    found, pulse = await pipeline.table()
    assert pulse is not None
    assert (pulse.silent, pulse.segments) == ({}, len(found))
    assert found[name].backlog["s"] > 0

    # The topic of records is lost: all is told anew, though nothing is news.
    await view.delete_topic(pipeline.settings.topic.name, force=True)
    lost_at_ms = pulse.at_ms
    await eventually(
        pipeline.table,
        lambda seen: seen[1] is not None and seen[1].at_ms > lost_at_ms and seen[1].segments == len(seen[0]),
        what="all is told again",
        within_seconds=60,
        every_seconds=0.5,
    )
    again, _ = await pipeline.table()
    assert {name, idle} <= again.keys()

    # Somebody else writes to it: what is not the pipeline's goes.
    await segments.write(pipeline.settings.topic.name, "stranger", FOREIGN)
    assert "stranger" in (await pipeline.table())[0]
    await eventually(
        pipeline.table, lambda seen: "stranger" not in seen[0], what="it is gone", within_seconds=60, every_seconds=0.5
    )

    # The checkpoint and all state are lost, and a segment meanwhile: its record goes.
    await pipeline.stop()
    gone_at_ms = int(time.time() * 1000)
    shutil.rmtree(pipeline.settings.folder)
    await view.delete_topic(idle, force=True)
    await pipeline.start()
    await pipeline.until_told(name, "is told again", since_ms=gone_at_ms)
    await eventually(
        pipeline.table,
        lambda seen: idle not in seen[0] and seen[1] is not None and seen[1].settled,
        what="its record goes, and all is known",
        within_seconds=90,
        every_seconds=1.0,
    )


async def test_the_job_goes_on_after_a_kill_and_ends_well_when_told_to(
    pipeline: Pipeline, segments: Segments, pulsar: PulsarAccess
) -> None:
    name = await segments.make(1)
    # So far apart that a start is over before looks count as broken off.
    settings = replace(pipeline.settings, interval_seconds=15.0)
    process = await start_job(settings)
    try:
        await pipeline.until_told(name)
        process.kill()
        await process.wait()
        _, before = await pipeline.table()
        assert before is not None
        process = await start_job(settings, stderr=asyncio.subprocess.PIPE)
        found, _ = await pipeline.until_pulse_after(before.at_ms)
        assert found[name].rates is not None, "the checkpoint tells that it counts already"
        process.terminate()
        _, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0, errors.decode()[-2000:]
        assert pulsar.superuser_token not in errors.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.timeout(400)
async def test_the_job_outlives_its_broker(
    local_cluster: Callable[[Shape], LocalCluster], spark: SparkSession, tmp_path: Path
) -> None:
    """The only broker is gone for a while: nothing can be read or written, and nobody helps afterwards."""
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False))
    brokers = cluster.pulsar.access
    access = BrokerAccess(brokers.admin_url, str(brokers.superuser_token_file), timeout_seconds=5.0)
    namespace = f"tests/{random_name('load')}"
    async with PulsarView(brokers.admin_url, brokers.superuser_token) as view:
        await view.create_namespace(namespace)
        segments = Segments(view, namespace, brokers.service_url, brokers.superuser_token)
        name = await segments.make(1)
        topic = RecordTopic(f"persistent://{namespace}/records", brokers.service_url, access.token_file)
        settings = StreamSettings(access, topic, str(tmp_path / "load"), interval_seconds=INTERVAL_SECONDS)
        pipeline = Pipeline(spark, settings, brokers)
        process = await start_job(pipeline.settings)
        try:
            await pipeline.until_told(name)
            await asyncio.to_thread(cluster.pulsar.stop_broker, 0)
            gone_at_ms = int(time.time() * 1000)
            await asyncio.sleep(10)
            assert process.returncode is None
            await asyncio.to_thread(cluster.pulsar.start_broker, 0)
            await pipeline.until_pulse_after(gone_at_ms)
            # What a broker has not loaded is in none of its answers, and nothing but a client's coming loads it.
            await segments.write(name, "key", b"an application comes back")
            await pipeline.until_told(name, "is told with rates again", since_ms=gone_at_ms)
            assert process.returncode is None
        finally:
            process.kill()
            await process.wait()
            await segments.close()


async def test_a_job_that_cannot_begin_says_why_in_one_line(tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "segment_load", "stream", "--master", "local[1]", "--admin-url", "broker:8080"),
        *("--service-url", "pulsar://b:6650", "--records-topic", "persistent://a/b/c", "--folder", str(tmp_path)),
    ]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert errors.decode() == "segment_load: adminUrl must be http(s)://HOST:PORT, without credentials and query\n"
