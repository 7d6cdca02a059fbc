"""Topic-level grants of segments (R26)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scalable_topics_operator.backends.admin.paths import namespace_of
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.backends.classic.shared_reading import SharedReading
from scalable_topics_operator.operations.errors import TopicMissing

Grants = Mapping[str, frozenset[str]]
"""Role -> actions."""


class GrantKeeper:
    """Reads and writes what roles are granted on topics themselves, apart from what their namespaces grant.

    All grants of a namespace come in one document, which topics looked at together share.

    Args:
        admin: the cluster.
        settling: bound of read-backs.
    """

    def __init__(self, admin: PulsarAdmin, settling: Settling) -> None:
        self._admin = admin
        self._settling = settling
        self._documents: SharedReading[Mapping[str, Grants]] = SharedReading(admin.namespaces.topic_grants)

    async def union(self, topics: Sequence[str]) -> dict[str, frozenset[str]]:
        """Union of the grants on the topics themselves."""
        documents = {
            namespace: await self._documents.get(namespace)
            for namespace in sorted({namespace_of(topic) for topic in topics})
        }
        union: dict[str, frozenset[str]] = {}
        for topic in topics:
            for role, actions in documents[namespace_of(topic)].get(topic, {}).items():
                union[role] = union.get(role, frozenset()) | actions
        return {role: actions for role, actions in union.items() if actions}

    async def ensure(self, topic: str, wanted: Grants) -> None:
        """Make sure each role has at least the wanted actions on the topic itself, and read them back.

        Raises AccessDenied, TopicMissing, BackendUnavailable.
        """
        if not wanted:
            return
        # Never from an older reading: a topic deleted and made again has lost its grants.
        granted = await self._of(topic)
        missing = missing_grants(granted, wanted)
        if not missing:
            return
        for role, actions in missing.items():
            # A grant replaces the role's earlier actions on the topic.
            await self._admin.topics.grant(topic, role, actions | granted.get(role, frozenset()))
        await self._settling.until(
            f"grants of {', '.join(missing)} on {topic}",
            lambda: self._of(topic),
            lambda found: not missing_grants(found, missing),
        )

    async def revoke(self, topic: str, roles: Iterable[str]) -> None:
        """Take away what the roles are granted on the topic itself, and read it back; quiet if it is nothing."""
        unwanted = frozenset(roles)
        present = sorted(unwanted & (await self._of(topic)).keys())
        if not present:
            return
        try:
            for role in present:
                await self._admin.topics.revoke(topic, role)
        except TopicMissing:
            return
        await self._settling.until(
            f"revocation of {', '.join(present)} on {topic}",
            lambda: self._of(topic),
            unwanted.isdisjoint,
        )

    async def _of(self, topic: str) -> Grants:
        document = await self._documents.get(namespace_of(topic))
        return document.get(topic, {})


def missing_grants(granted: Grants, wanted: Grants) -> dict[str, frozenset[str]]:
    """The roles, sorted, that lack some wanted action, with all the actions wanted for them. Pure."""
    return {role: actions for role, actions in sorted(wanted.items()) if not actions <= granted.get(role, frozenset())}
