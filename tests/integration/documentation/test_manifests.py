"""What the pages and the examples have of YAML is taken by a real API server, and by helm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from dev.access import KubernetesAccess
from dev.documented_kinds import documented_kinds
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.integration.chart.cluster import kubectl
from tests.integration.chart.rendering import template
from tests.support.crds import install_crds, install_definitions, install_spark_crds
from tests.support.documentation.manifests import Sample, read_examples, read_samples
from tests.support.world_making import create_namespace, random_name

_TIMEOUT_SECONDS = 120


@pytest.fixture(scope="module")
def api_server(kubernetes: KubernetesAccess) -> Iterator[KubernetesAccess]:
    """The API server with all kinds that the pages show."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(kubernetes.kubeconfig))
        install_crds()
        install_spark_crds()
        install_definitions(documented_kinds())
        yield kubernetes


def test_every_manifest_is_taken_by_the_api_server(api_server: KubernetesAccess, tmp_path: Path) -> None:
    samples = [*read_samples().manifests, *read_examples()]
    own = random_name("documentation")
    for document in (one for sample in samples for one in sample.documents):
        document["metadata"].setdefault("namespace", own)
    asyncio.run(_make_namespaces({one["metadata"]["namespace"] for sample in samples for one in sample.documents}))
    folder = tmp_path / "samples"
    folder.mkdir()
    for sample in samples:
        (folder / _file_name(sample)).write_text(yaml.safe_dump_all(sample.documents))
    options = ("--dry-run=server", "--validate=strict", "--filename", str(folder))
    done = kubectl(api_server, "create", *options, within_seconds=_TIMEOUT_SECONDS)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.count("(server dry run)") == sum(len(sample.documents) for sample in samples)


def test_values_of_the_chart_are_taken_by_helm(tmp_path: Path) -> None:
    samples = read_samples().values
    assert samples
    for sample in samples:
        file = tmp_path / _file_name(sample)
        file.write_text(yaml.safe_dump_all(sample.documents))
        assert "kind: Deployment" in template("--values", str(file)), sample.place


def _file_name(sample: Sample) -> str:
    return sample.place.replace("/", "_").replace(":", "-").removesuffix(".yaml") + ".yaml"


async def _make_namespaces(names: Iterable[str]) -> None:
    async with KubeClient(load_endpoint()) as kube:
        for name in sorted(names):
            with suppress(KubeConflict):
                await create_namespace(kube, name)
