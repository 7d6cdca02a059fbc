"""Writes at the API server in the name of callers, whose rights it judges once more (R32)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping

from scalable_topics_operator.cluster.caller import Caller
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeInvalid,
    KubeNotFound,
    KubeUnavailable,
)
from scalable_topics_operator.gateway.refusal import Refusal

logger = logging.getLogger(__name__)

_TRIES = 3
_FIRST_PAUSE_SECONDS = 0.2
_NO_IMPERSONATION = "cannot impersonate"


class CallerWrites:
    """Makes and deletes objects as the callers themselves would.

    Args:
        kube: the API server, with the right to impersonate.
        enabled: whether callers may write at all.
    """

    def __init__(self, kube: KubeClient, *, enabled: bool) -> None:
        self._kube = kube
        self._enabled = enabled

    def require_enabled(self, manifest: str = "") -> None:
        """Raises Refusal: 405 where writes are switched off; `manifest` is what to apply instead."""
        if not self._enabled:
            raise Refusal(
                405,
                "writing through REST is switched off here (--gateway-writes=false); apply a manifest",
                manifest=manifest,
            )

    async def create(self, caller: Caller, resource: Resource, body: Body) -> Body:
        """Make an object under a name that is this call's own. Raises Refusal."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]

        async def create(kube: KubeClient) -> Body:
            for attempt in range(1, _TRIES + 1):
                try:
                    return await kube.create(resource, namespace, body)
                except KubeConflict:
                    # Of an earlier try only the answer was lost.
                    if attempt == 1:
                        raise
                    return await self._kube.get(resource, namespace, name)
                except KubeUnavailable:
                    if attempt == _TRIES:
                        raise
                    await asyncio.sleep(random.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))
            raise AssertionError("the last try answers or raises")

        return await self._acting(caller, create, makes=True)

    async def delete(self, caller: Caller, resource: Resource, body: Body, *, dry_run: bool = False) -> None:
        """Delete this very object, or only find out whether that could be done. Raises Refusal."""
        metadata = body["metadata"]

        async def delete(kube: KubeClient) -> None:
            await kube.delete(resource, metadata["namespace"], metadata["name"], uid=metadata["uid"], dry_run=dry_run)

        await self._acting(caller, delete)

    async def delete_unchanged(self, caller: Caller, resource: Resource, body: Body) -> bool:
        """Delete this very object as it is; False if it has changed meanwhile, and stays. Raises Refusal."""
        metadata = body["metadata"]
        changed = False

        async def delete(kube: KubeClient) -> None:
            nonlocal changed
            try:
                await kube.delete(
                    resource,
                    metadata["namespace"],
                    metadata["name"],
                    uid=metadata["uid"],
                    resource_version=metadata["resourceVersion"],
                )
            except KubeConflict:
                changed = True

        await self._acting(caller, delete)
        return not changed

    async def annotate(self, caller: Caller, resource: Resource, body: Body, annotations: Mapping[str, str]) -> None:
        """Add annotations to this very object. Raises Refusal."""
        metadata = body["metadata"]
        patch = {"metadata": {"uid": metadata["uid"], "annotations": dict(annotations)}}

        async def annotate(kube: KubeClient) -> None:
            await kube.merge_patch(resource, metadata["namespace"], metadata["name"], patch)

        await self._acting(caller, annotate)

    async def _acting(
        self, caller: Caller, call: Callable[[KubeClient], Awaitable[Body | None]], *, makes: bool = False
    ) -> Body:
        self.require_enabled()
        try:
            return await call(self._kube.acting_as(caller)) or {}
        except ValueError as error:
            raise Refusal(403, f"the API server cannot be told who you are: {error}") from None
        except KubeForbidden as error:
            if _NO_IMPERSONATION in error.message:
                logger.warning("the operator may not act as its callers: %s", error.message)
                raise Refusal(
                    403,
                    f"the operator may not act as you: {error.message}; its ClusterRole needs the verb impersonate, as "
                    "the chart's gateway.writes.enabled gives it",
                ) from None
            raise Refusal(403, error.message) from None
        except KubeNotFound as error:
            raise Refusal(404, error.message) from None
        except KubeConflict as error:
            raise Refusal(409, error.message) from None
        except KubeInvalid as error:
            raise Refusal(400, error.message) from None
        except KubeUnavailable as error:
            logger.warning("a call for a caller failed: %s", error)
            # Asked again, it would be another object.
            then = "it may have been made, so look before you ask again" if makes else "try again"
            raise Refusal(503, f"the Kubernetes API server does not answer; {then}", again=not makes) from None
        except KubeError as error:
            logger.warning("a call for a caller failed: %s", error)
            raise Refusal(503, f"the Kubernetes API server answers {error.status}; try again") from None
