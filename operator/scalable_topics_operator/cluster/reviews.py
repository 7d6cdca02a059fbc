"""What the Kubernetes API server says of a caller's token: whose it is, and what that one may (R33)."""

from __future__ import annotations

from scalable_topics_operator.cluster.caller import Caller
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource

AUDIENCE = "scalable-topics"
"""For whom callers' tokens are made: one made for the API server is no good here, and the other way round."""

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


async def review_token(kube: KubeClient, token: str) -> Caller | None:
    """Whose token it is; None if it is nobody's or was not made for `AUDIENCE`. Raises KubeError."""
    body = _review(TOKEN_REVIEWS, {"token": token, "audiences": [AUDIENCE]})
    status = (await kube.create(TOKEN_REVIEWS, None, body)).get("status") or {}
    user = status.get("user") or {}
    # An authenticator that knows no audiences names none: its tokens are meant for the API server.
    if not status.get("authenticated") or AUDIENCE not in (status.get("audiences") or ()) or not user.get("username"):
        return None
    return Caller(user["username"], user.get("uid", ""), tuple(user.get("groups") or ()), user.get("extra") or {})


async def review_access(
    kube: KubeClient, caller: Caller, verb: str, resource: Resource, namespace: str, name: str
) -> bool:
    """Whether a caller may do something with one object, or with any of a namespace if no name is given.

    Raises KubeError.
    """
    spec: Body = {
        "user": caller.name,
        "uid": caller.uid,
        "groups": list(caller.groups),
        "extra": dict(caller.extra),
        "resourceAttributes": {
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "namespace": namespace,
            "name": name,
            "verb": verb,
        },
    }
    status = (await kube.create(ACCESS_REVIEWS, None, _review(ACCESS_REVIEWS, spec))).get("status") or {}
    return status.get("allowed") is True and status.get("denied") is not True


async def request_token(kube: KubeClient, namespace: str, service_account: str, lifetime_seconds: int) -> str:
    """A token of a service account for `AUDIENCE`. Raises KubeError."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [AUDIENCE], "expirationSeconds": lifetime_seconds},
    }
    answer = await kube.create_subresource(SERVICE_ACCOUNTS, namespace, service_account, "token", body)
    return str(answer["status"]["token"])


def _review(resource: Resource, spec: Body) -> Body:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
