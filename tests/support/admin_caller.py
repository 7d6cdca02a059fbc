"""A caller of the gateway who may do everything with topics of one namespace."""

from __future__ import annotations

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import GROUP
from tests.support.callers import ROLE_BINDINGS, ROLES, make_caller

_RBAC = "rbac.authorization.k8s.io"


async def make_admin(kube: KubeClient, namespace: str, name: str) -> str:
    """Create a service account with every right to our kinds; answers a token of it for the gateway."""
    token = await make_caller(kube, namespace, name)
    metadata = {"name": name}
    rules = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
    await kube.create(
        ROLES, namespace, {"apiVersion": ROLES.api_version, "kind": "Role", "metadata": metadata, "rules": rules}
    )
    binding = {
        "apiVersion": ROLE_BINDINGS.api_version,
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await kube.create(ROLE_BINDINGS, namespace, binding)
    return token
