"""ScalableTopicSubscription: who reads what of an ordered subscription (DESIGN §9, R21, R22)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.common import (
    AGE,
    ApiModel,
    Column,
    Conditions,
    CustomResource,
    Definition,
    InitialPosition,
    ObjectName,
    SegmentId,
    Timestamp,
    condition_column,
)
from scalable_topics_operator.api.scalable_topic import SubscriptionName
from scalable_topics_operator.api.schema_extra import IMMUTABLE, LIST_ATOMIC, list_map, rule, rules


class ScalableTopicSubscriptionSpec(ApiModel):
    """An ordered subscription of a topic; made by the operator and not changed afterwards."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(IMMUTABLE, "a ScalableTopicSubscription cannot be changed; create another one"),
            rule(
                "self.type == 'Checkpoint' ? has(self.group) : !has(self.group)",
                "group is needed when type is Checkpoint and not allowed otherwise",
            ),
        )
    )

    scalable_topic: ObjectName
    """The ScalableTopic, in this namespace."""
    subscription: SubscriptionName
    """Name of the subscription."""
    type: Literal["Stream", "Checkpoint"]
    """Stream: positions are acknowledgements. Checkpoint: the application keeps them."""
    group: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """Checkpoint group, which owns one durable cursor a segment (R22)."""
    initial_position: InitialPosition = "Earliest"
    """Where it starts when it is new (R18)."""


class AssignmentVersion(ApiModel):
    """Order of assignments: term first, then epoch, then counter."""

    term: int
    """Leadership term."""
    epoch: int
    """Epoch of the layout."""
    counter: int
    """Counts assignments within both."""


class SegmentAssignment(ApiModel):
    """A segment a consumer reads, or some of its buckets."""

    segment: SegmentId
    """The segment."""
    buckets: tuple[int, ...] = ()
    """Entry buckets; empty means the whole segment."""


class ConsumerRegistration(ApiModel):
    """A registered consumer; it outlives the consumer's connection by the grace period."""

    name: str
    """Name of the consumer, unique within the subscription."""
    incarnation: str
    """Id of its session; only the current one can leave."""
    registered_at: Timestamp
    """When it registered."""
    shares_segments: bool = False
    """It can read some entry buckets of a segment; one that cannot gets whole segments only."""
    assignments: Annotated[tuple[SegmentAssignment, ...], LIST_ATOMIC] = ()
    """What it reads."""
    releasing: Annotated[tuple[SegmentId, ...], LIST_ATOMIC] = ()
    """Segments that were taken from it and that it has not let go of yet: nobody else may read them until then."""
    releasing_buckets: Annotated[tuple[SegmentAssignment, ...], LIST_ATOMIC] = ()
    """Entry buckets of which the same is true."""


class ScalableTopicSubscriptionStatus(ApiModel):
    """Registrations, assignments and what is drained, committed before they are told to anyone (R21)."""

    observed_generation: int | None = None
    """metadata.generation this status was found for."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled."""
    phase: Literal["Pending", "Active", "Seeking", "Deleting", "CursorLost"] | None = None
    """Where it stands."""
    term: int | None = None
    """Leadership term of the coordinator; a lower one may not write."""
    version: AssignmentVersion | None = None
    """Version of the assignment."""
    consumers: Annotated[tuple[ConsumerRegistration, ...], list_map("name")] = ()
    """Registered consumers."""
    drained: Annotated[tuple[int, ...], LIST_ATOMIC] = ()
    """Sealed segments that are read to their end (R17)."""


class ScalableTopicSubscription(CustomResource):
    """An ordered subscription of a scalable topic and its consumers."""

    definition: ClassVar[Definition] = Definition(
        plural="scalabletopicsubscriptions",
        short_name="stsub",
        columns=(
            Column("Topic", ".spec.scalableTopic"),
            Column("Subscription", ".spec.subscription"),
            Column("Type", ".spec.type"),
            Column("Phase", ".status.phase"),
            condition_column("Ready", "Ready", "status"),
            Column("Group", ".spec.group", priority=1),
            Column("Term", ".status.term", "integer", priority=1),
            condition_column("Reason", "Ready", "reason", priority=1),
            AGE,
        ),
        selectable_fields=(".spec.scalableTopic",),
    )

    kind: Literal["ScalableTopicSubscription"] = "ScalableTopicSubscription"
    spec: ScalableTopicSubscriptionSpec
    status: ScalableTopicSubscriptionStatus = ScalableTopicSubscriptionStatus()
