"""Status writes with compare-and-swap: the layout store of DESIGN §6."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict
from scalable_topics_operator.cluster.merge_diff import merge_diff

_TRIES = 5


class StaleStatus(Exception):
    """Somebody else changed the status since it was read; nothing was written."""


class StatusStore:
    """The status of one object, read once and written only when it differs.

    Args:
        kube: the API server.
        resource: the object's kind.
        body: the object as last read.
        on_read: called with every newer version the API server answers, our own writes included, so that a
            cache need not wait for the watch to tell of it.
    """

    def __init__(
        self,
        kube: KubeClient,
        resource: Resource,
        body: Body,
        on_read: Callable[[Body], None] = lambda _: None,
    ) -> None:
        self._kube = kube
        self._resource = resource
        self._body = body
        self._on_read = on_read

    @property
    def body(self) -> Body:
        """The object as of the last read or write."""
        return self._body

    @property
    def status(self) -> Mapping[str, Any]:
        """Its status as of the last read or write."""
        status: Mapping[str, Any] = self._body.get("status") or {}
        return status

    async def write(self, status: Mapping[str, Any]) -> bool:
        """Make the object's status equal to `status`; answers whether a write was needed.

        A conflict from a change of spec or metadata alone is retried on the new version; a conflict with
        another status raises StaleStatus. Raises KubeNotFound when the object is gone or was replaced.
        """
        patch = merge_diff(self.status, status)
        if not patch:
            return False
        metadata = self._body["metadata"]
        namespace, name, uid = metadata.get("namespace"), metadata["name"], metadata["uid"]
        version = metadata["resourceVersion"]
        for _ in range(_TRIES):
            try:
                written = await self._kube.merge_patch(
                    self._resource,
                    namespace,
                    name,
                    {"metadata": {"resourceVersion": version, "uid": uid}, "status": patch},
                    subresource="status",
                )
            except KubeConflict as conflict:
                current = await self._kube.get(self._resource, namespace, name)
                self._on_read(current)
                current_status = current.get("status") or {}
                if current["metadata"]["uid"] != uid:
                    raise StaleStatus(f"{self._resource.plural} {namespace}/{name} was replaced") from conflict
                if current_status == status:
                    # Our own write arrived and only its reply was lost.
                    written = current
                elif current_status != self.status:
                    raise StaleStatus(
                        f"status of {self._resource.plural} {namespace}/{name} changed elsewhere"
                    ) from conflict
                else:
                    version = current["metadata"]["resourceVersion"]
                    continue
            self._body = written
            self._on_read(written)
            return True
        raise StaleStatus(f"{self._resource.plural} {namespace}/{name} changes faster than it can be written")
