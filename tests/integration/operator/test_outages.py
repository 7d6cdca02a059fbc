"""A broker or the API server goes away in the middle of a split, and comes back (R7, R8, hazards C30, C53, C63)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from dev.instance import LocalCluster, Shape
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.outages import (
    AT_THE_SEAL,
    api_server_goes_in_the_middle_of_a_split,
    brokers_go_in_the_middle_of_a_split,
    change_behind_its_back,
)
from tests.support.running_operator import FAST_FLAGS
from tests.support.world import condition, phase

_OUTAGE_SECONDS = 8.0
# Held until 6 s after the last renewal: an outage ends it, and a busy machine's own pauses do not.
_FLAGS = (*FAST_FLAGS, "--lease-seconds=9")
_END_SECONDS = 15.0


async def test_a_split_survives_a_stop_of_the_broker(
    local_cluster: Callable[[Shape], LocalCluster], proxied: MakeProxied
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=1))
    bench = await proxied(cluster.pulsar.access, flags=_FLAGS)
    await brokers_go_in_the_middle_of_a_split(
        bench,
        AT_THE_SEAL,
        lambda: asyncio.to_thread(cluster.pulsar.stop_broker, 0),
        lambda: asyncio.to_thread(cluster.pulsar.start_broker, 0),
        _OUTAGE_SECONDS,
    )


@pytest.mark.parametrize("way", ["unreachable", "answering 503"])
async def test_a_split_survives_an_api_server_that_is(proxied: MakeProxied, way: str) -> None:
    bench = await proxied(flags=_FLAGS)

    async def stop() -> None:
        if way == "unreachable":
            await bench.kube.refuse()
        else:
            bench.kube.cut_connections()
            bench.kube.go_down()

    async def start() -> None:
        await change_behind_its_back(bench)
        await asyncio.sleep(_OUTAGE_SECONDS)
        if way == "unreachable":
            await bench.kube.listen()
        else:
            bench.kube.come_up()

    await api_server_goes_in_the_middle_of_a_split(bench, stop, start)


async def test_a_watch_that_has_ended_for_good_ends_the_process(proxied: MakeProxied) -> None:
    """Rather started again by Kubernetes than deaf (hazard C30)."""
    bench = await proxied()
    await bench.start()
    await bench.kube.until_quiet()
    status = {"kind": "Status", "status": "Failure", "code": 500, "message": "the watch is broken"}
    await bench.kube.say_on_streams(json.dumps({"type": "ERROR", "object": status}))
    assert await asyncio.to_thread(bench.operator.wait, _END_SECONDS) != 0
    assert "kopf stopped watching" in bench.operator.log_text()


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
