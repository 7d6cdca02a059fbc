"""Leaders struck in the middle of operations on topics in use; `make show-failover` does it often."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.failover import Blow, Failover
from tests.support.guarantee_plan import fresh_seed
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import replicas

_FLAGS = ("--drift-seconds=20", "--prune-seconds=20", "--settle-window-seconds=5", "--force-delete-after-seconds=20")
_TRAFFIC = {"producers": 1, "consumers": 1, "per_second": 50.0}


@pytest.mark.timeout(240)
async def test_R6_R7_R8_leaders_die_and_sleep_in_the_middle_of_operations_under_traffic(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> None:
    seed = fresh_seed()
    print(f"GUARANTEE_SEED={seed}")
    async with replicas(3, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, _FLAGS) as found:
        outcome = await Failover(found, pulsar, seed).run([Blow.KILL, Blow.STOP, Blow.KILL], _TRAFFIC)
    outcome.require()
    assert sum(map(len, outcome.struck.values())) == 9
