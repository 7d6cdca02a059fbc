"""SegmentAutoScalePolicy: when segments split, merge and get other buckets (pip-483, pip-486, R36, R37)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.common import (
    AGE,
    ApiModel,
    Buckets,
    Column,
    Conditions,
    CustomResource,
    Definition,
    LocalObjectRef,
    PulsarNamespace,
    condition_column,
)
from scalable_topics_operator.api.quantities import Duration, PositiveQuantity, Quantity
from scalable_topics_operator.api.schema_extra import LIST_ATOMIC, rule, rules

_METRICS = ("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut")

SegmentCount = Annotated[int, Field(ge=1, le=256)]


def _gap(metric: str) -> dict[str, str]:
    return rule(
        f"!has(self.split) || !has(self.split.{metric}) || !has(self.merge) || !has(self.merge.{metric}) || "
        f"quantity(string(self.merge.{metric})).isLessThan(quantity(string(self.split.{metric})))",
        f"merge.{metric} must be lower than split.{metric}, or merged segments would split again",
    )


class SplitKnobs(ApiModel):
    """When a segment is split. Rates are per segment and second; reaching more than one of them is enough."""

    cooldown: Duration | None = None
    """Least time between two automatic splits of a topic (60s)."""
    max_fanout: Annotated[int, Field(ge=2, le=64)] | None = None
    """Into how many parts one split may go when the load is that many times the threshold (2)."""
    msg_rate_in: PositiveQuantity | None = None
    """Messages published (10k)."""
    bytes_rate_in: PositiveQuantity | None = None
    """Bytes published (50M)."""
    msg_rate_out: PositiveQuantity | None = None
    """Messages dispatched, over all subscriptions (50k)."""
    bytes_rate_out: PositiveQuantity | None = None
    """Bytes dispatched, over all subscriptions (250M)."""


class MergeKnobs(ApiModel):
    """When two neighbours are merged: all four rates of both stay below these. 0 means never."""

    cooldown: Duration | None = None
    """Least time between two automatic merges of a topic (5m)."""
    window: Duration | None = None
    """How long both must have been cold (5m)."""
    msg_rate_in: Quantity | None = None
    """Messages published (1k)."""
    bytes_rate_in: Quantity | None = None
    """Bytes published (5M)."""
    msg_rate_out: Quantity | None = None
    """Messages dispatched, over all subscriptions (5k)."""
    bytes_rate_out: Quantity | None = None
    """Bytes dispatched, over all subscriptions (25M)."""


class RebucketKnobs(ApiModel):
    """When segments get more entry buckets instead of being split, or fewer."""

    cooldown: Duration | None = None
    """Least time between two automatic rebucket rollovers of a topic (60s)."""
    max_per_segment: Buckets | None = None
    """Most buckets of one segment (1024)."""
    split_vs_rebucket_min_msg_rate_in: Quantity | None = None
    """Messages published to the busiest segment below which consumers bring buckets, not a split (1k)."""
    down_window: Duration | None = None
    """How long fewer buckets must have been enough before segments get fewer (10m)."""
    budget: Buckets | None = None
    """Buckets that the segments of a topic share: what they are made with, and come back to when consumers do not
    need more (4)."""
    drain_fan_out: bool | None = None
    """Whether consumers share the entry buckets of a sealed segment until it is drained (true)."""


class AutoScaleKnobs(ApiModel):
    """Knobs of automatic splits, merges and rebuckets. What is left out comes from the next wider policy.

    Amounts are whole numbers or texts such as 10k or 50Mi; durations are seconds or texts such as 90s or
    1h30m. Values in parentheses apply where no policy sets the knob.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.minSegments) || !has(self.maxSegments) || self.minSegments <= self.maxSegments",
                "minSegments must not be greater than maxSegments",
            ),
            *(_gap(metric) for metric in _METRICS),
        )
    )

    enabled: bool | None = None
    """Whether the operator splits, merges and rebuckets by itself (true)."""
    min_segments: SegmentCount | None = None
    """Active segments below which nothing is merged (1)."""
    max_segments: SegmentCount | None = None
    """Active segments at which nothing is split (64)."""
    max_dag_depth: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Merges in a segment's ancestry at which it is not merged again (10)."""
    depth_recovery: Duration | None = None
    """Time after the last merge in which one unit of that depth is forgiven (1h)."""
    split: SplitKnobs | None = None
    """When a segment is split."""
    merge: MergeKnobs | None = None
    """When two neighbours are merged."""
    rebucket: RebucketKnobs | None = None
    """When a segment gets more entry buckets instead."""


class LabelRequirement(ApiModel):
    """A requirement on one label."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                "values are needed for In and NotIn and not allowed otherwise",
            )
        )
    )

    key: Annotated[str, Field(min_length=1, max_length=316)]
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How it relates to the values."""
    values: Annotated[tuple[Annotated[str, Field(max_length=63)], ...], Field(max_length=64)] = ()
    """The values."""


class LabelSelector(ApiModel):
    """Objects whose labels fulfil all of this; an empty selector takes all."""

    match_labels: Annotated[Mapping[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None = None
    """Labels and the values they must have."""
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=64)] = ()
    """Further requirements."""


class PolicyTarget(ApiModel):
    """The topics a policy is for (R3): narrower scopes win, field by field."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.scope in ['Topics', 'Topic'] || has(self.connectionRef)",
                "connectionRef is needed for the scopes Cluster and PulsarNamespace",
            ),
            rule(
                "self.scope == 'PulsarNamespace' ? has(self.pulsarNamespace) : !has(self.pulsarNamespace)",
                "pulsarNamespace is needed for the scope PulsarNamespace and not allowed otherwise",
            ),
            rule(
                "self.scope == 'Topics' ? has(self.selector) : !has(self.selector)",
                "selector is needed for the scope Topics and not allowed otherwise",
            ),
            rule(
                "self.scope == 'Topic' ? has(self.topicRef) : !has(self.topicRef)",
                "topicRef is needed for the scope Topic and not allowed otherwise",
            ),
        )
    )

    scope: Literal["Cluster", "PulsarNamespace", "Topics", "Topic"]
    """Cluster: all topics of a connection in this namespace. PulsarNamespace: those in one Pulsar namespace.
    Topics: ScalableTopics in this namespace, by their labels. Topic: one of them, by its name."""
    connection_ref: LocalObjectRef | None = None
    """The connection, in this namespace; narrows the scopes Topics and Topic too."""
    pulsar_namespace: PulsarNamespace | None = None
    """Pulsar tenant and namespace, such as acme/orders."""
    selector: LabelSelector | None = None
    """Labels of the ScalableTopics."""
    topic_ref: LocalObjectRef | None = None
    """The ScalableTopic."""


class SegmentAutoScalePolicySpec(AutoScaleKnobs):
    """Knobs and the topics they are for. What is left out comes from the next wider policy.

    Amounts are whole numbers or texts such as 10k or 50Mi; durations are seconds or texts such as 90s or
    1h30m. Values in parentheses apply where no policy sets the knob.
    """

    target: PolicyTarget
    """The topics this policy is for."""


class EffectiveKnob(ApiModel):
    """A knob as it comes out."""

    knob: str
    """Its path, such as split.msgRateIn."""
    value: str
    """Its exact value: true or false, or a number in `unit`."""
    unit: str | None = None
    """What the number counts: seconds, messages/s or bytes/s, rates being those of one segment."""
    origin: str
    """Who says so: a policy, the operator's own settings, or default."""


class SegmentAutoScalePolicyStatus(ApiModel):
    """What became of the policy."""

    observed_generation: int | None = None
    """metadata.generation this status was found for."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled; Conflicted while another policy of the same scope says otherwise for the same
    topics."""
    matched_topics: int | None = None
    """ScalableTopics it applies to."""
    effective: Annotated[tuple[EffectiveKnob, ...], LIST_ATOMIC] = ()
    """The knobs as they come out at this policy's level, wider policies included; those left out differ among its
    topics."""


class SegmentAutoScalePolicy(CustomResource):
    """When the segments of some topics split, merge and get other buckets."""

    definition: ClassVar[Definition] = Definition(
        plural="segmentautoscalepolicies",
        short_name="stpolicy",
        columns=(
            Column("Scope", ".spec.target.scope"),
            Column("Connection", ".spec.target.connectionRef.name"),
            Column("Pulsar Namespace", ".spec.target.pulsarNamespace"),
            Column("Topics", ".status.matchedTopics", "integer"),
            condition_column("Ready", "Ready", "status"),
            condition_column("Reason", "Ready", "reason", priority=1),
            AGE,
        ),
    )

    kind: Literal["SegmentAutoScalePolicy"] = "SegmentAutoScalePolicy"
    spec: SegmentAutoScalePolicySpec
    status: SegmentAutoScalePolicyStatus = SegmentAutoScalePolicyStatus()
