"""ScalableTopic: a topic whose segments split and merge while it is in use (DESIGN §5, §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.auto_scale_policy import AutoScaleKnobs, SegmentCount
from scalable_topics_operator.api.common import (
    AGE,
    ApiModel,
    Backend,
    Buckets,
    Column,
    Conditions,
    CustomResource,
    Definition,
    DeletionPolicy,
    InitialPosition,
    ObjectRef,
    RangeText,
    RequestRef,
    Scale,
    SegmentId,
    Timestamp,
    condition_column,
)
from scalable_topics_operator.api.schema_extra import (
    ATOMIC_OBJECT,
    IMMUTABLE,
    LIST_ATOMIC,
    LIST_SET,
    PRESERVE_UNKNOWN,
    SchemaExtra,
    SchemaOf,
    list_map,
    rule,
    rules,
)
from scalable_topics_operator.api.topic_name import TopicText

_INT32_MAX = 2**31 - 1

SubscriptionName = Annotated[
    str,
    Field(min_length=1, max_length=255),
    SchemaExtra(
        rules(
            rule(
                "!self.startsWith('__') && !self.startsWith('pulsar.')",
                "names that start with __ or pulsar. are internal to the brokers and are not subscriptions",
            )
        )
    ),
]
Action = Literal["produce", "consume", "functions", "sources", "sinks", "packages"]
MessageRate = Annotated[
    int,
    Field(ge=-1, le=_INT32_MAX),
    SchemaExtra(rules(rule("self != 0", "0 would mean no limit to brokers; use -1 for that"))),
]
ByteRate = Annotated[
    int,
    Field(ge=-1),
    SchemaExtra(rules(rule("self != 0", "0 would mean no limit to brokers; use -1 for that"))),
]


class Segments(ApiModel):
    """How many segments the topic has."""

    initial: Annotated[
        SegmentCount,
        SchemaExtra(rules(rule(IMMUTABLE, "counts at creation only; change segments.desired instead"))),
    ] = 1
    """Segments the topic is created with."""
    desired: SegmentCount | None = None
    """Active segments to keep by hand; while it is set nothing is split or merged automatically (R30).
    This is what `kubectl scale` writes."""


class Subscription(ApiModel):
    """A subscription every segment has a cursor for (R16)."""

    name: SubscriptionName
    """Name of the subscription."""
    initial_position: InitialPosition = "Earliest"
    """Where it starts when it is new."""
    deletion_policy: DeletionPolicy = "Retain"
    """Whether its cursors are deleted when this entry is removed."""


class Permission(ApiModel):
    """What a role may do on the topic (R26)."""

    role: Annotated[str, Field(min_length=1, max_length=255)]
    """The role, as the brokers' authentication names it."""
    actions: Annotated[tuple[Action, ...], Field(min_length=1), LIST_SET]
    """What it may do."""


class PerSegmentPolicies(ApiModel):
    """Policies every segment gets as they are."""

    message_ttl_seconds: Annotated[int, Field(ge=0, le=_INT32_MAX)] | None = Field(
        default=None, alias="messageTTLSeconds"
    )
    """Age in seconds at which messages are acknowledged for every subscription; 0 means never."""
    retention_time_minutes: Annotated[int, Field(ge=-1, le=_INT32_MAX)] | None = None
    """How long acknowledged messages are kept; -1 means for ever."""
    schema_compatibility_strategy: (
        Literal[
            "UNDEFINED",
            "ALWAYS_INCOMPATIBLE",
            "ALWAYS_COMPATIBLE",
            "BACKWARD",
            "FORWARD",
            "FULL",
            "BACKWARD_TRANSITIVE",
            "FORWARD_TRANSITIVE",
            "FULL_TRANSITIVE",
        ]
        | None
    ) = None
    """What a new schema must be compatible with."""


class TotalPolicies(ApiModel):
    """Policies for the topic as a whole; each active segment gets its share."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.backlogQuotaAction) || has(self.backlogQuotaBytes)",
                "backlogQuotaAction needs backlogQuotaBytes",
            ),
            rule(
                "!has(self.backlogQuotaBytes) || !has(self.retentionSizeMegabytes) || "
                "self.retentionSizeMegabytes <= 0 || "
                "self.backlogQuotaBytes / 1048576 < self.retentionSizeMegabytes",
                "backlogQuotaBytes must be smaller than retentionSizeMegabytes, or brokers refuse both",
            ),
        )
    )

    retention_size_megabytes: Annotated[int, Field(ge=-1, le=_INT32_MAX)] | None = None
    """How much of the acknowledged messages is kept; -1 means all."""
    backlog_quota_bytes: Annotated[int, Field(ge=1)] | None = None
    """Backlog at which backlogQuotaAction applies."""
    backlog_quota_action: Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"] | None = (
        None
    )
    """What happens then; producer_request_hold if left out."""
    publish_messages_per_second: MessageRate | None = None
    """Messages that may be published; -1 means no limit."""
    publish_bytes_per_second: ByteRate | None = None
    """Bytes that may be published; -1 means no limit."""
    dispatch_messages_per_second: MessageRate | None = None
    """Messages that may be dispatched; -1 means no limit."""
    dispatch_bytes_per_second: ByteRate | None = None
    """Bytes that may be dispatched; -1 means no limit."""


class Policies(ApiModel):
    """Topic policies (R27). What is left out is left to the namespace and the brokers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.perSegment) || !has(self.perSegment.retentionTimeMinutes) || !has(self.total) || "
                "!has(self.total.retentionSizeMegabytes) || "
                "(self.perSegment.retentionTimeMinutes == 0) == (self.total.retentionSizeMegabytes == 0)",
                "retentionTimeMinutes and retentionSizeMegabytes must both be 0 (nothing is kept) or neither",
            )
        )
    )

    per_segment: PerSegmentPolicies | None = None
    """Policies every segment gets as they are."""
    total: TotalPolicies | None = None
    """Policies for the topic as a whole; each active segment gets its share."""


class MigrateFrom(ApiModel):
    """An existing topic to migrate (pip-475)."""

    topic: TopicText
    """The topic to migrate, partitioned or not."""
    force: bool = False
    """Whether to migrate although clients are connected that do not know scalable topics."""


class ScalableTopicSpec(ApiModel):
    """A topic on a Pulsar cluster and how it is to be kept."""

    topic: Annotated[
        TopicText,
        SchemaExtra(rules(rule(IMMUTABLE, "cannot be changed; create another ScalableTopic"))),
    ]
    """Name of the topic: topic://tenant/namespace/name, persistent://tenant/namespace/name,
    tenant/namespace/name, or a name alone for public/default."""
    connection_ref: ObjectRef
    """The connection to the Pulsar cluster."""
    segments: Segments = Segments()
    """How many segments the topic has."""
    bucket_budget: Annotated[
        Buckets,
        SchemaExtra(rules(rule(IMMUTABLE, "counts at creation only and cannot be changed"))),
    ] = 4
    """Entry buckets the segments share at creation: consumers that can share the topic before it is split
    (pip-486)."""
    subscriptions: Annotated[tuple[Subscription, ...], Field(max_length=256), list_map("name")] = ()
    """Subscriptions every segment has a cursor for."""
    auto_scale: AutoScaleKnobs | None = None
    """Knobs for this topic, before those of any policy."""
    permissions: Annotated[tuple[Permission, ...], Field(max_length=256), list_map("role")] = ()
    """Grants on the topic; those of the namespace apply besides."""
    policies: Policies | None = None
    """Topic policies."""
    deduplication: bool | None = None
    """Whether brokers drop messages that were sent twice; left to the namespace if left out (R15)."""
    properties: Annotated[Mapping[str, Annotated[str, Field(max_length=1024)]], Field(max_length=64)] = {}
    """Properties of the topic, for its users."""
    migrate_from: MigrateFrom | None = None
    """An existing topic to migrate."""
    deletion_policy: DeletionPolicy = "Retain"
    """Whether the topic is deleted together with this object (R31)."""
    paused: bool = False
    """While true the operator changes nothing of the topic."""
    adopt: bool = False
    """Whether to take over a topic that another installation or object has claimed (R1)."""


class LayoutSegment(ApiModel):
    """A segment in the record."""

    model_config = ConfigDict(json_schema_extra=PRESERVE_UNKNOWN)

    id: SegmentId
    """Unique within the topic for ever."""
    range: str
    """Part of the ring, both ends included, such as 0000-7fff."""
    state: str
    """ACTIVE or SEALED."""
    parents: tuple[str, ...] = ()
    """Segments it replaced, as ids and ranges of ids such as 3-7."""
    created_at_epoch: int = 0
    """Epoch that made it."""
    sealed_at_epoch: int = 0
    """Epoch that sealed it; 0 while active."""
    created_at_ms: int = 0
    """When it was made, in milliseconds since 1970."""
    sealed_at_ms: int = 0
    """When it was sealed, in milliseconds since 1970; 0 while active."""
    buckets: int = 1
    """Its entry buckets."""
    merge_depth: int = 0
    """Merges in its ancestry."""
    created_by: str = "Create"
    """Operation that made it."""
    topic: str | None = None
    """Its topic, where the name is not derived."""
    sealed_position: str | None = None
    """Its last entry, once the seal is verified."""


class LayoutRecord(ApiModel):
    """The layout (R29): the record of the topic's segments, written as a whole."""

    model_config = ConfigDict(json_schema_extra={**PRESERVE_UNKNOWN, **ATOMIC_OBJECT})

    version: int = 1
    """Version of this form."""
    epoch: int = 0
    """Raised by one with every change."""
    next_segment_id: int = 0
    """First id never used."""
    segments: Annotated[tuple[LayoutSegment, ...], LIST_ATOMIC] = ()
    """Active segments and the sealed ones that are still kept."""


class SegmentCounts(ApiModel):
    """How many segments the topic has now."""

    active: int = 0
    """Segments that take messages."""
    sealed: int = 0
    """Segments that are still read."""


class PlannedChild(ApiModel):
    """A segment an operation is making."""

    id: SegmentId
    """Its id, chosen when the journal was opened."""
    range: RangeText
    """Part of the ring, both ends included."""
    buckets: Buckets
    """Its entry buckets."""
    merge_depth: int = 0
    """Merges in its ancestry."""


class OperationStatus(ApiModel):
    """The journal: the operation in progress (R8, R9)."""

    model_config = ConfigDict(json_schema_extra=ATOMIC_OBJECT)

    id: str
    """Unique for ever."""
    kind: Literal["Create", "Split", "Merge", "Rebucket", "Migrate", "Prune", "Delete"]
    """What it does."""
    step: str
    """The step whose side effects may have begun."""
    term: int
    """Leadership term under which it was opened (R5)."""
    parents: tuple[int, ...] = ()
    """Segments it seals."""
    children: tuple[PlannedChild, ...] = ()
    """Segments it makes."""
    subscriptions: tuple[str, ...] = ()
    """Cursors every child gets."""
    next_segment_id: int = 0
    """First id not reserved once the journal was opened."""
    started_at: Timestamp
    """When it was opened."""
    request: RequestRef
    """Who asked."""
    sealed_positions: Mapping[str, str] = {}
    """Last entry of each parent, by segment id, once its seal is verified."""
    message: str | None = None
    """Why it is being rolled back, or what it waits for."""


class DeletingSegment(ApiModel):
    """A segment that left the layout and whose topic is still to be deleted (R19)."""

    id: SegmentId
    """Its id."""
    topic: str
    """Its topic."""
    since_ms: int
    """When it left the layout, in milliseconds since 1970."""
    force_after_ms: int | None = None
    """When it is deleted although clients are attached, in milliseconds since 1970."""


class SubscriptionStatus(ApiModel):
    """A subscription as far as its cursors are made, kept or being deleted."""

    name: str
    """Name of the subscription."""
    phase: Literal["Active", "Creating", "Deleting", "CursorLost"]
    """CursorLost: a cursor that was made is missing on the broker (R17)."""
    initial_position: InitialPosition = "Earliest"
    """Where it started."""
    deletion_policy: DeletionPolicy = "Retain"
    """Whether its cursors are deleted when the spec no longer names it."""


class ManagedPermission(ApiModel):
    """A grant the operator made, to be revoked when the spec no longer has it (hazard C7)."""

    role: str
    """The role."""
    actions: tuple[str, ...] = ()
    """What it may do."""


class ActionStatus(ApiModel):
    """A finished operation."""

    id: str
    """The operation's id."""
    kind: str
    """What it did."""
    at: Timestamp
    """When it ended."""
    epoch: int
    """Epoch of the layout afterwards."""
    parents: tuple[int, ...] = ()
    """Segments it sealed."""
    children: tuple[int, ...] = ()
    """Segments it made."""
    result: Literal["Succeeded", "Failed", "RolledBack"]
    """How it ended."""
    message: str | None = None
    """Why."""
    request: RequestRef
    """Who asked."""


class Report(ApiModel):
    """Something that needs a person's eye and stops nothing."""

    reason: str
    """What, in one CamelCase word."""
    message: str
    """What, for people."""


class ScalableTopicStatus(ApiModel):
    """The record of the topic, and what became of its spec (DESIGN §6, R29)."""

    observed_generation: int | None = None
    """metadata.generation this status was found for."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled, LoadFresh, AutoScale, Migrated."""
    topic: str | None = None
    """Full name of the topic."""
    backend: Backend | None = None
    """Who owns its layout; chosen at creation (R2)."""
    cluster_id: str | None = None
    """The Pulsar cluster it is on."""
    incarnation: str | None = None
    """Epochs compare within one incarnation only (R12)."""
    layout: Annotated[Mapping[str, Any], SchemaOf(LayoutRecord)] | None = None
    """The record of the topic's segments."""
    segments: SegmentCounts | None = None
    """How many segments the topic has now."""
    selector: str | None = None
    """Labels for the scale subresource; no pod has them (R30)."""
    operation: OperationStatus | None = None
    """The operation in progress."""
    deleting: Annotated[tuple[DeletingSegment, ...], LIST_ATOMIC] = ()
    """Segments that left the layout and whose topics are still to be deleted."""
    subscriptions: Annotated[tuple[SubscriptionStatus, ...], list_map("name")] = ()
    """Subscriptions whose cursors the operator looks after."""
    managed_policies: Annotated[tuple[str, ...], LIST_ATOMIC] = ()
    """Topic policies the operator has set, to be removed when the spec no longer has them."""
    managed_permissions: Annotated[tuple[ManagedPermission, ...], LIST_ATOMIC] = ()
    """Grants the operator has made, to be revoked when the spec no longer has them."""
    actions: Annotated[tuple[ActionStatus, ...], LIST_ATOMIC] = ()
    """The last 20 operations, oldest first."""
    last_action: str | None = None
    """The last operation in a few words."""
    reports: Annotated[tuple[Report, ...], LIST_ATOMIC] = ()
    """What needs a person's eye and stops nothing."""


class ScalableTopic(CustomResource):
    """A topic made of segments that split and merge while producers and consumers keep running."""

    definition: ClassVar[Definition] = Definition(
        plural="scalabletopics",
        short_name="stopic",
        columns=(
            Column("Topic", ".spec.topic"),
            Column("Active", ".status.segments.active", "integer"),
            Column("Epoch", ".status.layout.epoch", "integer"),
            Column("Backend", ".status.backend"),
            condition_column("Ready", "Ready", "status"),
            condition_column("Reason", "Ready", "reason"),
            Column("Last Action", ".status.lastAction"),
            Column("Connection", ".spec.connectionRef.name", priority=1),
            Column("Sealed", ".status.segments.sealed", "integer", priority=1),
            condition_column("Message", "Ready", "message", priority=1),
            AGE,
        ),
        scale=Scale(".spec.segments.desired", ".status.segments.active", ".status.selector"),
    )

    kind: Literal["ScalableTopic"] = "ScalableTopic"
    spec: ScalableTopicSpec
    status: ScalableTopicStatus = ScalableTopicStatus()
