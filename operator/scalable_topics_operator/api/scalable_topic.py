"""ScalableTopic: a topic whose segments split and merge while it is in use (DESIGN §5, §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.auto_scale_policy import AutoScaleKnobs, SegmentCount
from scalable_topics_operator.api.common import (
    AGE,
    ApiModel,
    Buckets,
    Column,
    CustomResource,
    Definition,
    DeletionPolicy,
    InitialPosition,
    ObjectRef,
    Scale,
    condition_column,
)
from scalable_topics_operator.api.scalable_topic_status import ScalableTopicStatus
from scalable_topics_operator.api.schema_extra import (
    IMMUTABLE,
    LIST_SET,
    SchemaExtra,
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


class TopicAutoScale(AutoScaleKnobs):
    """Knobs for this topic, before those of any policy, and who goes by them.

    Amounts are whole numbers or texts such as 10k or 50Mi; durations are seconds or texts such as 90s or
    1h30m. Values in parentheses apply where no policy sets the knob.
    """

    engine: Literal["Broker", "Operator"] | None = None
    """Who splits and merges by itself on the Native backend: the brokers (if left out) or the operator. On Classic it
    is always the operator."""


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
    bucket_budget: Buckets | None = None
    """Entry buckets the segments share: consumers that can share the topic before it is split (pip-486). If left out,
    as policies say in rebucket.budget; autoScale.rebucket.budget goes before it."""
    subscriptions: Annotated[tuple[Subscription, ...], Field(max_length=256), list_map("name")] = ()
    """Subscriptions every segment has a cursor for."""
    auto_scale: TopicAutoScale | None = None
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
