"""Where REST makes objects for topics of a Pulsar namespace: as their connections say (R3, R32)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from scalable_topics.layout import TopicName
from scalable_topics_operator.api.connection import Allow, ScalableTopicConnection
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.controllers.connection_access import why_not_allowed
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway.refusal import Refusal


@dataclass(frozen=True, slots=True)
class NamespaceMapping:
    """A Pulsar namespace that a connection maps to a Kubernetes one.

    Args:
        connection: the connection.
        allow: who may use it for what.
        pulsar_namespace: `tenant/namespace`.
        namespace: the Kubernetes namespace.
    """

    connection: ObjectKey
    allow: Allow
    pulsar_namespace: str
    namespace: str

    def require_allowed(self, namespace: str, topic: TopicName, operation: str | None = None) -> None:
        """Raises Refusal: 403 where the connection may not be used for a topic from a Kubernetes namespace (R3)."""
        why = why_not_allowed(
            self.allow,
            connection_namespace=self.connection.namespace,
            topic_namespace=namespace,
            topic=topic,
            operation=operation,
        )
        if why:
            raise Refusal(403, f"connection {self.connection.namespace}/{self.connection.name}: {why}")


class Mappings:
    """Finds mappings.

    Args:
        cache: the objects.
    """

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache

    def all_of(self, pulsar_namespace: str, connection: str | None = None) -> list[NamespaceMapping]:
        """The mappings of a Pulsar namespace, of one connection (`namespace/name`) if it is given."""
        return [
            mapping
            for mapping in self._all(pulsar_namespace)
            if connection in (None, f"{mapping.connection.namespace}/{mapping.connection.name}")
        ]

    def one_of(self, pulsar_namespace: str, connection: str | None) -> NamespaceMapping | None:
        """The mapping of a Pulsar namespace; None if there is none. Raises Refusal: 400 if there are several."""
        found = self.all_of(pulsar_namespace, connection)
        if len(found) > 1:
            raise Refusal(400, f"several connections map {pulsar_namespace}; say which with ?connection=namespace/name")
        return found[0] if found else None

    def _all(self, pulsar_namespace: str) -> Iterator[NamespaceMapping]:
        for key, body in self._cache.all(CONNECTIONS):
            try:
                spec = ScalableTopicConnection.model_validate(body).spec
            except ValidationError:
                # Its own conditions say so.
                continue
            for entry in spec.pulsar_namespace_mappings:
                if entry.pulsar_namespace == pulsar_namespace:
                    yield NamespaceMapping(key, spec.allow, pulsar_namespace, entry.namespace)
