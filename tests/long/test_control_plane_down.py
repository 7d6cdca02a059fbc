"""Five minutes without the API server and without any operator: `make show-control-plane-down`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator

import pytest

from dev.instance import LocalCluster, Shape
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.application import Application
from tests.support.crds import install_crds
from tests.support.evidence import Evidence
from tests.support.world import phase

_DOWN_SECONDS = float(os.environ.get("DOWN_SECONDS", "300"))
_PART = "Clients while nothing controls their topic"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence(
        "control-plane-down.md", "Without operator and API server", "make show-control-plane-down", (_PART,)
    )
    yield page
    page.write()


@pytest.mark.timeout(900)
async def test_clients_go_on_without_operator_and_api_server(
    local_cluster: Callable[[Shape], LocalCluster],
    monkeypatch: pytest.MonkeyPatch,
    proxied: MakeProxied,
    evidence: Evidence,
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape())
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubernetes.kubeconfig))
    await asyncio.to_thread(install_crds)
    bench = await proxied(cluster.pulsar.access)
    world = bench.world
    await bench.start()
    await world.apply(manifests.topic("alone", f"{world.pulsar_namespace}/alone", initial=4, subscriptions=["work"]))
    await world.until_ready("alone")
    topic = f"{world.pulsar_namespace}/alone"
    async with Application(cluster.pulsar.access, topic, "work", producers=4, consumers=2) as application:
        await application.until_sent(1000)
        assert phase(await world.operate("alone", "Split", segment=0)) == "Succeeded"
        bench.operator.kill()
        await asyncio.to_thread(cluster.kubernetes.stop)
        down_at, sent_before = time.monotonic(), len(application.journal.sends)
        received_before = application.journal.received.total()
        await asyncio.sleep(_DOWN_SECONDS / 2)
        # What a load balancer may do at any time: clients look up and attach again, without anybody's help.
        await world.pulsar.unload_namespace(world.pulsar_namespace)
        await asyncio.sleep(_DOWN_SECONDS / 2)
        down_seconds = time.monotonic() - down_at
        sent = len(application.journal.sends) - sent_before
        received = application.journal.received.total() - received_before
        longest_ms = application.journal.longest_ms(down_at, time.monotonic())
        late = Application(cluster.pulsar.access, topic, "late", producers=1, consumers=1, from_earliest=True)
        async with late:
            # One that starts now finds the layout on its topic.
            await late.until_sent(100)
        await asyncio.to_thread(cluster.kubernetes.start)
        await bench.start()
        assert phase(await world.operate("alone", "Split", segment=1)) == "Succeeded"
        await application.until_sent(1000)
    assert application.journal.failed == []
    assert late.journal.failed == []
    assert application.journal.not_received == late.journal.not_received == []
    assert sent > 0.8 * 400 * _DOWN_SECONDS
    assert received > 0.8 * sent
    evidence.show(
        _PART,
        f"The operator was killed and the API server and etcd stopped for {down_seconds:.0f} s, right after a split; "
        "the brokers' namespace was unloaded in the middle of it.",
        "",
        f"- {sent} messages were stored and {received} delivered meanwhile; no send and no receive failed",
        f"- the longest that a message took to be stored was {longest_ms:.0f} ms",
        "- a producer and a consumer that started meanwhile worked like the others",
        "- afterwards the next split succeeded, and the application followed it",
    )
