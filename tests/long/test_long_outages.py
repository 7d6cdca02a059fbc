"""A minute without a broker, and an API server that goes and comes back, during splits: `make show-broker-outage`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.operator_process import WATCHED
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.crds import install_crds
from tests.support.evidence import Evidence
from tests.support.metrics import until_metric
from tests.support.outages import (
    AT_THE_SEAL,
    BEFORE_THE_SEAL,
    Moment,
    OutageReport,
    api_server_goes_in_the_middle_of_a_split,
    brokers_go_in_the_middle_of_a_split,
    change_behind_its_back,
)

_BROKER_SECONDS = 60.0
_API_SECONDS = 60.0
_WATCH_RECOVERY_SECONDS = 120.0
_NO_RELIST = ("--relist-seconds=3600", "--drift-seconds=3600", "--prune-seconds=3600")
_OTHER_UP = 'scalable_topics_connection_up{name="other"'
_API_REFUSED, _API_RESTARTED, _SILENT = "API server unreachable", "API server restarted", "Watches fall silent"
_BOTH = "Broker and API server gone together"


def _broker_part(moment: Moment) -> str:
    return f"Broker stopped {moment.name}"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence(
        "outages.md",
        "Outages in the middle of a split",
        "make show-broker-outage",
        (_broker_part(BEFORE_THE_SEAL), _broker_part(AT_THE_SEAL), _API_REFUSED, _API_RESTARTED, _BOTH, _SILENT),
    )
    yield page
    page.write()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("moment", [BEFORE_THE_SEAL, AT_THE_SEAL], ids=lambda moment: moment.step)
async def test_a_split_survives_a_minute_without_the_broker(
    local_cluster: Callable[[Shape], LocalCluster], proxied: MakeProxied, evidence: Evidence, moment: Moment
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=1))
    bench = await proxied(cluster.pulsar.access)
    report = await brokers_go_in_the_middle_of_a_split(
        bench,
        moment,
        lambda: asyncio.to_thread(cluster.pulsar.stop_broker, 0),
        lambda: asyncio.to_thread(cluster.pulsar.start_broker, 0),
        _BROKER_SECONDS,
    )
    assert report.outage_seconds >= _BROKER_SECONDS
    evidence.show(
        _broker_part(moment),
        f"- the one broker was down for {report.outage_seconds:.0f} s, in journal step {moment.step}",
        f"- connection `Unreachable` and topic not Ready, with the reason: after {report.noticed_seconds:.1f} s",
        f"- the split had succeeded {report.done_seconds:.1f} s after the broker served again; the same process, no "
        "help by hand, brokers and record agree, declared and found cursors on every segment",
    )


@pytest.mark.timeout(600)
async def test_a_split_survives_an_api_server_that_cannot_be_reached(proxied: MakeProxied, evidence: Evidence) -> None:
    bench = await proxied(flags=_NO_RELIST)

    async def come_back() -> None:
        await change_behind_its_back(bench)
        await asyncio.sleep(_API_SECONDS)
        await bench.kube.listen()

    report = await api_server_goes_in_the_middle_of_a_split(bench, bench.kube.refuse, come_back)
    evidence.show(_API_REFUSED, *_api_lines(report, "connections were cut and refused"))


@pytest.mark.timeout(600)
async def test_a_split_survives_a_restart_of_the_api_server(
    local_cluster: Callable[[Shape], LocalCluster],
    monkeypatch: pytest.MonkeyPatch,
    proxied: MakeProxied,
    evidence: Evidence,
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape())
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubernetes.kubeconfig))
    await asyncio.to_thread(install_crds)
    bench = await proxied(cluster.pulsar.access, flags=_NO_RELIST)

    async def come_back() -> None:
        await asyncio.sleep(_API_SECONDS)
        await asyncio.to_thread(cluster.kubernetes.start)
        await change_behind_its_back(bench)

    report = await api_server_goes_in_the_middle_of_a_split(
        bench, lambda: asyncio.to_thread(cluster.kubernetes.stop), come_back
    )
    evidence.show(_API_RESTARTED, *_api_lines(report, "etcd and the API server were stopped and started again"))


@pytest.mark.timeout(600)
async def test_a_split_survives_a_minute_without_broker_and_api_server(
    local_cluster: Callable[[Shape], LocalCluster], proxied: MakeProxied, evidence: Evidence
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=1))
    bench = await proxied(cluster.pulsar.access, flags=_NO_RELIST)

    async def stop() -> None:
        await bench.kube.refuse()
        await asyncio.to_thread(cluster.pulsar.stop_broker, 0)

    async def come_back() -> None:
        await change_behind_its_back(bench)
        await asyncio.sleep(_BROKER_SECONDS)
        await bench.kube.listen()
        await asyncio.to_thread(cluster.pulsar.start_broker, 0)

    report = await api_server_goes_in_the_middle_of_a_split(bench, stop, come_back)
    evidence.show(_BOTH, *_api_lines(report, "the broker was stopped and the API server could not be reached"))


@pytest.mark.timeout(600)
async def test_c30_a_silent_watch_is_noticed_without_a_relist(proxied: MakeProxied, evidence: Evidence) -> None:
    bench = await proxied(flags=_NO_RELIST)
    world = bench.world
    await world.apply(manifests.connection("other", world.admin_url))
    await bench.start()
    await until_metric(bench.operator, _OTHER_UP, lambda up: up == 1)
    # The lists that follow a start must be over: they would find what is done from here on.
    await bench.kube.until_quiet()
    await bench.kube.silence_streams(len(WATCHED))
    silent_at = time.monotonic()
    await world.delete(CONNECTIONS, "other")
    await world.apply(manifests.topic("unheard", f"{world.pulsar_namespace}/unheard", subscriptions=["s"]))
    await world.until_ready("unheard", within_seconds=_WATCH_RECOVERY_SECONDS)
    made_seconds = time.monotonic() - silent_at
    left_seconds = _WATCH_RECOVERY_SECONDS - made_seconds
    await until_metric(bench.operator, _OTHER_UP, lambda up: up is None, within_seconds=left_seconds)
    deleted_seconds = time.monotonic() - silent_at
    evidence.show(
        _SILENT,
        "- all three watches stayed open and told nothing any more, with relists an hour apart",
        f"- a topic made then was Ready after {made_seconds:.0f} s, a delete was noticed after "
        f"{deleted_seconds:.0f} s; allowed are {_WATCH_RECOVERY_SECONDS:.0f} s",
    )


def _api_lines(report: OutageReport, how: str) -> tuple[str, ...]:
    return (
        f"- {how} for {report.outage_seconds:.0f} s, right after the parent was sealed and before that was recorded",
        f"- the split had succeeded {report.done_seconds:.1f} s after the return, done once; the same process",
        "- a topic made meanwhile was Ready, and a delete missed meanwhile noticed, after "
        f"{report.noticed_seconds:.1f} s",
        "- watches told of a change made after that",
    )
