"""Health tied to real work, and the HTTP page that tells of it (metrics, liveness, readiness)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pulse:
    """Signs of work.

    Args:
        synced: every kind has been listed once, so work has begun.
        list_age_seconds: age of the last complete round of lists.
        untaken_seconds: how long objects have waited without that a worker has taken any of them.
        longest_work_seconds: how long the longest reconcile has run.
    """

    synced: bool
    list_age_seconds: float
    untaken_seconds: float
    longest_work_seconds: float


@dataclass(frozen=True, slots=True)
class PulseLimits:
    """Beyond these the process is taken for stuck and restarted.

    Args:
        list_age_seconds: of the last complete list; several times what is meant to be between two.
        untaken_seconds: without that a worker has taken any of the objects that wait.
        longest_work_seconds: of one reconcile.
    """

    list_age_seconds: float = 1800.0
    untaken_seconds: float = 300.0
    longest_work_seconds: float = 900.0


def why_unhealthy(pulse: Pulse, limits: PulseLimits) -> list[str]:
    """What makes the process count as stuck; empty while it is well. Pure."""
    found = []
    if pulse.synced and pulse.list_age_seconds > limits.list_age_seconds:
        found.append(f"no complete list of objects for {pulse.list_age_seconds:.0f} s")
    if pulse.untaken_seconds > limits.untaken_seconds:
        found.append(f"objects wait, and no worker has taken one for {pulse.untaken_seconds:.0f} s")
    if pulse.longest_work_seconds > limits.longest_work_seconds:
        found.append(f"a reconcile has run for {pulse.longest_work_seconds:.0f} s")
    return found


def limits_for(relist_seconds: float) -> PulseLimits:
    """The limits of a process that lists everything every so many seconds: three lists may fail in a row."""
    return PulseLimits(list_age_seconds=max(PulseLimits().list_age_seconds, 4 * relist_seconds))


def make_telemetry_app(metrics: Metrics, pulse: Callable[[], Pulse], limits: PulseLimits) -> web.Application:
    """`/metrics`, `/healthz` (alive) and `/readyz` (has listed everything and works)."""

    async def show_metrics(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE_LATEST})
        parts = _parts_of_page(metrics.registry)
        try:
            if request.method == "HEAD":
                await response.prepare(request)
                return response
            # Not on the event loop: it looks at every topic, of which there may be ten thousand.
            part = await asyncio.to_thread(next, parts, b"")
            await response.prepare(request)
            while part:
                await response.write(part)
                part = await asyncio.to_thread(next, parts, b"")
        except ConnectionResetError:
            logger.debug("whoever asked for metrics has hung up")
        return response

    async def healthz(_: web.Request) -> web.Response:
        problems = why_unhealthy(pulse(), limits)
        return web.Response(text="; ".join(problems) or "ok", status=500 if problems else 200)

    async def readyz(_: web.Request) -> web.Response:
        synced = pulse().synced
        return web.Response(text="ok" if synced else "objects are not listed yet", status=200 if synced else 503)

    app = web.Application()
    app.add_routes([web.get("/metrics", show_metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])
    return app


class _OneMetric(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def _parts_of_page(registry: CollectorRegistry) -> Iterator[bytes]:
    """The page, metric by metric: the whole of it has tens of megabytes where there are ten thousand topics."""
    for metric in registry.collect():
        yield generate_latest(_OneMetric(metric))


@asynccontextmanager
async def serve_telemetry(
    metrics: Metrics, pulse: Callable[[], Pulse], host: str, port: int, limits: PulseLimits | None = None
) -> AsyncIterator[int]:
    """Serve that application at an address, or several with commas between; gives the port. Raises OSError."""
    runner = web.AppRunner(make_telemetry_app(metrics, pulse, limits or PulseLimits()), access_log=None)
    await runner.setup()
    try:
        bound_port = port
        for address in host.split(","):
            await web.TCPSite(runner, address, bound_port).start()
            bound_port = runner.addresses[0][1]
        logger.info("metrics and health on %s:%d", host.partition(",")[0], bound_port)
        yield bound_port
    finally:
        await runner.cleanup()
