"""Objects that were written under the definitions of an earlier release stay valid and mean the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.instance import LocalCluster, Shape
from scalable_topics_operator.api.common import GROUP
from scalable_topics_operator.api.crd import KINDS
from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.integration.crds.objects import RESOURCES
from tests.support.crds import install_crd, our_crds
from tests.support.release_snapshot import DEFINITIONS, OBJECTS, releases

NAMESPACE = "default"
MODELS = {kind.__name__: kind for kind in KINDS}
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")


@pytest.fixture
async def kube(
    local_cluster: Callable[[Shape], LocalCluster], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KubeClient]:
    """An API server that has no definitions of ours yet."""
    cluster = local_cluster(Shape(brokers=0))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubernetes.kubeconfig))
    async with KubeClient(load_endpoint(), field_validation="Strict") as client:
        yield client


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
async def test_objects_of_a_release_stay_valid_under_the_definitions_of_this_tree(
    kube: KubeClient, release: Path
) -> None:
    for definition in _documents(release / DEFINITIONS):
        await install_crd(kube, definition, update=False)
    objects = _documents(release / OBJECTS)
    assert {each["kind"] for each in objects} == set(MODELS)
    for each in objects:
        await _write(kube, each)
    before = [await _read(kube, each) for each in objects]

    for definition in our_crds():
        await install_crd(kube, definition, update=True)

    for each, old in zip(objects, before, strict=True):
        found = await _read(kube, each)
        assert (found["spec"], found["status"]) == (old["spec"], old["status"])
        MODELS[each["kind"]].model_validate(found)
        # Written anew, all of it is judged; what an object has already, an API server may let be.
        again = {**each, "metadata": {"name": f"again-{each['metadata']['name']}"}}
        await _write(kube, again)
        assert (await _read(kube, again))["status"] == old["status"]
    for kind in KINDS:
        definition = await kube.get(CRDS, None, f"{kind.definition.plural}.{GROUP}")
        served = {version["name"] for version in definition["spec"]["versions"]}
        assert set(definition["status"]["storedVersions"]) <= served


def _documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader))


async def _write(kube: KubeClient, body: dict[str, Any]) -> None:
    resource, name = RESOURCES[body["kind"]], body["metadata"]["name"]
    await kube.create(resource, NAMESPACE, body)
    await kube.merge_patch(resource, NAMESPACE, name, {"status": body["status"]}, subresource="status")


async def _read(kube: KubeClient, body: dict[str, Any]) -> dict[str, Any]:
    return await kube.get(RESOURCES[body["kind"]], NAMESPACE, body["metadata"]["name"])
