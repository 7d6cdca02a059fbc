"""Who may use a connection for what (R3). Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

from scalable_topics.layout import TopicName
from scalable_topics_operator.api.connection import Allow


def why_not_allowed(
    allow: Allow,
    *,
    connection_namespace: str,
    topic_namespace: str,
    topic: TopicName,
    operation: str | None = None,
) -> str:
    """What forbids the use of a connection, in words; empty if nothing does.

    Args:
        allow: the connection's `spec.allow`.
        connection_namespace: Kubernetes namespace of the connection.
        topic_namespace: Kubernetes namespace of the object that wants to use it.
        topic: the Pulsar topic it is about.
        operation: `Adopt`, `Migrate` or `Delete`, which other namespaces need apart; None for all else.
    """
    own = topic_namespace == connection_namespace
    if not own and not any(fnmatchcase(topic_namespace, pattern) for pattern in allow.namespaces):
        return (
            f"namespace {topic_namespace} may not use this connection; add it to the connection's spec.allow.namespaces"
        )
    if allow.pulsar_namespaces and not any(
        fnmatchcase(topic.pulsar_namespace, pattern) for pattern in allow.pulsar_namespaces
    ):
        return (
            f"the connection may not be used for Pulsar namespace {topic.pulsar_namespace}; its "
            f"spec.allow.pulsarNamespaces has {', '.join(allow.pulsar_namespaces)}"
        )
    if operation is not None and not own and operation not in allow.operations:
        return (
            f"namespace {topic_namespace} may not {operation.lower()} through this connection; add {operation} "
            "to the connection's spec.allow.operations"
        )
    return ""
