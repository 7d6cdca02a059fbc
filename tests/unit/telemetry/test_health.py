"""Health tied to real work."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import tracemalloc
from collections.abc import Iterator

import aiohttp
import pytest
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from scalable_topics_operator.telemetry.fleet_metrics import TopicGlimpse, TopicStanding
from scalable_topics_operator.telemetry.health import Pulse, PulseLimits, limits_for, serve_telemetry, why_unhealthy
from scalable_topics_operator.telemetry.logs import JsonFormatter
from scalable_topics_operator.telemetry.metrics import Metrics
from scalable_topics_operator.telemetry.series import LabelledGauge

WELL = Pulse(synced=True, list_age_seconds=10, untaken_seconds=0, longest_work_seconds=0)


def test_a_process_at_work_is_well() -> None:
    assert why_unhealthy(WELL, PulseLimits()) == []


@pytest.mark.parametrize(
    ("pulse", "word"),
    [
        (Pulse(True, 4000, 0, 0), "list"),
        (Pulse(True, 10, 400, 0), "worker"),
        (Pulse(True, 10, 0, 1000), "reconcile"),
    ],
)
def test_each_way_of_being_stuck_is_told(pulse: Pulse, word: str) -> None:
    problems = why_unhealthy(pulse, PulseLimits())
    assert len(problems) == 1
    assert word in problems[0]


def test_a_process_that_is_told_to_list_seldom_is_not_stuck_for_that() -> None:
    hourly = limits_for(3600.0)
    assert why_unhealthy(Pulse(True, 4000, 0, 0), hourly) == []
    assert why_unhealthy(Pulse(True, 5 * 3600, 0, 0), hourly)
    assert limits_for(300.0) == PulseLimits()


def test_an_api_server_that_is_not_there_yet_is_no_reason_for_a_restart() -> None:
    assert why_unhealthy(Pulse(False, 99999, 0, 0), PulseLimits()) == []


def test_logs_are_json_with_their_extra_fields_and_errors() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, "%s failed", ("it",), (type(error), error, error.__traceback__)
        )
    record.topic = "orders"
    entry = json.loads(JsonFormatter().format(record))
    assert (entry["level"], entry["message"], entry["topic"]) == ("ERROR", "it failed", "orders")
    assert "ValueError: broken" in entry["exception"]


async def test_its_page_is_served_at_several_addresses() -> None:
    well = Pulse(synced=True, list_age_seconds=1, untaken_seconds=0, longest_work_seconds=0)
    async with (
        serve_telemetry(Metrics(), lambda: well, "127.0.0.2,127.0.0.1", 0) as port,
        aiohttp.ClientSession() as session,
    ):
        for host in ("127.0.0.2", "127.0.0.1"):
            async with session.get(f"http://{host}:{port}/readyz") as response:
                assert (response.status, await response.text()) == (200, "ok")


async def test_metrics_of_a_large_fleet_hold_nothing_else_up() -> None:
    metrics, looked, went_on = Metrics(), threading.Event(), threading.Event()

    def many() -> Iterator[TopicGlimpse]:
        looked.set()
        assert went_on.wait(20), "the event loop stood still while topics were looked at"
        yield TopicGlimpse("topic://public/default/orders", "shop/pulsar", TopicStanding.READY)

    metrics.fleet.follow(many)

    async def ask(url: str) -> str:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.text()

    async with serve_telemetry(metrics, lambda: WELL, "127.0.0.1", 0) as port:
        asked = asyncio.create_task(ask(f"http://127.0.0.1:{port}/metrics"))
        await asyncio.to_thread(looked.wait, 20)
        went_on.set()
        assert 'scalable_topics_topics{state="Ready"} 1.0' in await asked


async def test_metrics_of_a_large_fleet_are_never_whole_in_memory() -> None:
    metrics = Metrics()
    many = [f"topic://public/default/orders-{number:05}" for number in range(5_000)]
    gauges = [
        LabelledGauge(f"many_{number}", "One for each topic.", ["topic"], registry=metrics.registry)
        for number in range(40)
    ]
    for gauge in gauges:
        for topic in many:
            gauge.set(1.0, topic)
    size_bytes = len(generate_latest(metrics.registry))
    async with serve_telemetry(metrics, lambda: WELL, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/metrics"
        tracemalloc.start()
        try:
            async with session.get(url) as response:
                read_bytes = sum([len(part) async for part in response.content.iter_any()])
            most_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # What counts scrapes and times may have grown meanwhile.
    assert abs(read_bytes - size_bytes) < 1_000
    assert 2 * most_bytes < size_bytes


async def test_the_page_is_what_prometheus_reads() -> None:
    metrics = Metrics()
    expected = generate_latest(metrics.registry).decode()
    async with serve_telemetry(metrics, lambda: WELL, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/metrics"
        async with session.head(url) as head:
            assert (head.status, await head.read()) == (200, b"")
        async with session.get(url) as response:
            assert response.headers["Content-Type"] == CONTENT_TYPE_LATEST
            page = await response.text()
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        line for line in expected.splitlines() if line.startswith("#")
    ]
    assert [family.name for family in text_string_to_metric_families(page)]


async def test_whoever_hangs_up_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """As Prometheus does where a busy replica takes longer than it waits for."""
    metrics, asked, went_on = Metrics(), threading.Event(), threading.Event()

    def many() -> Iterator[TopicGlimpse]:
        asked.set()
        assert went_on.wait(20)
        yield TopicGlimpse("topic://public/default/orders", "shop/pulsar", TopicStanding.READY)

    metrics.fleet.follow(many)
    gone = asyncio.Event()
    async with serve_telemetry(metrics, lambda: WELL, "127.0.0.1", 0) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.to_thread(asked.wait, 20)
        writer.transport.abort()
        asyncio.get_running_loop().call_later(0.1, gone.set)
        await gone.wait()
        went_on.set()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
