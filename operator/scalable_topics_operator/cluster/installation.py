"""Which operator installation this is, recorded once in the cluster (R4)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeNotFound
from scalable_topics_operator.cluster.resources import CONFIG_MAPS, NAMESPACES

CONFIG_MAP_NAME = "scalable-topics-installation"


@dataclass(frozen=True, slots=True)
class Installation:
    """Identity that claims carry.

    Args:
        installation_id: random, made at the first start in this Kubernetes cluster and namespace.
        kubernetes_uid: uid of the kube-system namespace, which stands for the cluster.
    """

    installation_id: str
    kubernetes_uid: str


async def find_installation(kube: KubeClient, namespace: str) -> Installation:
    """Read the installation's identity, making it at the first start.

    Args:
        kube: the API server.
        namespace: the operator's own namespace, where the ConfigMap is kept.

    Raises KubeError when the API server refuses.
    """
    system = await kube.get(NAMESPACES, None, "kube-system")
    try:
        record = await kube.get(CONFIG_MAPS, namespace, CONFIG_MAP_NAME)
    except KubeNotFound:
        record = await _create_record(kube, namespace)
    return Installation(record["data"]["installationId"], system["metadata"]["uid"])


async def _create_record(kube: KubeClient, namespace: str) -> Body:
    body: Body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP_NAME},
        "data": {"installationId": uuid.uuid4().hex},
    }
    try:
        return await kube.create(CONFIG_MAPS, namespace, body)
    except KubeConflict:
        return await kube.get(CONFIG_MAPS, namespace, CONFIG_MAP_NAME)
