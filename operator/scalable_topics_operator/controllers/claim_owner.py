"""Whether the object that a claim names is there (R1)."""

from __future__ import annotations

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeForbidden, KubeNotFound
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.operations.protocols import Claim


async def owner_alive(kube: KubeClient, claim: Claim) -> bool:
    """Ask the API server for the ScalableTopic of a claim. Raises KubeError when it cannot be asked."""
    try:
        owner = await kube.get(TOPICS, claim.resource_namespace, claim.resource_name)
    except KubeNotFound:
        return False
    except KubeForbidden:
        # Not ours to see; taken for alive, so that nothing is taken away from it.
        return True
    return bool(owner["metadata"]["uid"] == claim.resource_uid)
