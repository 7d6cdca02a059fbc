"""Topic-level grants of segments (R26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scalable_topics_operator.backends.admin.paths import namespace_of
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.settling import Settling


async def topic_grants(admin: PulsarAdmin, topics: Sequence[str]) -> dict[str, frozenset[str]]:
    """Union of what roles are granted on the topics themselves, without what their namespaces grant."""
    union: dict[str, frozenset[str]] = {}
    for namespace in sorted({namespace_of(topic) for topic in topics}):
        grants = await admin.namespaces.topic_grants(namespace)
        for topic in topics:
            for role, actions in grants.get(topic, {}).items():
                union[role] = union.get(role, frozenset()) | actions
    return {role: actions for role, actions in union.items() if actions}


async def ensure_grants(
    admin: PulsarAdmin, topic: str, wanted: Mapping[str, frozenset[str]], settling: Settling
) -> None:
    """Make sure each role has at least the wanted actions on the topic itself, and read them back.

    Raises AccessDenied, TopicMissing, BackendUnavailable.
    """
    if not wanted:
        return
    namespace = namespace_of(topic)
    granted = (await admin.namespaces.topic_grants(namespace)).get(topic, {})
    missing = {role: actions for role, actions in wanted.items() if not actions <= granted.get(role, frozenset())}
    if not missing:
        return
    for role in sorted(missing):
        # A grant replaces the role's earlier actions on the topic.
        await admin.topics.grant(topic, role, missing[role] | granted.get(role, frozenset()))

    async def read() -> Mapping[str, frozenset[str]]:
        return await admin.topics.permissions(topic)

    def complete(found: Mapping[str, frozenset[str]]) -> bool:
        return all(actions <= found.get(role, frozenset()) for role, actions in missing.items())

    await settling.until(f"grants of {', '.join(sorted(missing))} on {topic}", read, complete)
