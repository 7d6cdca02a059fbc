"""The CRDs of this tree on a real API server, and a namespace to try them in."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.merge_diff import merge_diff
from scalable_topics_operator.cluster.resources import NAMESPACES
from tests.integration.crds.objects import Objects
from tests.support.crds import our_crds

_CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
_DEADLINE_SECONDS = 30


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kube(kubernetes: Any) -> AsyncIterator[KubeClient]:
    """A client that refuses unknown fields, of an API server that has this tree's CRDs."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(kubernetes.kubeconfig))
        endpoint = load_endpoint()
    async with KubeClient(endpoint, field_validation="Strict") as client:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            for crd in our_crds():
                await _install(client, crd)
        yield client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def objects(kube: KubeClient) -> AsyncIterator[Objects]:
    """Custom objects in a namespace of their own."""
    namespace = f"crds-{uuid.uuid4().hex[:10]}"
    await kube.create(NAMESPACES, None, {"metadata": {"name": namespace}})
    yield Objects(kube, namespace)
    await kube.delete(NAMESPACES, None, namespace)


async def _install(kube: KubeClient, crd: dict[str, Any]) -> None:
    """Create or update a definition and wait until its objects are served by it."""
    name = crd["metadata"]["name"]
    try:
        await kube.create(_CRDS, None, crd)
    except KubeConflict:
        current = await kube.get(_CRDS, None, name)
        await kube.merge_patch(_CRDS, None, name, {"spec": merge_diff(current["spec"], crd["spec"])})
    while True:
        if _established(await kube.get(_CRDS, None, name)):
            return
        await asyncio.sleep(0.05)


def _established(crd: dict[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
