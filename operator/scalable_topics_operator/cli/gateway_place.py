"""Where the operator's gateway is, from what its replicas tell in their Leases. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.lease_record import REPLICA, LeaseRecord

_TLS_FLAG, _TLS_VARIABLE = "--gateway-tls-cert", "SCALABLE_TOPICS_GATEWAY_TLS_CERT"
_CONTAINER = "operator"


@dataclass(frozen=True, slots=True)
class Place:
    """A replica's gateway.

    Args:
        host: at which the other replicas reach it.
        port: likewise.
        pod: name of the pod that has this address; empty if none has.
        service_account: that the pod runs as; empty without one.
        is_tls: whether it serves HTTPS.
    """

    host: str
    port: int
    pod: str = ""
    service_account: str = ""
    is_tls: bool = False


def is_loopback(host: str) -> bool:
    """Whether a host is the machine that says so."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def places(leases: Iterable[Body], pods: Sequence[Body]) -> list[Place]:
    """The gateways of all replicas, those that were renewed last first.

    Args:
        leases: Leases of the operator's namespace.
        pods: the pods there.
    """
    ordered = sorted(leases, key=lambda body: str((body.get("spec") or {}).get("renewTime") or ""), reverse=True)
    records = [record for body in ordered if (record := LeaseRecord.parse(body)) and record.part == REPLICA]
    return [_place(record, pods) for record in records if record.gateway and record.holder]


def _place(record: LeaseRecord, pods: Sequence[Body]) -> Place:
    host, _, port = record.gateway.rpartition(":")
    for pod in pods:
        status = pod.get("status") or {}
        if status.get("podIP") == host.strip("[]") and status.get("phase") == "Running":
            spec = pod["spec"]
            return Place(
                host,
                int(port),
                pod["metadata"]["name"],
                str(spec.get("serviceAccountName") or ""),
                any(_serves_tls(container) for container in spec.get("containers") or ()),
            )
    return Place(host, int(port))


def _serves_tls(container: Body) -> bool:
    if container.get("name") != _CONTAINER:
        return False
    flags = [*(container.get("command") or ()), *(container.get("args") or ())]
    variables = [one.get("name") for one in container.get("env") or ()]
    return any(str(flag).startswith(_TLS_FLAG) for flag in flags) or _TLS_VARIABLE in variables
