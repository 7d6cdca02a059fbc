"""Our CRDs and those of Spark operators, installed into whatever API server KUBECONFIG names."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeNotFound
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.support.waiting import eventually

CRD_FOLDER = Path(__file__).parents[2] / "crds"
_SPARK_CRD_FOLDER = Path(__file__).parent / "spark_crds"
# The API server works on a megabyte of schema for a while.
_TIMEOUT_SECONDS = 60.0
_CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")


def install_crds() -> None:
    """Create or update the CRDs and wait until the API server serves them. Safe in parallel workers."""
    asyncio.run(_install(our_crds()))


def install_spark_crds() -> None:
    """Create the SparkApplications of both Spark operators, which never change; of each the newest version alone."""
    definitions = spark_crds()
    for definition in definitions:
        # Every megabyte of schema keeps the API server, which other tests share, busy for seconds.
        versions = definition["spec"]["versions"]
        definition["spec"]["versions"] = [version for version in versions if version["storage"]]
    asyncio.run(_install(definitions, update=False))


def install_definitions(folder: Path) -> None:
    """Create the kinds of other people whose definitions are in a folder, one a file, and which never change."""
    # Some are large, and the other loader is slow.
    definitions = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted(folder.glob("*.yaml"))]
    asyncio.run(_install(definitions, update=False))


def our_crds() -> list[dict[str, Any]]:
    """Our definitions."""
    return [yaml.safe_load(file.read_text()) for file in sorted(CRD_FOLDER.glob("*.yaml"))]


def our_schemas() -> dict[str, dict[str, Any]]:
    """Kind to the schema of its objects."""
    return {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in our_crds()}


def spark_crds() -> list[dict[str, Any]]:
    """Definitions of the SparkApplications of both Spark operators, as published."""
    files = sorted(_SPARK_CRD_FOLDER.glob("*.yaml.gz"))
    # A megabyte each: the other loader would take half a minute.
    return [yaml.load(gzip.decompress(file.read_bytes()), yaml.CSafeLoader) for file in files]


async def _install(definitions: Iterable[dict[str, Any]], *, update: bool = True) -> None:
    async with KubeClient(load_endpoint(), timeout_seconds=_TIMEOUT_SECONDS) as kube:
        for definition in definitions:
            await install_crd(kube, definition, update=update)


async def install_crd(kube: KubeClient, manifest: dict[str, Any], *, update: bool = True) -> None:
    """Create or update one definition and wait until the API server serves it."""
    name = manifest["metadata"]["name"]
    try:
        await kube.create(_CRDS, None, manifest)
    except KubeConflict:
        if update:
            await kube.merge_patch(_CRDS, None, name, {"spec": manifest["spec"]})
    spec = manifest["spec"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    served = Resource(spec["group"], stored, spec["names"]["plural"], spec["names"]["kind"])

    async def listed() -> bool:
        try:
            await kube.list_all(served)
        except KubeNotFound:
            return False
        return True

    await eventually(listed, what=f"{name} is served")
