"""Which operator installation this is, recorded once in the cluster (R4)."""

from __future__ import annotations

import math
import time
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
        made_at_seconds: monotonic time right before this process made the record; minus infinity if another one did.
            Nobody who found the record has led before that time.
    """

    installation_id: str
    kubernetes_uid: str
    made_at_seconds: float = -math.inf


class InstallationMismatch(Exception):
    """This process is configured otherwise than the installation: two topics' leaders could be two replicas at once."""


async def find_installation(kube: KubeClient, namespace: str, shards: int) -> Installation:
    """Read the installation's identity, making it at the first start.

    Args:
        kube: the API server.
        namespace: the operator's own namespace, where the ConfigMap is kept.
        shards: into how many shards topics are divided; must be what the record says.

    Raises InstallationMismatch, KubeError when the API server refuses.
    """
    system = await kube.get(NAMESPACES, None, "kube-system")
    made_at_seconds = -math.inf
    try:
        record = await kube.get(CONFIG_MAPS, namespace, CONFIG_MAP_NAME)
    except KubeNotFound:
        before_seconds = time.monotonic()
        try:
            record = await kube.create(CONFIG_MAPS, namespace, _new_record(shards))
            made_at_seconds = before_seconds
        except KubeConflict:
            record = await kube.get(CONFIG_MAPS, namespace, CONFIG_MAP_NAME)
    recorded = record["data"].get("shards")
    if recorded is None:
        version = record["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "data": {"shards": str(shards)}}
        record = await kube.merge_patch(CONFIG_MAPS, namespace, CONFIG_MAP_NAME, patch)
    elif recorded != str(shards):
        raise InstallationMismatch(
            f"this replica is set to {shards} shards, but ConfigMap {namespace}/{CONFIG_MAP_NAME} says {recorded}; all "
            "replicas must agree: set --shards to it, or stop every replica, remove `shards` there and start again"
        )
    return Installation(record["data"]["installationId"], system["metadata"]["uid"], made_at_seconds)


def _new_record(shards: int) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP_NAME},
        "data": {"installationId": uuid.uuid4().hex, "shards": str(shards)},
    }
