"""What the doctor finds in what objects say."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scalable_topics_operator.cli import findings
from scalable_topics_operator.cli.findings import Finding, Level
from scalable_topics_operator.cluster.lease_record import (
    REPLICA,
    SHARD,
    LeaseRecord,
    replica_lease_name,
    shard_lease_name,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPIC: dict[str, Any] = {
    "metadata": {"name": "orders", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"topic": "topic://acme/shop/orders"},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""}]},
}


def _ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _lease(name: str, part: str, holder: str, seconds: float) -> dict[str, Any]:
    body = LeaseRecord(name, part, holder, 1, 15.0, "7", gateway="10.0.0.1:1").body("ops", acquired=True)
    body["spec"]["renewTime"] = _ago(seconds)
    return body


def _shards(*seconds: float) -> list[dict[str, Any]]:
    return [_lease(shard_lease_name(one), SHARD, "pod-a", age) for one, age in enumerate(seconds)]


def _replicas(*names: str) -> list[dict[str, Any]]:
    return [_lease(replica_lease_name(name), REPLICA, name, 1.0) for name in names]


def _condition(kind: str, status: str, reason: str = "Because", seconds: float = 0) -> dict[str, Any]:
    since = _ago(seconds)
    return {"type": kind, "status": status, "reason": reason, "message": "of this", "lastTransitionTime": since}


def _topic(*conditions: dict[str, Any], spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    of_ready = conditions or TOPIC["status"]["conditions"]
    return {**TOPIC, "spec": {**TOPIC["spec"], **(spec or {})}, "status": {"conditions": list(of_ready), **status}}


def _levels(found: Iterable[Finding]) -> list[Level]:
    return [one.level for one in found]


def test_every_line_that_is_not_well_says_what_to_do() -> None:
    bad = [
        *findings.judge_topics([_topic(_condition("Ready", "False"))], NOW),
        *findings.judge_connections([]),
        *findings.judge_leases([], 4, NOW, frozenset()),
        *findings.judge_leases([], None, NOW, frozenset()),
        findings.missing_kind("scalabletopics"),
        findings.judge_server("v1.20.4"),
        findings.judge_versions("0.2.0", "0.1.0"),
    ]
    assert all(one.level is not Level.OK and one.advice for one in bad)


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("v1.31.0", Level.OK),
        ("v1.34.1+k3s1", Level.OK),
        ("1.31", Level.OK),
        ("v1.30.9", Level.WARN),
        ("odd", Level.WARN),
    ],
)
def test_kubernetes_is_of_a_tested_version(version: str, level: Level) -> None:
    assert findings.judge_server(version).level is level


def test_all_shards_are_led_by_replicas_that_live() -> None:
    found = findings.judge_leases([*_shards(1, 2), *_replicas("pod-a", "pod-b")], 2, NOW, frozenset())
    assert _levels(found) == [Level.OK, Level.OK]
    assert found[0].message == "2 shards are led by pod-a"


def test_a_shard_without_a_living_leader_is_a_failure() -> None:
    for leases in (_shards(1, 60), _shards(1), [*_shards(1), _lease(shard_lease_name(1), SHARD, "", 1)]):
        (found,) = findings.judge_leases([*leases, *_replicas("a", "b")], 2, NOW, frozenset())
        assert (found.level, found.message) == (Level.FAIL, "shards 1 of 2 have no leader")


def test_a_lease_that_was_seen_to_change_is_held_whatever_clocks_say() -> None:
    found = findings.judge_leases([*_shards(3600), *_replicas("a", "b")], 1, NOW, frozenset({shard_lease_name(0)}))
    assert _levels(found) == [Level.OK, Level.OK]


def test_a_lease_of_the_future_counts_only_if_it_is_seen_to_change() -> None:
    """This machine's clock is behind, and the replica may be dead."""
    leases = [*_shards(-40, -1), *_replicas("a", "b")]
    (found,) = findings.judge_leases(leases, 2, NOW, frozenset())
    assert (found.level, found.message) == (Level.FAIL, "shards 0 of 2 have no leader")
    assert findings.judge_leases(leases, 2, NOW, frozenset({shard_lease_name(0)}))[0].level is Level.OK


def test_replicas_are_looked_at_again_as_shards_are_and_nothing_of_others_is() -> None:
    """This machine's clock is ahead."""
    ours = [*_shards(40, 1), _lease(replica_lease_name("a"), REPLICA, "a", 40), *_replicas("b")]
    other = {"metadata": {"name": "kube-node", "resourceVersion": "1"}, "spec": {"leaseDurationSeconds": 3600}}
    unsure = findings.unsure_leases([*ours, other], NOW)
    assert sorted(unsure) == [replica_lease_name("a"), shard_lease_name(0)]
    found = findings.judge_leases(ours, 2, NOW, frozenset(unsure))
    assert _levels(found) == [Level.OK, Level.OK]


def test_one_replica_alone_is_a_warning() -> None:
    assert _levels(findings.judge_leases([*_shards(1), *_replicas("a")], 1, NOW, frozenset())) == [Level.OK, Level.WARN]


@pytest.mark.parametrize(
    ("topic", "level", "words"),
    [
        (_topic(), Level.OK, "all 1 are ready"),
        (
            _topic(_condition("Ready", "False"), _condition("Stalled", "True", "NameTaken")),
            Level.FAIL,
            "NameTaken: of this",
        ),
        (_topic(_condition("Ready", "False"), _condition("Reconciling", "True")), Level.OK, "all 1 are ready"),
        (_topic(_condition("Ready", "False", seconds=900), _condition("Reconciling", "True")), Level.FAIL, "Because"),
        ({**TOPIC, "status": {}}, Level.FAIL, "nobody has looked at it yet"),
        (_topic(_condition("Ready", "True"), _condition("LoadFresh", "False", "LoadStale")), Level.WARN, "LoadStale"),
        (_topic(spec={"paused": True}), Level.WARN, "paused"),
        (_topic(operation={"kind": "Split", "step": "Sealing", "startedAt": _ago(60)}), Level.OK, "all 1 are ready"),
        (
            _topic(operation={"kind": "Split", "step": "Sealing", "startedAt": _ago(900)}),
            Level.WARN,
            "Split is at Sealing for 15m",
        ),
        (
            _topic(reports=[{"reason": "StraySegment", "message": "is not part"}]),
            Level.WARN,
            "StraySegment: is not part",
        ),
        (_topic(subscriptions=[{"name": "billing", "phase": "CursorLost"}]), Level.FAIL, "billing has lost a cursor"),
        (_topic(layout={"segments": [{}] * 410}), Level.WARN, "410 of 512 segments"),
    ],
)
def test_how_a_topic_stands(topic: dict[str, Any], level: Level, words: str) -> None:
    (found,) = findings.judge_topics([topic], NOW)
    assert found.level is level
    assert words in found.message


def test_of_many_topics_failures_come_first_and_the_rest_is_counted() -> None:
    bad = _topic(_condition("Ready", "False"), _condition("Stalled", "True"))
    found = findings.judge_topics([_topic(spec={"paused": True})] * 30 + [bad], NOW)
    assert found[0].level is Level.FAIL
    assert found[-1].message == "11 more findings"


def test_connections_tell_of_rights_orphans_and_stale_load() -> None:
    body = {
        "metadata": {"name": "pulsar", "namespace": "shop"},
        "spec": {},
        "status": {
            "conditions": [_condition("Ready", "True"), _condition("LoadFresh", "False", "BrokersMissing")],
            "rights": {"superuser": False, "missing": ["brokers"]},
            "orphans": [{"topic": "topic://a/b/c"}],
            "namespacePolicies": [{"pulsarNamespace": "a/b", "problem": "refused"}, {"pulsarNamespace": "a/c"}],
        },
    }
    found = findings.judge_connections([body])
    assert _levels(found) == [Level.WARN] * 4
    said = " ".join(one.message for one in found)
    for words in ("brokers", "BrokersMissing", "1 topics were left behind: topic://a/b/c", "a/b: refused"):
        assert words in said
    healthy = {**body, "status": {"conditions": [_condition("Ready", "True")]}}
    assert _levels(findings.judge_connections([healthy])) == [Level.OK]
    assert _levels(findings.judge_connections([{**body, "status": {}}])) == [Level.FAIL]


def test_operations_and_subscriptions_that_stand_still_are_told() -> None:
    def operation(seconds: float, **status: Any) -> dict[str, Any]:
        metadata = {"name": "split-0", "namespace": "shop", "creationTimestamp": _ago(seconds)}
        return {"metadata": metadata, "spec": {"scalableTopic": "orders"}, "status": status}

    assert findings.judge_operations([operation(60), operation(9000, phase="Succeeded")], NOW) == []
    (found,) = findings.judge_operations([operation(900, phase="Running", step="Creating")], NOW)
    assert (found.level, found.message) == (Level.WARN, "Running: Creating, for 15m")
    spec = {"scalableTopic": "orders"}
    stuck = {
        "metadata": {"name": "s", "namespace": "shop"},
        "spec": spec,
        "status": {"conditions": [_condition("Stalled", "True")]},
    }
    assert _levels(findings.judge_subscriptions([stuck, {**stuck, "status": {}}])) == [Level.FAIL]


def test_pods_that_are_not_ready_or_restart_are_told() -> None:
    def pod(ready: str, restarts: int) -> dict[str, Any]:
        status = {"conditions": [_condition("Ready", ready)], "containerStatuses": [{"restartCount": restarts}]}
        return {"metadata": {"name": "a", "namespace": "ops"}, "status": status}

    assert findings.judge_pods([]) == []
    assert _levels(findings.judge_pods([pod("True", 0), pod("True", 4)])) == [Level.OK]
    assert _levels(findings.judge_pods([pod("False", 0), pod("True", 5)])) == [Level.WARN, Level.WARN]


def test_load_that_is_older_than_three_samples_is_stale() -> None:
    intervals = {"a/b": 60.0, "a/c": 10.0, "a/d": 0.0}
    assert _levels(findings.judge_load_ages({"a/b": 170.0, "a/c": 29.0}, intervals)) == [Level.OK]
    stale = findings.judge_load_ages({"a/b": 190.0, "a/c": 31.0, "a/d": None}, intervals)
    assert _levels(stale) == [Level.WARN] * 3
    assert findings.judge_load_ages({}, {}) == []
    unknown = findings.judge_load_ages({"a/b": 45.0, "a/c": None}, {})
    assert unknown == [], "nobody knows how old it may be"
