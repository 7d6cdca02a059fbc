"""Lease objects as leadership reads and writes them (R5). Pure.

`holderIdentity` and the times are what `kubectl get lease` and people expect; what counts is the term in an annotation,
which is raised at every acquisition.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.peers import is_address

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
TERM_ANNOTATION = "scalabletopics.io/term"
GATEWAY_ANNOTATION = "scalabletopics.io/gateway"
PART_LABEL = "scalabletopics.io/part"
SHARD, REPLICA = "shard", "replica"
_SHARD_NAME = "scalable-topics-shard-"
_REPLICA_NAME = "scalable-topics-replica-"
_TERM_DIGITS = 15


def shard_lease_name(shard: int) -> str:
    """Name of a shard's Lease."""
    return f"{_SHARD_NAME}{shard}"


def replica_lease_name(identity: str) -> str:
    """Name of a replica's own Lease, by which the others know that it lives."""
    return f"{_REPLICA_NAME}{identity}"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease.

    Args:
        name: of the object.
        part: `shard` or `replica`.
        holder: identity of the holder; empty while it is free.
        term: raised at every acquisition; 0 of a replica's own.
        duration_seconds: how long after its last change it counts.
        version: resource version; empty for one that is to be created.
        transitions: how often the holder changed; for people only.
        gateway: of a replica's own, host and port at which the others reach its gateway; empty if it does not say.
        uid: of the object; empty for one that is to be created.
    """

    name: str
    part: str
    holder: str
    term: int
    duration_seconds: float
    version: str = ""
    transitions: int = 0
    gateway: str = ""
    uid: str = ""

    @property
    def shard(self) -> int:
        """Number of the shard."""
        return int(self.name.removeprefix(_SHARD_NAME))

    @classmethod
    def parse(cls, body: Body) -> LeaseRecord | None:
        """Read a Lease; None if it is not one of ours. Raises nothing: what somebody wrote into it counts as free."""
        metadata, spec = body["metadata"], body.get("spec") or {}
        part = str((metadata.get("labels") or {}).get(PART_LABEL))
        prefix = {SHARD: _SHARD_NAME, REPLICA: _REPLICA_NAME}.get(part, "?")
        name = metadata["name"]
        if not name.startswith(prefix) or (part == SHARD and not name.removeprefix(prefix).isdecimal()):
            return None
        annotations = metadata.get("annotations") or {}
        term, gateway = annotations.get(TERM_ANNOTATION, "0"), annotations.get(GATEWAY_ANNOTATION, "")
        return cls(
            name=name,
            part=part,
            holder=spec.get("holderIdentity") or "",
            term=_term(term),
            duration_seconds=float(spec.get("leaseDurationSeconds") or 0),
            version=metadata["resourceVersion"],
            transitions=int(spec.get("leaseTransitions") or 0),
            gateway=gateway if is_address(gateway) else "",
            uid=metadata.get("uid", ""),
        )

    def body(self, namespace: str, *, acquired: bool) -> Body:
        """The object to write, now; `acquired` if the holder is a new one.

        A write that replaces a Lease makes one that is gone anew (measured), unless it names the object: another may
        have held it since it was seen, and may still.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: Body = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": max(1, round(self.duration_seconds)),
            "renewTime": now,
            "leaseTransitions": self.transitions,
        }
        if acquired:
            spec["acquireTime"] = now
        metadata: Body = {
            "name": self.name,
            "namespace": namespace,
            "labels": {PART_LABEL: self.part},
            "annotations": {TERM_ANNOTATION: str(self.term)},
        }
        if self.gateway:
            metadata["annotations"][GATEWAY_ANNOTATION] = self.gateway
        if self.version:
            metadata["resourceVersion"] = self.version
            metadata["uid"] = self.uid
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}


def _term(text: str) -> int:
    # Nobody has led so often; a number of that length could not even be read.
    return int(text) if text.isdecimal() and len(text) <= _TERM_DIGITS else 0
