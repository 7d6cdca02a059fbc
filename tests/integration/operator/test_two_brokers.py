"""One topic on two brokers: calls to the wrong one are redirected and followed with the token (hazard C63, R34)."""

from __future__ import annotations

import pytest

from dev.access import PulsarAccess
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.waiting import eventually
from tests.support.world import World, phase

pytestmark = pytest.mark.two_brokers
_REDIRECT = 307


async def test_c63_a_topic_spread_over_both_brokers_is_made_split_merged_and_pruned(
    proxied: MakeProxied, pulsar: PulsarAccess
) -> None:
    bench = await proxied(follow_redirects=False)
    world = bench.world
    await bench.start()
    await world.apply(
        manifests.topic("wide", f"{world.pulsar_namespace}/wide", initial=8, subscriptions=["s"], bucketBudget=8)
    )
    await world.until_ready("wide", within_seconds=60)
    await _spread(world, await world.segment_topics("wide"), pulsar.broker_admin_urls)
    split = await world.operate("wide", "Split", segment=0)
    merged = await world.operate("wide", "Merge", segments=[3, 4, 5, 6])
    assert (phase(split), phase(merged)) == ("Succeeded", "Succeeded")
    await world.until_ready("wide", within_seconds=60)
    await world.assert_brokers_agree("wide", "wide", {"s"})
    redirected = [call for call in bench.admin.seen if call.status == _REDIRECT]
    assert {call.method for call in redirected} >= {"GET", "PUT", "POST"}, "every kind of call should have met it"


async def _spread(world: World, segments: list[str], broker_urls: tuple[str, ...]) -> None:
    """Have each broker serve some of the segments, whatever their load balancer thinks."""
    bundles = sorted({await world.pulsar.bundle(segment) for segment in segments})
    assert len(bundles) > 1
    for number, bundle in enumerate(bundles):
        broker = broker_urls[number % len(broker_urls)].removeprefix("http://")
        await world.pulsar.move_bundle(world.pulsar_namespace, bundle, broker)

    async def owners() -> set[str]:
        return {(await world.pulsar.stats(segment))["ownerBroker"] for segment in segments}

    await eventually(owners, lambda found: len(found) == 2, what="the brokers share the segments")
