"""What sections with servers work on."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from tests.support.crds import install_crds
from tests.support.pulsar_view import PulsarView


@dataclass(frozen=True, slots=True)
class Stage:
    """The servers that the environment names, with our kinds of objects.

    Args:
        kube: an administrator's client.
        kubeconfig: of the API server.
        pulsar: the brokers of Pulsar 4.
        view: a superuser's view of these.
        folder: for logs and files of clients; it goes afterwards.
    """

    kube: KubeClient
    kubeconfig: Path
    pulsar: PulsarAccess
    view: PulsarView
    folder: Path


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Make the API server know our kinds, and answer what there is."""
    pulsar = PulsarAccess.from_environment()
    await asyncio.to_thread(install_crds)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            KubeClient(load_endpoint(), field_validation="Strict") as kube,
            PulsarView(pulsar.admin_url, pulsar.superuser_token) as view,
        ):
            yield Stage(kube, KubernetesAccess.from_environment().kubeconfig, pulsar, view, Path(folder))
