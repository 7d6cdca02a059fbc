"""Ten minutes of traffic through a layout change every 3 seconds, three times over: `make show-guarantee`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from dev.broker_settings import Profile
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.integration.operator.conftest import MakeOperator
from tests.support.evidence import Evidence, table
from tests.support.operator_guarantee import Disturbance, Outcome, Plan, percentile, run
from tests.support.own_bench import own_bench

_SECONDS = float(os.environ.get("GUARANTEE_SECONDS", "600"))
_SEED = int(os.environ.get("GUARANTEE_SEED", "468"))
_PART = "What was seen"
_ORDINARY, _ROLLOVER, _TWO_BROKERS = (
    "Ordinary settings",
    "Ledgers roll over",
    "Two brokers, unloads and a broker's death",
)
# A sealed segment stays long enough for every unknown send to be settled, and not so long that hundreds pile up.
_FLAGS = ("--drift-seconds=20", "--prune-seconds=5", "--settle-window-seconds=60", "--force-delete-after-seconds=30")


@pytest.mark.timeout(1800)
async def test_ordinary_settings(
    local_cluster: Callable[[Shape], LocalCluster], own_operator: MakeOperator, kube: KubeClient
) -> None:
    page = _page("guarantee-ordinary.md", _ORDINARY)
    async with own_bench(local_cluster, own_operator, kube, Shape(kubernetes=False), _FLAGS) as bench:
        deaths = Disturbance("the operator is killed and started again", 60, bench.operator_dies, 120)
        outcome = await run(bench.world, bench.brokers, "ordinary", Plan(_SEED, _SECONDS, disturbances=[deaths]))
    _keep(page, outcome)


@pytest.mark.timeout(1800)
async def test_rollover_profile(
    local_cluster: Callable[[Shape], LocalCluster], own_operator: MakeOperator, kube: KubeClient
) -> None:
    """The stress profile: ledgers roll over within seconds, which is where a terminate does not stick (R14)."""
    page = _page("guarantee-rollover.md", _ROLLOVER)
    shape = Shape(kubernetes=False, profile=Profile.ROLLOVER)
    async with own_bench(local_cluster, own_operator, kube, shape, _FLAGS) as bench:
        outcome = await run(bench.world, bench.brokers, "rollover", Plan(_SEED + 1, _SECONDS))
    _keep(page, outcome)


@pytest.mark.timeout(1800)
async def test_two_brokers_with_unloads_and_a_death(
    local_cluster: Callable[[Shape], LocalCluster], own_operator: MakeOperator, kube: KubeClient
) -> None:
    page = _page("guarantee-two-brokers.md", _TWO_BROKERS)
    shape = Shape(kubernetes=False, brokers=2)
    async with own_bench(local_cluster, own_operator, kube, shape, _FLAGS) as bench:
        disturbances = [
            Disturbance("the namespace is unloaded", 15, bench.unload, 30),
            Disturbance(
                "a broker is killed, and started 20 s later", _SECONDS * 0.4, partial(bench.broker_dies, 1, 20)
            ),
        ]
        plan = Plan(_SEED + 2, _SECONDS, disturbances=disturbances)
        outcome = await run(bench.world, bench.brokers, "two", plan)
    _keep(page, outcome)


def _page(file: str, title: str) -> Evidence:
    return Evidence(file, f"Traffic through layout changes: {title}", "make show-guarantee", (_PART,))


def _keep(page: Evidence, outcome: Outcome) -> None:
    """Write the page of a run that kept the guarantee."""
    outcome.require()
    page.show(_PART, *_told(outcome))
    page.write()


def _told(outcome: Outcome) -> list[str]:
    journal = outcome.journal
    rows = []
    for kind in ("Split", "Merge", "Rebucket"):
        stalls = outcome.stalls_ms(kind)
        done = sum(change.kind == kind for change in outcome.changes)
        rows.append(
            (
                kind,
                done,
                len(stalls),
                f"{percentile(stalls, 0.5):.0f} ms",
                f"{percentile(stalls, 0.99):.0f} ms",
                f"{percentile(stalls, 1):.0f} ms",
            )
        )
    redelivered = sum(times - 1 for times in journal.received.values())
    disturbed = Counter(outcome.disturbed)
    ordinary = sorted(took for _, took in journal.sends)
    return [
        f"8 producers (asynchronous, batching on) and 4 queue consumers, deduplication on; seed {_SEED}, "
        f"{_SECONDS:.0f} s.",
        *(f"- {count} times: {name}" for name, count in disturbed.items()),
        f"- {outcome.sent} messages stored and received, in {outcome.segments} segments: lost 0, duplicated 0, "
        f"disorder 0, no send failed; {redelivered} deliveries were repeated",
        f"- half of all messages took at most {1000 * percentile(ordinary, 0.5):.0f} ms to be stored, 99 % at most "
        f"{1000 * percentile(ordinary, 0.99):.0f} ms",
        "",
        "The longest that a message under way during a change took to be stored:",
        "",
        *table(("change", "asked for", "carried out", "p50", "p99", "max"), rows),
    ]
