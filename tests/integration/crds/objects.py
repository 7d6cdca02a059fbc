"""Custom objects on a real API server, as the tests of the CRDs handle them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.api.common import GROUP, VERSION
from scalable_topics_operator.api.crd import KINDS
from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from tests.unit.api.manifests import manifest

RESOURCES = {kind.__name__: Resource(GROUP, VERSION, kind.definition.plural, kind.__name__) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects in one namespace.

    Args:
        kube: a client that refuses unknown fields.
        namespace: where they are.
    """

    kube: KubeClient
    namespace: str

    @contextlib.asynccontextmanager
    async def created(self, kind: str, spec: Any) -> AsyncIterator[dict[str, Any]]:
        """An object that is there for the time of the block."""
        body = await self.create(manifest(kind, spec))
        try:
            yield body
        finally:
            await self.delete(body)

    async def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object of a manifest under a name of its own. Raises KubeInvalid."""
        body = {**body, "metadata": {"name": f"t-{uuid.uuid4().hex}"}}
        return await self.kube.create(RESOURCES[body["kind"]], self.namespace, body)

    async def patch(
        self, body: dict[str, Any], patch: dict[str, Any], subresource: str | None = None
    ) -> dict[str, Any]:
        """Merge a patch into an object, or into its subresource. Raises KubeInvalid, KubeConflict."""
        return await self.kube.merge_patch(
            RESOURCES[body["kind"]], self.namespace, body["metadata"]["name"], patch, subresource=subresource
        )

    async def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """An object as the API server has it now."""
        return await self.kube.get(RESOURCES[body["kind"]], self.namespace, body["metadata"]["name"])

    async def delete(self, body: dict[str, Any]) -> None:
        """Delete an object; quiet when it is gone."""
        await self.kube.delete(RESOURCES[body["kind"]], self.namespace, body["metadata"]["name"])
