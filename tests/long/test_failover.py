"""Leaders that die or sleep in the middle of operations under traffic, on two profiles: `make show-failover`."""

from __future__ import annotations

import asyncio
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from dev.access import KubernetesAccess
from dev.broker_settings import Profile
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.evidence import Evidence, table
from tests.support.failover import KINDS, Blow, Failover, Outcome, Struck, steps_of
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import LEASE_SECONDS, replicas

# Of four rounds three ask for a split, a merge and a rebucket each, and one for three prunes: more than 60 and 30 of
# each kind.
_KILLS = int(os.environ.get("FAILOVER_KILLS", "90"))
_STOPS = int(os.environ.get("FAILOVER_STOPS", "45"))
_SEED = int(os.environ.get("FAILOVER_SEED", "5"))
_PART = "What was seen"
_REPLICAS = 3
# Most segments go when a Prune asks for it, so that leaders are struck over that, too.
_FLAGS = ("--drift-seconds=20", "--prune-seconds=60", "--settle-window-seconds=5", "--force-delete-after-seconds=20")
_TRAFFIC = {"producers": 2, "consumers": 1, "per_second": 50.0}


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("profile", [Profile.ORDINARY, Profile.ROLLOVER])
async def test_leaders_die_and_sleep_in_the_middle_of_operations(
    local_cluster: Callable[[Shape], LocalCluster],
    kube: KubeClient,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
    profile: Profile,
) -> None:
    page = Evidence(
        f"failover-{profile.value}.md",
        f"Leaders struck in the middle of operations: profile {profile.value}",
        "make show-failover",
        (_PART,),
    )
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, profile=profile))
    brokers = cluster.pulsar.access
    blows = [Blow.KILL] * _KILLS + [Blow.STOP] * _STOPS
    Random(_SEED).shuffle(blows)
    async with (
        PulsarView(brokers.admin_url, brokers.superuser_token) as view,
        replicas(_REPLICAS, kube, view, brokers, kube_environment.kubeconfig, tmp_path, _FLAGS) as found,
    ):
        outcome = await Failover(found, brokers, _SEED).run(blows, _TRAFFIC)
    outcome.require()
    page.show(_PART, *_told(outcome))
    page.write()


def _told(outcome: Outcome) -> list[str]:
    lines = [
        f"{_REPLICAS} replicas, lease {LEASE_SECONDS:.0f} s, seed {_SEED}; {_KILLS} times the leader was killed, "
        f"{_STOPS} times stopped for {0.5 * LEASE_SECONDS:.1f} to {2.5 * LEASE_SECONDS:.1f} s and woken, at a random "
        "moment of the operations that three topics in use had been asked for together.",
        f"- {outcome.sent} messages stored and received, in {outcome.segments} segments: lost 0, duplicated 0, "
        "disorder 0, no send failed",
        f"- the longest that a message took to be stored: {outcome.longest_ms:.0f} ms",
        "- orphans 0: the brokers had exactly the topics of the records; every operation has succeeded",
    ]
    for blow, struck in outcome.struck.items():
        lines += ["", f"### {blow}", "", *table(("operation", "asked for", "at", "median", "max"), _rows(struck))]
    lines += ["", "Times are from the blow to the operation's end, of those that had not been committed before."]
    return lines


def _rows(struck: list[Struck]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for kind in KINDS:
        seconds = [one.seconds for one in struck if one.kind == kind and one.seconds is not None]
        steps = ", ".join(f"{step} {count}" for step, count in sorted(steps_of(struck, kind).items()))
        median, longest = (f"{statistics.median(seconds):.1f} s", f"{max(seconds):.1f} s") if seconds else ("-", "-")
        rows.append((kind, sum(one.kind == kind for one in struck), steps, median, longest))
    return rows
