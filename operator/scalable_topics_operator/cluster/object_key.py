"""Names of objects, whatever is known of them."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.resources import CONNECTIONS


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Names one object of a kind."""

    plural: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.plural} {self.namespace}/{self.name}"


def key_of(resource: Resource, body: Body) -> ObjectKey:
    """The key of an object."""
    metadata = body["metadata"]
    return ObjectKey(resource.plural, metadata.get("namespace", ""), metadata["name"])


def connection_of(body: Body) -> ObjectKey:
    """The key of the connection a ScalableTopic names."""
    reference = body["spec"]["connectionRef"]
    return ObjectKey(CONNECTIONS.plural, reference.get("namespace") or body["metadata"]["namespace"], reference["name"])


def connection_text(body: Body) -> str:
    """The connection a ScalableTopic names, as `namespace/name`."""
    connection = connection_of(body)
    return f"{connection.namespace}/{connection.name}"
