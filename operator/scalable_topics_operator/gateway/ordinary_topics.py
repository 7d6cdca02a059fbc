"""Topics that are not scalable yet, as the gateway meets them (pip-475, R32): looked for, never made."""

from __future__ import annotations

from collections.abc import Iterable

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.access import Access, pulsar_token
from scalable_topics_operator.gateway.brokers import Brokers, answering
from scalable_topics_operator.gateway.mappings import Mappings, NamespaceMapping
from scalable_topics_operator.gateway.object_names import object_name
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.route import Right
from scalable_topics_operator.operations.errors import NamespaceMissing
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.protocols import NameState

MIGRATE_FIRST = "migrate it first (POST .../migrate, stopics migrate, or a SegmentOperation of type Migrate)"


class OrdinaryTopics:
    """Looks for ordinary topics.

    Args:
        access: asks for rights.
        mappings: which connections have the topics of a Pulsar namespace.
        brokers: of the connections.
    """

    def __init__(self, access: Access, mappings: Mappings, brokers: Brokers) -> None:
        self._access = access
        self._mappings = mappings
        self._brokers = brokers

    def mapping_of(self, topic: TopicName, connection: str | None) -> NamespaceMapping | None:
        """Where the object of a topic would be that nothing declares; None where nothing, or more than one, says so.

        Args:
            topic: its name.
            connection: `namespace/name` of its connection, if it was said.
        """
        found = self._mappings.all_of(topic.pulsar_namespace, connection)
        return found[0] if len(found) == 1 else None

    async def describe_undeclared(
        self, topic: TopicName, connection: str | None, authorization: str | None, rights: Iterable[Right]
    ) -> str:
        """What a topic is that no object declares, in words; empty unless it is an ordinary one.

        Who lacks one of the rights where its object would be is told what everybody is told: nothing. Nor is anybody
        while brokers do not answer.
        """
        mapping = self.mapping_of(topic, connection)
        if mapping is None or pulsar_token(authorization) is not None:
            return ""
        for right in rights:
            name = object_name(topic.local) if right.resource == TOPICS else ""
            if not await self._access.allows(
                authorization, right.verb, ObjectKey(right.resource.plural, mapping.namespace, name)
            ):
                return ""
        try:
            return await self.describe(topic, mapping.connection)
        except Refusal:
            return ""

    async def describe(self, topic: TopicName, connection: ObjectKey) -> str:
        """What a topic without a layout is, in words; empty unless it is an ordinary one. Raises Refusal: 409, 503."""
        name = await self.read(topic, connection)
        if not is_ordinary(name):
            return ""
        shape = f"a partitioned topic ({name.partitions} partitions)" if name.partitions else "an ordinary topic"
        return f"{topic.persistent} is {shape}, which has no segments: {MIGRATE_FIRST}"

    async def read(self, topic: TopicName, connection: ObjectKey) -> NameState:
        """What exists under a topic's plain name. Raises Refusal: 409, 503."""
        backend = self._brokers.of(connection)
        async with answering():
            try:
                return await backend.read_name(topic)
            except NamespaceMissing:
                return NameState(exists=False)

    async def survey(self, topic: TopicName, connection: ObjectKey) -> LegacySurvey | None:
        """Everything about an ordinary topic; None if it is none. Raises Refusal: 409, 503."""
        if not is_ordinary(await self.read(topic, connection)):
            return None
        async with answering():
            return await self._brokers.of(connection).survey(topic)


def is_ordinary(name: NameState) -> bool:
    """Whether what exists under a name is a topic that no operator has claimed."""
    return name.exists and name.claim is None
