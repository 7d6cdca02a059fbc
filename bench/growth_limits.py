"""Growth on paper: what fleets of three sizes are set to, and what gives out first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.growth import Costs, Fleet
from bench.growth_formulas import (
    SPARK_BUSY,
    Value,
    api_cores,
    etcd_bytes,
    failover_seconds,
    list_seconds,
    replica_bytes,
    replica_cores,
    sample_cores,
    start_seconds,
)

PLANS: Mapping[str, Fleet] = {
    "10,000 topics": Fleet(10_000, brokers=10, replicas=3, shards=12, load_seconds=20, sessions=20_000),
    "100,000 topics": Fleet(
        100_000,
        brokers=100,
        installations=4,
        replicas=3,
        shards=24,
        relist_seconds=900,
        load_seconds=30,
        sessions=200_000,
    ),
    "1,000,000 topics": Fleet(
        1_000_000,
        brokers=1_000,
        installations=40,
        kubernetes=4,
        replicas=3,
        shards=24,
        relist_seconds=1_800,
        load_seconds=60,
        sessions=2_000_000,
    ),
}
"""What is to be set at each size; `docs/scale.md` says why."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What gives out as a fleet grows.

    Args:
        what: gives out.
        value: what is compared, for a fleet.
        most: what it may be.
        remedy: what to do about it.
    """

    what: str
    value: Value
    most: Value
    remedy: str

    def topics(self, costs: Costs, fleet: Fleet) -> int:
        """How many topics a fleet that is otherwise the same may have at most, to 1 %."""
        low, high = 1, 100_000_000
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            grown = replace(fleet, topics=middle)
            if self.value(costs, grown) <= self.most(costs, grown):
                low = middle
            else:
                high = middle
        return low


LIMITS: Sequence[Limit] = (
    Limit(
        "a replica's processor at rest, 60 % of a core",
        replica_cores,
        lambda *_: 0.6,
        "a lower `--drift-per-second`, replicas with as many times the shards, then more installations",
    ),
    Limit(
        "a replica's memory, 4 GB",
        replica_bytes,
        lambda *_: 4e9,
        "more installations: every replica keeps all topics of its installation; more replicas do not help",
    ),
    Limit(
        "a load sample sent to each replica, a fifth of a core",
        sample_cores,
        lambda *_: 0.2,
        "`spec.load.intervalSeconds`, a Pulsar cluster and an installation for each part",
    ),
    Limit(
        "a complete list outlasts etcd's compaction, half of 300 s",
        list_seconds,
        lambda c, _: c.compaction_seconds / 2,
        "more installations",
    ),
    Limit(
        "after a start all topics are looked after within 5 min",
        start_seconds,
        lambda *_: 300.0,
        "more replicas and shards; it only takes longer, and clients do not wait for it",
    ),
    Limit(
        "after the loss of a replica within 2 min",
        failover_seconds,
        lambda *_: 120.0,
        "more replicas, and shards that the others can share evenly",
    ),
    Limit(
        "etcd, three quarters of its quota",
        etcd_bytes,
        lambda c, _: c.etcd_quota_bytes * 0.75,
        "more Kubernetes clusters, or a larger quota",
    ),
    Limit(
        "an API server for lists and writes, 2 cores",
        api_cores,
        lambda *_: 2.0,
        "`--relist-seconds`, fewer replicas, more Kubernetes clusters",
    ),
    Limit(
        "a batch of the pipeline on 8 cores within its interval",
        lambda c, f: f.cluster_segments * c.spark_seconds / 8,
        lambda _, f: f.load_seconds * SPARK_BUSY,
        "executors, then `spec.load.intervalSeconds`",
    ),
)


def first_limits(costs: Costs, fleet: Fleet) -> list[tuple[Limit, int]]:
    """Limits in the order in which a fleet meets them as it grows, each with the most topics before it."""
    return sorted(((limit, limit.topics(costs, fleet)) for limit in LIMITS), key=lambda found: found[1])


def sealed_that_fit(costs: Costs) -> int:
    """Sealed segments that may wait in one object before etcd refuses it."""
    return int((costs.object_limit_bytes - costs.stored_bytes) / costs.sealed_bytes)
