"""The operator's suite on two brokers, and a broker that dies during a split: `make show-two-brokers`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from dev.instance import LocalCluster, Shape
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.evidence import Evidence, table
from tests.support.suite_report import passed_cases
from tests.support.world import World, phase

pytestmark = pytest.mark.two_brokers
_SUITE = "tests/integration/operator"
_SUITE_PART, _DEATH_PART = "The operator's suite on two brokers", "A broker dies in the middle of a split"
_TOLD_OF = (
    "test_c63_a_topic_spread_over_both_brokers_is_made_split_merged_and_pruned",
    "test_a_redirect_to_a_stranger_gets_no_token",
)
_TAKEOVER_SECONDS = 240.0
_NAMES = 40


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("two-brokers.md", "Two brokers", "make show-two-brokers", (_SUITE_PART, _DEATH_PART))
    yield page
    page.write()


@pytest.mark.timeout(2400)
async def test_the_operator_suite_passes_on_two_brokers(
    kubernetes: KubernetesAccess, pulsar: PulsarAccess, tmp_path: Path, evidence: Evidence
) -> None:
    assert len(pulsar.broker_admin_urls) == 2
    report, output = tmp_path / "suite.xml", tmp_path / "suite.log"
    started = time.monotonic()
    with output.open("wb") as log:
        suite = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", _SUITE, "-n", "2", f"--junitxml={report}"),
            stdout=log,
            stderr=log,
            env=os.environ | kubernetes.environment() | pulsar.environment(),
            cwd=Path(__file__).parents[2],
        )
        code = await suite.wait()
    assert code == 0, output.read_text()[-6000:]
    seconds = time.monotonic() - started
    cases = passed_cases(report)
    # What the page says in words must have been among what ran.
    assert {case.attrib["name"] for case in cases} >= set(_TOLD_OF)
    passed = Counter(case.attrib["classname"].rsplit(".", 1)[1] for case in cases)
    evidence.show(
        _SUITE_PART,
        f"All {passed.total()} tests of `{_SUITE}` passed in {seconds / 60:.1f} min, none skipped. Among them: a topic",
        "spread over both brokers is created, split, merged and pruned through the admin address of one, whose",
        "redirects are followed with the token; a redirect to a server that is no listed broker is refused, and that",
        "server sees no call at all.",
        "",
        *table(("file", "passed"), sorted(passed.items())),
    )


@pytest.mark.timeout(900)
async def test_a_split_survives_the_death_of_the_broker_that_serves_its_parent(
    local_cluster: Callable[[Shape], LocalCluster], proxied: MakeProxied, evidence: Evidence
) -> None:
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=2))
    bench = await proxied(cluster.pulsar.access, follow_redirects=False)
    world = bench.world
    await bench.start()
    name = await _topic_on(world, cluster.pulsar.access.broker_admin_urls[1])
    await world.pulsar.create_subscription((await world.segment_topics(name))[0], "found")
    seal = bench.admin.hold("POST", f"/{name}-segment-[^/]+/terminate$")
    await world.apply(manifests.operation(f"{name}-split", name, "Split", segment=0))
    await asyncio.wait_for(seal.arrived.wait(), 60)
    process = bench.operator.pid
    await asyncio.to_thread(cluster.pulsar.kill_broker, 1)
    killed_at = time.monotonic()
    seal.released.set()
    body = await world.until_ended(f"{name}-split", within_seconds=_TAKEOVER_SECONDS)
    seconds = time.monotonic() - killed_at
    assert (phase(body), body["status"]["children"]) == ("Succeeded", [1, 2])
    await world.until_ready(name, within_seconds=120)
    await world.assert_brokers_agree(name, name, {"declared", "found"})
    assert bench.operator.pid == process
    redirected = sum(call.status == 307 for call in bench.admin.seen)
    evidence.show(
        _DEATH_PART,
        "The broker that served the parent was killed (SIGKILL) when the parent was to be sealed, and not started",
        f"again. The split had succeeded {seconds:.0f} s after that, on the broker that took over, with the declared",
        f"and the found cursor on every segment; the operator was told nothing. {redirected} calls were redirected.",
    )


async def _topic_on(world: World, admin_url: str) -> str:
    """Make a topic of one segment that a given broker serves; answers its name."""
    for number in range(_NAMES):
        name = f"there-{number}"
        await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", subscriptions=["declared"]))
        await world.until_ready(name, within_seconds=60)
        segment = (await world.segment_topics(name))[0]
        if (await world.pulsar.stats(segment))["ownerBroker"] == admin_url.removeprefix("http://"):
            return name
    raise AssertionError(f"none of {_NAMES} topics is served by {admin_url}")
