"""One pipeline a connection: a Lease of its own beside the shards' (R34)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeNotFound, KubeUnavailable
from scalable_topics_operator.cluster.lease_record import LEASES

LEASE_SECONDS = 45.0
"""What was not renewed for so long may be taken over."""
HELD_SECONDS = LEASE_SECONDS / 3
"""For so long a holder goes on after its last renewal. What it runs has as long again to see that, and a reserve."""
_RENEW_SECONDS = LEASE_SECONDS / 9


def pipeline_lease_name(uid: str) -> str:
    """Name of the Lease of a connection's pipeline."""
    return f"scalable-topics-pipeline-{uid}"


@dataclass(frozen=True, slots=True)
class _Seen:
    holder: str
    version: str
    duration_seconds: float
    since_seconds: float


class PipelineLease:
    """The Lease of one connection's pipeline, as one replica holds it. It is beside the connection and goes with it.

    Args:
        kube: the API server.
        connection: the object.
        identity: of this replica.
        now: monotonic time in seconds.
    """

    def __init__(
        self, kube: KubeClient, connection: Body, identity: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        metadata = connection["metadata"]
        self._kube = kube
        self._namespace = metadata["namespace"]
        self._name = pipeline_lease_name(metadata["uid"])
        self._owner = {
            "apiVersion": connection["apiVersion"],
            "kind": connection["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        self._identity = identity
        self._now = now
        self._seen: _Seen | None = None
        self._renewed_seconds: float | None = None

    @property
    def is_held(self) -> bool:
        """Whether this replica may go on."""
        return self._renewed_seconds is not None and self._now() - self._renewed_seconds < HELD_SECONDS

    async def hold(self) -> bool:
        """Take the Lease, or renew it when that is due; answers whether it is held.

        Raises KubeError when the API server refuses it; while it does not answer, what is held stays so for a while.
        """
        if self._renewed_seconds is not None and self._now() - self._renewed_seconds < _RENEW_SECONDS:
            return True
        try:
            await self._write()
        except KubeUnavailable:
            pass
        except KubeConflict:
            self._renewed_seconds = None
        return self.is_held

    async def release(self) -> None:
        """Let others have it at once. Raises KubeError."""
        held, self._renewed_seconds = self.is_held, None
        if held and self._seen is not None:
            freed = self._body("", {"resourceVersion": self._seen.version})
            try:
                await self._kube.replace(LEASES, self._namespace, freed)
            except (KubeConflict, KubeNotFound):
                return

    async def _write(self) -> None:
        sent_seconds = self._now()
        try:
            found = await self._kube.get(LEASES, self._namespace, self._name)
        except KubeNotFound:
            # Whoever had it and does not know yet that somebody deleted it is waited for, too.
            if self._seen is not None and self._seen.version:
                self._seen = _Seen(self._seen.holder, "", self._seen.duration_seconds, sent_seconds)
            if not self._may_take(sent_seconds):
                self._renewed_seconds = None
                return
            written = await self._kube.create(LEASES, self._namespace, self._body(self._identity, {}))
        else:
            self._note(found, sent_seconds)
            if not self._may_take(sent_seconds):
                self._renewed_seconds = None
                return
            # A write that names no object would make one anew that is deleted right now.
            named = {key: found["metadata"][key] for key in ("resourceVersion", "uid")}
            written = await self._kube.replace(LEASES, self._namespace, self._body(self._identity, named))
        self._note(written, sent_seconds)
        self._renewed_seconds = sent_seconds

    def _note(self, body: Body, now_seconds: float) -> None:
        version, spec = body["metadata"]["resourceVersion"], body.get("spec") or {}
        if self._seen is None or self._seen.version != version:
            duration_seconds = float(spec.get("leaseDurationSeconds") or 0)
            self._seen = _Seen(spec.get("holderIdentity") or "", version, duration_seconds, now_seconds)

    def _may_take(self, now_seconds: float) -> bool:
        seen = self._seen
        if seen is None or seen.holder in ("", self._identity):
            return True
        return now_seconds - seen.since_seconds >= max(LEASE_SECONDS, seen.duration_seconds)

    def _body(self, holder: str, named: Mapping[str, str]) -> Body:
        metadata: Body = {
            "name": self._name,
            "namespace": self._namespace,
            "ownerReferences": [self._owner],
            **named,
        }
        spec: Body = {
            "holderIdentity": holder,
            "leaseDurationSeconds": round(LEASE_SECONDS),
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
