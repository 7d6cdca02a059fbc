"""Worlds and what they need: namespaces in Kubernetes and in Pulsar, a connection, names nobody else has."""

from __future__ import annotations

import uuid
from typing import Any

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, NAMESPACES
from tests.support import manifests
from tests.support.pulsar_view import PulsarView
from tests.support.world import World

_TENANT = "tests"


def random_name(prefix: str) -> str:
    """A name that nobody else has."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


async def create_namespace(kube: KubeClient, name: str) -> None:
    """Create a Kubernetes namespace."""
    await kube.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def make_world(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    namespace: str,
    admin_url: str | None = None,
    **connection: Any,
) -> World:
    """A world in `namespace`, whose connection `pulsar` leads to `admin_url` (a proxy, say) or to the brokers.

    Whatever else is given goes into the connection's spec.
    """
    pulsar_namespace = f"{_TENANT}/{random_name('t')}"
    await view.create_namespace(pulsar_namespace)
    world = World(kube, namespace, view, pulsar_namespace, pulsar.admin_url)
    names = {body["metadata"]["name"] for body in await kube.list_all(CONNECTIONS, namespace)}
    if "pulsar" not in names:
        await world.apply(manifests.secret("pulsar-token", token=pulsar.superuser_token))
        await world.apply(manifests.connection("pulsar", admin_url or pulsar.admin_url, **connection))
    return world
