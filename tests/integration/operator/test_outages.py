"""A broker or the API server goes away in the middle of a split, and comes back (R7, R8, hazards C30, C53, C63)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dev.instance import LocalCluster, Shape
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.outages import (
    AT_THE_SEAL,
    api_server_goes_in_the_middle_of_a_split,
    brokers_go_in_the_middle_of_a_split,
    change_behind_its_back,
)
from tests.support.world import condition, phase

_OUTAGE_SECONDS = 8.0


async def test_a_split_survives_a_stop_of_the_broker(
    local_cluster: Callable[[Shape], LocalCluster], proxied: MakeProxied
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=1))
    bench = await proxied(cluster.pulsar.access)
    await brokers_go_in_the_middle_of_a_split(
        bench,
        AT_THE_SEAL,
        lambda: asyncio.to_thread(cluster.pulsar.stop_broker, 0),
        lambda: asyncio.to_thread(cluster.pulsar.start_broker, 0),
        _OUTAGE_SECONDS,
    )


async def test_a_split_survives_an_api_server_that_cannot_be_reached(proxied: MakeProxied) -> None:
    bench = await proxied()

    async def come_back() -> None:
        await change_behind_its_back(bench)
        await asyncio.sleep(_OUTAGE_SECONDS)
        await bench.kube.listen()

    await api_server_goes_in_the_middle_of_a_split(bench, bench.kube.refuse, come_back)


async def test_a_redirect_to_a_stranger_gets_no_token(proxied: MakeProxied) -> None:
    """Hazard C63, the other way round: credentials go to listed brokers, and to nobody else."""
    bench = await proxied()
    stranger = await proxied()
    world = bench.world
    await bench.start()
    await world.apply(manifests.topic("lured", f"{world.pulsar_namespace}/lured"))
    await world.until_ready("lured")
    before = len(stranger.admin.seen)
    bench.admin.redirect("/lured-segment-", stranger.admin.url)
    refusal = "neither a broker the cluster lists nor in trustedBrokers"
    failed = await world.operate("lured", "Split", segment=0)
    assert phase(failed) == "Failed"
    assert refusal in failed["status"]["message"]
    topic = await world.until_reason("lured", "BrokerRefused")
    assert refusal in condition(topic, "Ready")["message"]
    assert stranger.admin.seen[before:] == []
    bench.admin.come_up()
    assert phase(await world.operate("lured", "Split", segment=0)) == "Succeeded"
    await world.until_ready("lured")
    await world.assert_brokers_agree("lured", "lured", set())
