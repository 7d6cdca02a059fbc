"""The token by which replicas of one installation know each other, kept in a Secret of the operator's namespace."""

from __future__ import annotations

import base64
import binascii
import secrets

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeInvalid, KubeNotFound
from scalable_topics_operator.cluster.resources import SECRETS

SECRET_NAME = "scalable-topics-peers"
_KEY = "token"
_TOKEN_BYTES = 32


async def find_peer_token(kube: KubeClient, namespace: str) -> str:
    """Read the token, making it at the first start. Raises KubeError."""
    try:
        record = await kube.get(SECRETS, namespace, SECRET_NAME)
    except KubeNotFound:
        record = await _create(kube, namespace)
    try:
        token = base64.b64decode((record.get("data") or {}).get(_KEY, ""), validate=True).decode("ascii").strip()
    except (binascii.Error, UnicodeDecodeError):
        token = ""
    # What somebody shortened by hand could be guessed.
    if len(token) < _TOKEN_BYTES:
        raise KubeInvalid(
            f"get secrets {namespace}/{SECRET_NAME}",
            0,
            f"its key `{_KEY}` holds no token of {_TOKEN_BYTES} characters or more; delete the Secret and start all "
            "replicas again",
        )
    return token


async def _create(kube: KubeClient, namespace: str) -> Body:
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    body: Body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET_NAME},
        "type": "Opaque",
        "data": {_KEY: base64.b64encode(token.encode()).decode()},
    }
    try:
        return await kube.create(SECRETS, namespace, body)
    except KubeConflict:
        return await kube.get(SECRETS, namespace, SECRET_NAME)
