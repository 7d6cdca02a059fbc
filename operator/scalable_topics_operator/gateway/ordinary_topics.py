"""Topics that are not scalable yet, as the gateway meets them (pip-475, R32): looked for, never made."""

from __future__ import annotations

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.gateway.brokers import Brokers, answering
from scalable_topics_operator.gateway.common_parameters import CONNECTION
from scalable_topics_operator.gateway.mappings import Mappings
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Call, RestAdmission
from scalable_topics_operator.gateway.topic_directory import Unfound
from scalable_topics_operator.operations.protocols import NameState


class OrdinaryTopics:
    """Looks for ordinary topics.

    Args:
        admission: asks for rights.
        mappings: which connections have the topics of a Pulsar namespace.
        brokers: of the connections.
    """

    def __init__(self, admission: RestAdmission, mappings: Mappings, brokers: Brokers) -> None:
        self._admission = admission
        self._mappings = mappings
        self._brokers = brokers

    async def refuse_undeclared(self, call: Call, unfound: Unfound) -> None:
        """Raises Refusal: 412 where no object declares a call's topic and it is an ordinary one.

        Who lacks the call's rights where its object would be is told what everybody is told: nothing.
        """
        mappings = self._mappings.all_of(call.pulsar_namespace, call.values.get(CONNECTION))
        if unfound.status != 404 or len(mappings) != 1:
            return
        (mapping,) = mappings
        for right in call.route.rights:
            if not await self._admission.allows(call, right, mapping.namespace):
                return
        try:
            name = await self._read(call.topic, mapping.connection)
        except Refusal:
            return
        _refuse(call.topic, name)

    async def refuse(self, topic: TopicName, connection: ObjectKey) -> None:
        """Raises Refusal: 412 where a topic that has no layout is an ordinary one; 409, 503."""
        _refuse(topic, await self._read(topic, connection))

    async def _read(self, topic: TopicName, connection: ObjectKey) -> NameState:
        backend = self._brokers.of(connection)
        async with answering():
            return await backend.read_name(topic)


def _refuse(topic: TopicName, name: NameState) -> None:
    if not name.exists or name.claim is not None:
        return
    shape = f"a partitioned topic ({name.partitions} partitions)" if name.partitions else "an ordinary topic"
    raise Refusal(
        412,
        f"{topic.persistent} is {shape}, which has no segments: migrate it first (POST .../migrate, stopics migrate, "
        "or a SegmentOperation of type Migrate)",
    )
