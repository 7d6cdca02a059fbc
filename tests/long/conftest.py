"""Long runs use the same clusters, operators and worlds as the integration tests."""

from __future__ import annotations

from tests.integration.conftest import kubernetes, local_cluster, native_pulsar, own_brokers, pulsar, view
from tests.integration.operator.conftest import (
    bench,
    kube,
    kube_environment,
    own_operator,
    proxied,
    pulsar_client,
    shared_operator,
    world,
)

__all__ = [
    "bench",
    "kube",
    "kube_environment",
    "kubernetes",
    "local_cluster",
    "native_pulsar",
    "own_brokers",
    "own_operator",
    "proxied",
    "pulsar",
    "pulsar_client",
    "shared_operator",
    "view",
    "world",
]
