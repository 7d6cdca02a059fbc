"""Topic-level grants of segments (R26)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

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

    async def ensure(self, topic: str, wanted: Grants, *, exactly: Collection[str] = ()) -> None:
        """Make sure each role has at least the wanted actions on the topic itself, and read them back.

        Roles in `exactly` lose what else they are granted there, without a moment in which they have nothing.

        Raises AccessDenied, TopicMissing, BackendUnavailable.
        """
        if not wanted:
            return
        # Never from an older reading: a topic deleted and made again has lost its grants.
        changes = grants_to_write(await self._of(topic), wanted, exactly)
        if not changes:
            return
        for role, actions in changes.items():
            # A grant replaces the role's earlier actions on the topic.
            await self._admin.topics.grant(topic, role, actions)
        await self._settling.until(
            f"grants of {', '.join(changes)} on {topic}",
            lambda: self._of(topic),
            lambda found: not grants_to_write(found, wanted, exactly),
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


def grants_to_write(granted: Grants, wanted: Grants, exactly: Collection[str] = ()) -> dict[str, frozenset[str]]:
    """The roles, sorted, whose grants are not as wanted, with all the actions they shall have. Pure."""
    changes = {}
    for role, actions in sorted(wanted.items()):
        present = granted.get(role, frozenset())
        target = actions if role in exactly else actions | present
        if target != present:
            changes[role] = target
    return changes
