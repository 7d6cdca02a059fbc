"""One bad object never delays the others (hazards C22, C37, C39)."""

from __future__ import annotations

import time

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.fault_proxy import FaultProxy
from tests.support.world import World, condition

_BAD = 20
_SILENT = 36
# A call to a cluster that does not answer takes 10 s, and is repeated up to 30 s: whoever waits behind one shows.
_UNDISTURBED_SECONDS = 8.0


async def _create_to_ready_seconds(world: World, name: str) -> float:
    started = time.monotonic()
    await world.apply(manifests.topic(name, str(world.topic_name(name)), initial=4, subscriptions=["reader"]))
    await world.until_ready(name)
    return time.monotonic() - started


async def test_twenty_connections_that_hang_do_not_delay_a_good_topic(world: World) -> None:
    alone = await _create_to_ready_seconds(world, "alone")
    async with FaultProxy(world.admin_url) as blackhole:
        blackhole.fall_silent()
        for number in range(_BAD):
            await world.apply(manifests.connection(f"hangs-{number}", blackhole.url))
            bad = manifests.topic(f"hung-{number}", str(world.topic_name("hung")), connection_name=f"hangs-{number}")
            await world.apply(bad)
        beside = [await _create_to_ready_seconds(world, f"beside-{number}") for number in range(3)]
        print(f"create to Ready: alone {alone:.2f} s, beside {_BAD} bad ones at most {max(beside):.2f} s")
        assert max(beside) < _UNDISTURBED_SECONDS


async def test_a_cluster_that_falls_silent_does_not_delay_topics_of_others(world: World) -> None:
    """More topics with work to do hang on it than there are workers."""
    async with FaultProxy(world.admin_url) as proxy:
        await world.apply(manifests.connection("silent", proxy.url))
        for number in range(_SILENT):
            name = f"mute-{number}"
            await world.apply(manifests.topic(name, str(world.topic_name(name)), connection_name="silent"))
        for number in range(_SILENT):
            await world.until_ready(f"mute-{number}", within_seconds=90)
        proxy.fall_silent()
        for number in range(_SILENT):
            await world.change(TOPICS, f"mute-{number}", {"segments": {"desired": 2}})
        beside = [await _create_to_ready_seconds(world, f"loud-{number}") for number in range(3)]
        print(f"create to Ready: beside {_SILENT} topics that hang at most {max(beside):.2f} s")
        assert max(beside) < _UNDISTURBED_SECONDS
        proxy.come_up()
        for number in (0, _SILENT - 1):
            await world.until(
                TOPICS,
                f"mute-{number}",
                lambda body: body["status"]["segments"]["active"] == 2 and condition(body, "Ready")["status"] == "True",
                what="goes on by itself",
                within_seconds=120,
            )
