"""A real API server with all kinds that the chart has objects of."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from dev.access import KubernetesAccess
from dev.chart_tools import foreign_kinds
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import NAMESPACES
from tests.integration.chart.rendering import NAMESPACE, WATCHED
from tests.support.crds import install_crds, install_definitions
from tests.support.world_making import random_name

_TIMEOUT_SECONDS = 60.0
_RESTRICTED = {
    f"pod-security.kubernetes.io/{mode}{what}": level
    for mode in ("enforce", "warn")
    for what, level in (("", "restricted"), ("-version", "latest"))
}


@pytest.fixture(scope="session")
def api_server(kubernetes: KubernetesAccess) -> Iterator[KubernetesAccess]:
    """The API server, named by KUBECONFIG; namespaces are of the level `restricted`."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(kubernetes.kubeconfig))
        install_crds()
        install_definitions(foreign_kinds())
        asyncio.run(_make_namespaces())
        yield kubernetes


@pytest.fixture
async def kube(api_server: KubernetesAccess) -> AsyncIterator[KubeClient]:
    """An administrator's client."""
    assert os.environ["KUBECONFIG"] == str(api_server.kubeconfig)
    async with KubeClient(load_endpoint(), field_validation="Strict") as client:
        yield client


@pytest.fixture
async def namespace(kube: KubeClient) -> str:
    """A namespace of the test's own."""
    name = random_name("chart")
    await make_namespace(kube, name)
    return name


async def make_namespace(kube: KubeClient, name: str) -> None:
    """Have a namespace that takes restricted pods alone."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _RESTRICTED}}
    with suppress(KubeConflict):
        await kube.create(NAMESPACES, None, body)


async def _make_namespaces() -> None:
    async with KubeClient(load_endpoint(), timeout_seconds=_TIMEOUT_SECONDS) as kube:
        for name in (NAMESPACE, *WATCHED):
            await make_namespace(kube, name)
