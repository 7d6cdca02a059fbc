"""Worlds and what they need: namespaces in Kubernetes and in Pulsar, a connection, names nobody else has."""

from __future__ import annotations

import uuid
from typing import Any

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, NAMESPACES
from tests.support import manifests
from tests.support.pulsar_view import PulsarView
from tests.support.world import SHARED_CONNECTION, World

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
    *,
    connection_name: str = SHARED_CONNECTION,
    **connection: Any,
) -> World:
    """A world in `namespace`, whose connection leads to `admin_url` (a proxy, say) or to the brokers.

    Whatever else is given goes into the connection's spec.
    """
    pulsar_namespace = f"{_TENANT}/{random_name('t')}"
    await view.create_namespace(pulsar_namespace)
    world = World(kube, namespace, view, pulsar_namespace, pulsar.admin_url)
    names = {body["metadata"]["name"] for body in await kube.list_all(CONNECTIONS, namespace)}
    if connection_name not in names:
        secret_name = f"{connection_name}-token"
        await world.apply(manifests.secret(secret_name, token=pulsar.superuser_token))
        await world.apply(
            manifests.connection(connection_name, admin_url or pulsar.admin_url, secret_name, **connection)
        )
    return world
