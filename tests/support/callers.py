"""Callers of the gateway: service accounts with rights to topics, and their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.resources import GROUP
from scalable_topics_operator.cluster.reviews import SERVICE_ACCOUNTS, request_token

_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")
_TOKEN_SECONDS = 600
OUR_KINDS = ("scalabletopics", "scalabletopicsubscriptions", "segmentoperations", "segmentautoscalepolicies")


async def make_caller(
    kube: KubeClient,
    namespace: str,
    name: str,
    verbs: Sequence[str] = (),
    topics: Sequence[str] = (),
    *,
    resources: Sequence[str] = ("scalabletopics",),
) -> str:
    """Create a service account that may do `verbs` with these objects of some kinds, all if none are named; answers a
    token of it for the gateway. Its Role and RoleBinding carry its name.
    """
    await kube.create(SERVICE_ACCOUNTS, namespace, _object(SERVICE_ACCOUNTS, name))
    if verbs:
        rule: dict[str, Any] = {"apiGroups": [GROUP], "resources": list(resources), "verbs": list(verbs)}
        if topics:
            rule["resourceNames"] = list(topics)
        await kube.create(ROLES, namespace, {**_object(ROLES, name), "rules": [rule]})
        binding = {
            **_object(ROLE_BINDINGS, name),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        await kube.create(ROLE_BINDINGS, namespace, binding)
    return await request_token(kube, namespace, name, _TOKEN_SECONDS)


async def renew_token(kube: KubeClient, namespace: str, name: str, file: Path, seconds: int) -> None:
    """Replace a file by a new token of a caller for the gateway, as Kubernetes does with a projected one.

    Args:
        kube: an administrator's client.
        namespace: of the service account.
        name: of the service account.
        file: that holds its token; whoever reads it meanwhile reads the old one or the new one.
        seconds: how long the new one is good.
    """
    new = file.with_suffix(".new")
    new.write_text(await request_token(kube, namespace, name, seconds))
    new.replace(file)


async def token_for(kube: KubeClient, namespace: str, account: str, *audiences: str) -> str:
    """A token of a service account; for the API server if no audiences are named."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": audiences}}
    answer = await kube.create_subresource(SERVICE_ACCOUNTS, namespace, account, "token", request)
    return str(answer["status"]["token"])


def _object(resource: Resource, name: str) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
