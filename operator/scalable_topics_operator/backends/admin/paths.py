"""Paths of the Pulsar admin API; every part of a name is quoted here and nowhere else. Pure."""

from __future__ import annotations

from urllib.parse import quote

from scalable_topics.layout import TopicName
from scalable_topics_operator.operations.errors import BackendRefused

_PERSISTENT, _SEGMENT = "persistent://", "segment://"


def segment_of_path(part: str) -> str:
    """Quote one part of a path.

    Raises BackendRefused for `.`, `..` and the empty text, which servers fold away whatever their quoting.
    """
    if part in ("", ".", ".."):
        raise BackendRefused(f"{part!r} cannot be part of a name: the admin API cannot address it")
    return quote(part, safe="")


def namespace_path(namespace: str, *rest: str) -> str:
    """`/admin/v2/namespaces/{tenant}/{namespace}/...` of a `tenant/namespace`."""
    return "/admin/v2/namespaces/" + _joined(_namespace_parts(namespace) + rest)


def topics_path(namespace: str, *rest: str) -> str:
    """`/admin/v2/persistent/{tenant}/{namespace}/...` of a `tenant/namespace`."""
    return "/admin/v2/persistent/" + _joined(_namespace_parts(namespace) + rest)


def topic_path(topic: str, *rest: str) -> str:
    """`/admin/v2/persistent/{tenant}/{namespace}/{topic}/...` of a full `persistent://` name."""
    return "/admin/v2/persistent/" + _joined(topic_parts(topic) + rest)


def subscription_path(topic: str, subscription: str, *rest: str) -> str:
    """`/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/...`.

    Brokers decode the subscription twice (measured: otherwise `%` fails and `+` becomes a space).
    """
    parts = (*topic_parts(topic), "subscription", segment_of_path(subscription), *rest)
    return "/admin/v2/persistent/" + _joined(parts)


def scalable_path(topic: TopicName, *rest: str) -> str:
    """`/admin/v2/scalable/{tenant}/{namespace}/{topic}/...` of a scalable topic of the brokers."""
    return "/admin/v2/scalable/" + _joined((topic.tenant, topic.namespace, topic.local, *rest))


def segment_path(topic: TopicName, descriptor: str) -> str:
    """`/admin/v2/segments/{tenant}/{namespace}/{topic}/{descriptor}` of one of its segments."""
    return "/admin/v2/segments/" + _joined((topic.tenant, topic.namespace, topic.local, descriptor))


def produce_path(topic: str) -> str:
    """`/topics/persistent/{tenant}/{namespace}/{topic}` of a full `persistent://` name: the REST producer."""
    return "/topics/persistent/" + _joined(topic_parts(topic))


def lookup_path(topic: str) -> str:
    """`/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}` of a full `persistent://` or `segment://` name.

    The local name of a segment, `topic/descriptor`, is one part of the path.
    """
    domain = "segment" if topic.startswith(_SEGMENT) else "persistent"
    return f"/lookup/v2/topic/{domain}/" + _joined(topic_parts(topic, f"{domain}://"))


def schema_path(topic: str, *rest: str) -> str:
    """`/admin/v2/schemas/{tenant}/{namespace}/{topic}/...` of a full `persistent://` name.

    Brokers decode the topic twice in these calls (measured: the schema of `a+b` would go to `a b`).
    """
    tenant, namespace, local = topic_parts(topic)
    return "/admin/v2/schemas/" + _joined((tenant, namespace, segment_of_path(local), *rest))


def topic_parts(topic: str, domain: str = _PERSISTENT) -> tuple[str, str, str]:
    """Tenant, namespace and local name of a name in a domain. Raises BackendRefused for other names."""
    parts = topic.removeprefix(domain).split("/", 2)
    if not topic.startswith(domain) or len(parts) != 3:
        raise BackendRefused(f"{topic!r} is not a name like {domain}tenant/namespace/topic")
    return parts[0], parts[1], parts[2]


def namespace_of(topic: str) -> str:
    """`tenant/namespace` of a full `persistent://` name."""
    tenant, namespace, _ = topic_parts(topic)
    return f"{tenant}/{namespace}"


def _namespace_parts(namespace: str) -> tuple[str, ...]:
    parts = namespace.split("/")
    if len(parts) != 2:
        raise BackendRefused(f"{namespace!r} is not a name like tenant/namespace")
    return tuple(parts)


def _joined(parts: tuple[str, ...]) -> str:
    return "/".join(segment_of_path(part) for part in parts)
