"""The operator as a process: what it shows of itself, how it starts and how it ends."""

from __future__ import annotations

import asyncio

import aiohttp

from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.metrics import read_metric, until_metric
from tests.support.running_operator import RunningOperator
from tests.support.waiting import eventually
from tests.support.world import World, phase

# It takes some 1.5 s, what it would wait for 60 s.
_PROMPT_SECONDS = 15.0


async def _page(operator: RunningOperator, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{operator.metrics_url}{path}") as response:
        return response.status, await response.text()


async def test_metrics_count_what_was_really_done(world: World, shared_operator: RunningOperator) -> None:
    async def number(series: str) -> float:
        return await read_metric(shared_operator, series) or 0.0

    name = "counted"
    full_name = str(world.topic_name(name))
    counted = {
        'scalable_topics_operations_total{kind="Create",result="Succeeded"}': 1,
        'scalable_topics_operations_total{kind="Split",result="Succeeded"}': 1,
        'scalable_topics_operations_total{kind="Merge",result="Succeeded"}': 1,
        'scalable_topics_admin_call_seconds_count{operation="terminate",outcome="ok"}': 1 + 1 + 2,
    }
    before = {series: await number(series) for series in counted}
    reconciles = 'scalable_topics_reconciles_total{kind="scalabletopics",result="done"}'
    reconciles_before = await number(reconciles)
    await world.apply(manifests.topic(name, full_name, deletionPolicy="Delete", policies=_RETENTION))
    await world.until_ready(name)
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
    assert phase(await world.operate(name, "Merge", segments=[1, 2])) == "Succeeded"
    await world.until_ready(name)
    for series, times in counted.items():
        # Other topics of this worker may be repaired meanwhile: at least what was done here was counted.
        assert await number(series) - before[series] >= times, series
    assert await number(reconciles) > reconciles_before
    for series, value in (
        ("pulsar_scalable_topic_active_segments", 1),
        ("scalable_topics_sealed_segments", 3),
        ("scalable_topics_layout_epoch", 2),
    ):
        await until_metric(shared_operator, f'{series}{{topic="{full_name}"}}', lambda seen, v=value: seen == v)  # type: ignore[misc]
    up = f'scalable_topics_connection_up{{name="pulsar",namespace="{world.namespace}"}}'
    assert await number(up) == 1
    await until_metric(shared_operator, 'scalable_topics_objects{kind="ScalableTopic"}', bool)
    await world.delete(TOPICS, name)
    await world.until_gone(TOPICS, name)
    await until_metric(
        shared_operator, f'pulsar_scalable_topic_active_segments{{topic="{full_name}"}}', lambda seen: seen is None
    )


_RETENTION = {"perSegment": {"retentionTimeMinutes": 60}}


async def test_a_connection_that_goes_takes_its_series_along(world: World, shared_operator: RunningOperator) -> None:
    await world.apply(manifests.connection("passing", world.admin_url))
    up = f'scalable_topics_connection_up{{name="passing",namespace="{world.namespace}"}}'
    await until_metric(shared_operator, up, lambda seen: seen == 1)
    await world.delete(CONNECTIONS, "passing")
    await until_metric(shared_operator, up, lambda seen: seen is None)


async def test_health_is_tied_to_real_work_and_the_end_is_prompt(proxied: MakeProxied) -> None:
    """It is alive while it waits for an API server, ready once it has listed all, and ends when asked, always."""
    bench = await proxied()
    operator, world = bench.operator, bench.world
    bench.kube.go_down()
    operator.launch()
    assert await eventually(lambda: _health(operator, "/healthz"), what="it serves") == (200, "ok")
    assert await _page(operator, "/readyz") == (503, "objects are not listed yet")
    seconds = await asyncio.to_thread(operator.stop)
    print(f"SIGTERM to exit code 0 while it waits for the API server: {seconds:.2f} s")
    assert seconds < _PROMPT_SECONDS

    bench.kube.come_up()
    await bench.start()
    assert await _page(operator, "/readyz") == (200, "ok")
    assert await _page(operator, "/healthz") == (200, "ok")
    await world.apply(manifests.topic("ends", str(world.topic_name("ends")), initial=4))
    await world.until_ready("ends")
    # In the middle of an operation that hangs: it is journaled, so that nothing needs to be waited for.
    held = bench.admin.hold("POST", "/terminate$")
    await world.apply(manifests.operation("ends-split", "ends", "Split", segment=0))
    await held.arrived.wait()
    seconds = await asyncio.to_thread(operator.stop)
    print(f"SIGTERM to exit code 0 in the middle of a split: {seconds:.2f} s")
    assert seconds < _PROMPT_SECONDS
    assert "Traceback" not in operator.log_text()


async def _health(operator: RunningOperator, path: str) -> tuple[int, str] | None:
    try:
        return await _page(operator, path)
    except (RuntimeError, aiohttp.ClientError):
        return None
