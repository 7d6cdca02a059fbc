"""Where the gateway is, from Leases and pods."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.gateway_place import Place, is_loopback, places
from scalable_topics_operator.cluster.lease_record import (
    REPLICA,
    SHARD,
    LeaseRecord,
    replica_lease_name,
    shard_lease_name,
)


def _replica(identity: str, gateway: str, renewed: str = "2026-01-01T00:00:00.000000Z") -> dict[str, Any]:
    body = LeaseRecord(replica_lease_name(identity), REPLICA, identity, 0, 15.0, "1", gateway=gateway).body(
        "ops", acquired=False
    )
    body["spec"]["renewTime"] = renewed
    return body


def _pod(pod: str, ip: str, *args: str, phase: str = "Running", **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": pod},
        "spec": {
            "serviceAccountName": "scalable-topics",
            "containers": [{"name": "operator", "args": list(args), **container}],
        },
        "status": {"podIP": ip, "phase": phase},
    }


def test_a_gateway_in_a_pod_is_that_pods_and_speaks_tls_if_the_pod_is_told_to() -> None:
    leases = [_replica("a", "10.0.0.7:8081"), _replica("b", "[fd00::7]:8081", "2026-01-02T00:00:00.000000Z")]
    pods = [_pod("pod-a", "10.0.0.7"), _pod("pod-b", "fd00::7", "--gateway-tls-cert=/tls.crt")]
    assert places(leases, pods) == [
        Place("[fd00::7]", 8081, "pod-b", "scalable-topics", True),
        Place("10.0.0.7", 8081, "pod-a", "scalable-topics", False),
    ]


def test_tls_may_be_asked_for_by_a_variable_and_by_the_operators_container_only() -> None:
    variable = [{"name": "SCALABLE_TOPICS_GATEWAY_TLS_CERT", "value": "/tls.crt"}]
    (asked,) = places([_replica("a", "10.0.0.7:1")], [_pod("a", "10.0.0.7", env=variable)])
    (other,) = places([_replica("a", "10.0.0.7:1")], [_pod("a", "10.0.0.7", env=variable, name="sidecar")])
    assert (asked.is_tls, other.is_tls) == (True, False)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("[::1]", True), ("localhost", True), ("10.0.0.7", False), ("h", False)],
)
def test_an_address_without_a_pod_may_be_on_this_machine(host: str, is_local: bool) -> None:
    (place,) = places([_replica("a", f"{host}:8081")], [])
    assert (place.pod, is_loopback(place.host)) == ("", is_local)


def test_pods_that_have_ended_and_leases_of_others_do_not_count() -> None:
    leases = [
        _replica("a", "10.0.0.7:8081"),
        _replica("silent", ""),
        LeaseRecord(shard_lease_name(0), SHARD, "a", 3, 15.0, "1").body("ops", acquired=True),
        {"metadata": {"name": "kube-scheduler", "resourceVersion": "1"}, "spec": {}},
    ]
    for lease in leases:
        lease["metadata"].setdefault("resourceVersion", "1")
    (place,) = places(leases, [_pod("old", "10.0.0.7", phase="Failed")])
    assert (place.host, place.pod) == ("10.0.0.7", "")


def test_only_the_operators_namespace_is_searched() -> None:
    """Who may write Leases in another one could have tokens sent to themselves."""
    assert GatewayOptions().namespaces == ("scalable-topics", "default")
    assert GatewayOptions(operator_namespace="ops").namespaces == ("ops",)
