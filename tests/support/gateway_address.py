"""Where the gateway of an operator listens, as it says itself."""

from __future__ import annotations

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.lease_record import GATEWAY_ANNOTATION, LEASES
from tests.support.waiting import eventually


async def gateway_address(kube: KubeClient, namespace: str) -> str:
    """Host and port of one of the replicas that keep their Leases in a namespace, as soon as there is one."""

    async def told() -> str:
        leases = await kube.list_all(LEASES, namespace)
        found = (str((lease["metadata"].get("annotations") or {}).get(GATEWAY_ANNOTATION, "")) for lease in leases)
        return next(filter(None, found), "")

    return await eventually(told, bool, what="the gateway has an address")
