"""Our CRDs, installed into whatever API server KUBECONFIG names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeNotFound
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.support.waiting import eventually

CRD_FOLDER = Path(__file__).parents[2] / "crds"
_CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")


def install_crds() -> None:
    """Create or update the CRDs and wait until the API server serves them. Safe in parallel workers."""
    asyncio.run(_install())


async def _install() -> None:
    async with KubeClient(load_endpoint()) as kube:
        for file in sorted(CRD_FOLDER.glob("*.yaml")):
            await _install_one(kube, yaml.safe_load(file.read_text()))


async def _install_one(kube: KubeClient, manifest: dict[str, object]) -> None:
    name = manifest["metadata"]["name"]  # type: ignore[index]
    try:
        await kube.create(_CRDS, None, manifest)
    except KubeConflict:
        await kube.merge_patch(_CRDS, None, name, {"spec": manifest["spec"]})
    spec = manifest["spec"]
    version = spec["versions"][0]["name"]  # type: ignore[index]
    served = Resource(spec["group"], version, spec["names"]["plural"], spec["names"]["kind"])  # type: ignore[index]

    async def listed() -> bool:
        try:
            await kube.list_all(served)
        except KubeNotFound:
            return False
        return True

    await eventually(listed, what=f"{name} is served")
