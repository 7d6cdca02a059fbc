"""One bad object never delays the others (hazards C22, C37, C39)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.fault_proxy import FaultProxy
from tests.support.running_operator import FAST_FLAGS
from tests.support.world import World

_BAD = 20
_WORKERS = 4
# A call to a cluster that does not answer takes so long: whoever waits behind one shows, on a busy machine too.
_PATIENT = {"requestTimeoutSeconds": 60}
_UNDISTURBED_SECONDS = 30.0


async def _create_to_ready_seconds(world: World, name: str, connection: str = "pulsar") -> float:
    started = time.monotonic()
    topic = str(world.topic_name(name))
    await world.apply(manifests.topic(name, topic, connection_name=connection, initial=4, subscriptions=["reader"]))
    await world.until_ready(name)
    return time.monotonic() - started


async def test_twenty_connections_that_hang_do_not_delay_a_good_topic(world: World) -> None:
    """Hazards C22, C37 and C39."""
    alone = await _create_to_ready_seconds(world, "alone")
    async with FaultProxy(world.admin_url) as blackhole:
        blackhole.fall_silent()
        for number in range(_BAD):
            await world.apply(manifests.connection(f"hangs-{number}", blackhole.url, limits=_PATIENT))
            bad = manifests.topic(f"hung-{number}", str(world.topic_name("hung")), connection_name=f"hangs-{number}")
            await world.apply(bad)
        beside = [await _create_to_ready_seconds(world, f"beside-{number}") for number in range(3)]
        print(f"create to Ready: alone {alone:.2f} s, beside {_BAD} bad ones at most {max(beside):.2f} s")
        assert max(beside) < _UNDISTURBED_SECONDS


async def test_a_cluster_that_falls_silent_does_not_delay_topics_of_others(proxied: MakeProxied) -> None:
    """More topics with work to do hang on it than there are workers (hazards C22 and C37)."""
    bench = await proxied(flags=(*FAST_FLAGS, f"--workers={_WORKERS}"))
    await bench.start()
    world = bench.world
    silent = [f"mute-{number}" for number in range(_WORKERS + 2)]
    for name in silent:
        await world.apply(manifests.topic(name, str(world.topic_name(name))))
    await world.apply(manifests.connection("other", world.admin_url))
    for name in silent:
        await world.until_ready(name)
    bench.admin.fall_silent()
    for name in silent:
        await world.change(TOPICS, name, {"segments": {"desired": 2}})
    beside = [await _create_to_ready_seconds(world, f"loud-{number}", "other") for number in range(3)]
    print(f"create to Ready: beside {len(silent)} topics that hang at most {max(beside):.2f} s")
    assert max(beside) < _UNDISTURBED_SECONDS
    bench.admin.come_up()
    for name in silent:
        await world.until(
            TOPICS, name, lambda body: body["status"]["segments"]["active"] == 2, what="goes on by itself"
        )


@pytest.mark.parametrize(
    "broken", [{"segments": []}, {"nextSegmentId": None}, {"epoch": None}, {"version": 99}], ids=str
)
async def test_c39_what_is_broken_at_the_start_keeps_nothing_from_it(
    proxied: MakeProxied, broken: dict[str, Any]
) -> None:
    bench = await proxied()
    await bench.start()
    world = bench.world
    for name in ("broken", "sound"):
        await world.apply(manifests.topic(name, str(world.topic_name(name))))
        await world.until_ready(name)
    await asyncio.to_thread(bench.operator.stop)
    await world.set_status("broken", {"layout": broken})
    await world.apply(manifests.connection("locked", world.admin_url, "no-such-secret"))
    await world.apply(manifests.topic("waiting", str(world.topic_name("waiting")), connection_name="locked"))
    await world.apply(manifests.operation("stray", "no-such-topic", "Split", segment=0))
    await world.apply(manifests.operation("sound-split", "sound", "Split", segment=0))
    await bench.start()
    await world.until_ended("sound-split")
    await world.until_ready("sound")
    await world.until_reason("broken", "InvalidRecord")
    await world.until_reason("waiting", "ConnectionDown")
    await world.until_reason("locked", "Refused", resource=CONNECTIONS)
