"""What growth on paper begins with: what one topic and one segment cost, and how large a fleet is. Pure.

Each cost says where it was measured and how far from it the truth may be; `growth_formulas` says what it comes to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from bench.report import from_json

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
_RENEWALS_A_LEASE = 5.0
# A replica tells that it lives at the first of its turns after half a lease.
TURNS_BETWEEN_PRESENCES = 3.0
_COUNTED = "counted with the operator's own code on model brokers, `tests/simulation/growth/counting.py`"
_PROCESS = "measured by `make growth` with the operator's own code, see [growth](evidence/growth.md)"
_CHOICE = "a single run when kopf was chosen, on 2 cores with etcd and kube-apiserver 1.36"
_FLEET = "[pipeline-fleet](evidence/pipeline-fleet.md)"
_ASSUMED = "assumed"


def _cost(value: float, unit: str, where: str, spread: str, report: tuple[str, str, str, float] | None = None) -> Any:
    """A field of `Costs`.

    Args:
        value: today's best.
        unit: of it.
        where: it was measured.
        spread: how far from it the truth may be.
        report: section, group and measurement of docs/benchmarks.json that replaces it once it is there, and what its
            median is multiplied by to come to this unit.
    """
    return field(default=value, metadata={"unit": unit, "where": where, "spread": spread, "report": report})


@dataclass(frozen=True, slots=True)
class Costs:
    """What one of each costs; of topics of 10 segments and 2 subscriptions. Each field tells where it comes from."""

    # What is asked of brokers and of the API server.
    create_calls: float = _cost(110.0, "admin calls", _COUNTED, "exact; a policy, grant or schema adds to it")
    take_over_calls: float = _cost(
        5.0,
        "admin calls",
        "counted at a restart over 1,000 topics: claim, layout topic and a part of a listing",
        "exact; the first comparison has its turn later",
    )
    drift_calls: float = _cost(
        35.0, "admin calls", _COUNTED, "exact; 3 a segment and 5 a topic, of which lists may be shared"
    )
    split_calls: float = _cost(34.0, "admin calls", _COUNTED, "exact; waits for producers add to it")
    create_writes: float = _cost(4.0, "writes of the object", _COUNTED, "exact")
    split_writes: float = _cost(4.0, "writes of the object", _COUNTED, "exact")
    operation_writes: float = _cost(3.0, "other writes a split", _COUNTED, "SegmentOperation and Event; 0 to 4")
    # The operator's processor.
    call_seconds: float = _cost(
        0.98e-3,
        "s of a core",
        "[steady-state](evidence/steady-state.md): 12.1 % of a core for 37,081 reads in 300 s",
        "±30 %",
    )
    write_seconds: float = _cost(1.0e-3, "s of a core", _CHOICE, "±50 %")
    decision_seconds: float = _cost(
        0.4e-3,
        "s of a core",
        "taken from [writes-at-rest](evidence/writes-at-rest.md): what 1,000 topics cost beyond calls and lists",
        "half to double",
    )
    list_seconds: float = _cost(0.10e-3, "s of a core", _PROCESS, "±30 %")
    event_seconds: float = _cost(0.7e-3, "s of a core", _CHOICE + ": kopf over a bare watch", "±50 %")
    decode_seconds: float = _cost(8e-6, "s of a core a segment", _PROCESS, "±30 %")
    encode_seconds: float = _cost(5e-6, "s of a core a segment", _PROCESS, "±30 %")
    # Its memory.
    base_bytes: float = _cost(64e6, "bytes", "[writes-at-rest](evidence/writes-at-rest.md)", "±10 %")
    known_bytes: float = _cost(
        27e3,
        "bytes",
        "[writes-at-rest](evidence/writes-at-rest.md): 36 kB a topic of one "
        "segment in each of three replicas, less its object",
        "±30 %, and less since managed fields, which were in it, are not kept",
    )
    cached_bytes: float = _cost(11.5e3, "bytes", _PROCESS, "±20 %; 23 kB with a full history")
    sample_bytes: float = _cost(360.0, "bytes a segment", _PROCESS, "±20 %")
    sample_json_bytes: float = _cost(151.0, "bytes a segment", _PROCESS, "names of topics make it longer")
    # The API server and etcd.
    object_bytes: float = _cost(2918.0, "bytes of JSON", _COUNTED, "exact, without what follows")
    history_bytes: float = _cost(7225.0, "bytes of JSON", _COUNTED + ", of a topic that was changed 24 times", "exact")
    sealed_bytes: float = _cost(176.0, "bytes of JSON", _COUNTED, "exact")
    managed_bytes: float = _cost(1500.0, "bytes of JSON", _ASSUMED + ": `managedFields` of two managers", "±50 %")
    api_write_seconds: float = _cost(9e-3, "s of a core", _CHOICE + ": 7 to 11 ms a patch of a status", "±30 %")
    api_read_seconds: float = _cost(1e-3, "s of a core", _ASSUMED, "half to double")
    api_list_seconds: float = _cost(0.06e-3, "s of a core an object", _ASSUMED, "half to double")
    api_cores: float = _cost(8.0, "cores", _ASSUMED, "as one buys them")
    etcd_quota_bytes: float = _cost(8e9, "bytes", "etcd's recommended most", "exact")
    object_limit_bytes: float = _cost(1.5e6, "bytes", "etcd's limit of a request", "exact")
    compaction_seconds: float = _cost(
        300.0, "s", "kube-apiserver's default: a list that takes longer is refused with 410", "exact"
    )
    # Brokers.
    broker_call_seconds: float = _cost(
        1.0e-3,
        "s of a core",
        "taken from `make bench`: some 12 topics of 4 segments made a second on 2 cores",
        "half to double",
    )
    broker_latency_seconds: float = _cost(4e-3, "s", _ASSUMED, "2 to 20 ms")
    connection_calls: float = _cost(
        16.0, "calls at a time", "`spec.limits.maxConcurrentRequests`, its default", "exact"
    )
    brokers: float = _cost(10.0, "cores that answer admin calls", _ASSUMED + "; for the simulation", "as one has them")
    statistics_bytes: float = _cost(1380.0, "bytes a segment", _FLEET, "±20 %; each client adds some 300")
    # The pipeline.
    spark_seconds: float = _cost(216e-6, "s of a core a segment and batch", _FLEET, "±15 %")
    spark_bytes: float = _cost(37e3, "bytes a segment", _FLEET, "at most")
    spark_state_bytes: float = _cost(44.0, "bytes a segment", _FLEET, "±10 %")
    record_bytes: float = _cost(291.0, "bytes", _FLEET, "±10 %")
    sample_history_bytes: float = _cost(50.0, "bytes a segment and batch", _PROCESS, "less where rates stand still")
    # The gateway.
    session_bytes: float = _cost(
        53.0 * 1024,
        "bytes a session",
        "[watching](evidence/watching.md), with TLS",
        "±5 %",
        ("watching", "Resident memory of a session", "1,000 sessions, TLS", 1024.0),
    )
    session_cores: float = _cost(
        9.6e-6,
        "cores a session",
        "[watching](evidence/watching.md), idle",
        "±10 %",
        ("watching", "Processor time while idle", "10,000 sessions", 1e-4),
    )
    sessions_a_replica: float = _cost(20_000.0, "sessions", "`--gateway-sessions`, its default", "exact")

    @property
    def stored_bytes(self) -> float:
        """Of a topic's object in etcd, with a full history."""
        return self.history_bytes + self.managed_bytes

    def with_report(self, path: Path) -> Costs:
        """These costs, with those that a report of the benchmarks has instead of constants.

        Args:
            path: of docs/benchmarks.json; these very costs if there is no such file.

        Raises ValueError for the report of another version of this program.
        """
        if not path.exists():
            return self
        results = from_json(path.read_text()).results
        found = {}
        for one in fields(self):
            if one.metadata["report"] is not None:
                section, title, name, factor = one.metadata["report"]
                group = results[section].measured.group(title) if section in results else None
                measurement = group.named(name) if group is not None else None
                if measurement is not None and measurement.median:
                    found[one.name] = measurement.median * factor
        return replace(self, **found)


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet, and how it is looked after.

    Args:
        topics: scalable topics in all.
        segments: active ones of each.
        brokers: in all Pulsar clusters together.
        installations: of the operator; each has its own Kubernetes namespaces (`--namespaces`), and its own connection
            to a Pulsar cluster of its own.
        kubernetes: API servers, each with an etcd of its own, that share the installations.
        replicas: of each installation.
        shards: of each installation.
        lease_seconds: `--lease-seconds`.
        relist_seconds: `--relist-seconds`.
        drift_seconds: `--drift-seconds`.
        drift_per_second: `--drift-per-second`.
        decide_seconds: `--auto-scale-interval-seconds`.
        load_seconds: `spec.load.intervalSeconds`.
        splits_a_day: splits and merges of each topic.
        changes_a_day: other changes of each topic's spec.
        sessions: watch sessions of clients, in all.
        records_share: part of the segments that have news in a batch of the pipeline.
    """

    topics: int
    segments: int = 10
    brokers: int = 10
    installations: int = 1
    kubernetes: int = 1
    replicas: int = 3
    shards: int = 4
    lease_seconds: float = 15.0
    relist_seconds: float = 300.0
    drift_seconds: float = 300.0
    drift_per_second: float = 5.0
    decide_seconds: float = 60.0
    load_seconds: float = 10.0
    splits_a_day: float = 1.0
    changes_a_day: float = 0.1
    sessions: int = 0
    records_share: float = 0.01

    @property
    def known(self) -> float:
        """Topics that each replica knows: all of its installation, since each of them watches all."""
        return self.topics / self.installations

    @property
    def led(self) -> float:
        """Topics that the replica with most shards leads."""
        return self.known * self.most_shards / self.shards

    @property
    def compared_a_second(self) -> float:
        """Topics that the replica with most shards compares with their brokers in a second."""
        return min(self.led / self.drift_seconds, self.drift_per_second)

    @property
    def most_shards(self) -> int:
        """Shards of the replica that has most."""
        return math.ceil(self.shards / self.replicas)

    @property
    def all_segments(self) -> float:
        """Active segments of all topics."""
        return float(self.topics * self.segments)

    @property
    def cluster_segments(self) -> float:
        """Active segments in each Pulsar cluster."""
        return self.known * self.segments

    @property
    def renew_seconds(self) -> float:
        """Between two renewals."""
        return self.lease_seconds / _RENEWALS_A_LEASE
