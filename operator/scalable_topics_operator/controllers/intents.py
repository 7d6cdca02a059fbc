"""Manifests turned into what operations work with. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from scalable_topics.layout import Part
from scalable_topics_operator.api.scalable_topic import ScalableTopicSpec
from scalable_topics_operator.api.segment_operation import SegmentOperationSpec
from scalable_topics_operator.operations.context import DeclaredSubscription, TopicIntent, TotalPolicies
from scalable_topics_operator.operations.errors import RequestRefused
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.requests import (
    CursorRequest,
    MergeRequest,
    PruneRequest,
    RebucketRequest,
    ReshapeRequest,
    RestoreRequest,
    SeekRequest,
    SkipAllRequest,
    SplitRequest,
)
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

_DEFAULT_QUOTA_ACTION = "producer_request_hold"


def topic_intent(
    spec: ScalableTopicSpec, ordered: Mapping[str, DeclaredSubscription], *, bucket_budget: int
) -> TopicIntent:
    """What a ScalableTopic asks of operations.

    Args:
        spec: of the object.
        ordered: what its ScalableTopicSubscriptions ask of its cursors; an entry of the spec goes before.
        bucket_budget: entry buckets over the whole topic, as its effective policy has it.
    """
    per_segment = spec.policies.per_segment if spec.policies else None
    total = spec.policies.total if spec.policies else None
    quota = total.backlog_quota_bytes if total else None
    return TopicIntent(
        initial_segments=spec.segments.initial,
        bucket_budget=bucket_budget,
        subscriptions={
            **ordered,
            **{
                entry.name: DeclaredSubscription(
                    latest=entry.initial_position == "Latest", delete_with_entry=entry.deletion_policy == "Delete"
                )
                for entry in spec.subscriptions
            },
        },
        properties=dict(spec.properties),
        permissions={entry.role: frozenset(entry.actions) for entry in spec.permissions},
        per_segment=SegmentPolicies(
            message_ttl_seconds=per_segment.message_ttl_seconds if per_segment else None,
            retention_minutes=per_segment.retention_time_minutes if per_segment else None,
            schema_compatibility_strategy=per_segment.schema_compatibility_strategy if per_segment else None,
            backlog_quota_action=(
                (total.backlog_quota_action or _DEFAULT_QUOTA_ACTION) if total and quota is not None else None
            ),
            deduplication=spec.deduplication,
        ),
        total=TotalPolicies(
            retention_megabytes=total.retention_size_megabytes,
            backlog_quota_bytes=quota,
            publish_messages_per_second=total.publish_messages_per_second,
            publish_bytes_per_second=total.publish_bytes_per_second,
            dispatch_messages_per_second=total.dispatch_messages_per_second,
            dispatch_bytes_per_second=total.dispatch_bytes_per_second,
        )
        if total
        else TotalPolicies(),
        adopt=spec.adopt,
        migrates=spec.migrate_from is not None,
    )


def operation_request(spec: SegmentOperationSpec) -> ReshapeRequest | PruneRequest | CursorRequest:
    """What a SegmentOperation asks for. Raises RequestRefused for what cannot be done to a topic that has a layout."""
    if spec.type == "Split" and spec.split is not None:
        return SplitRequest(spec.split.segment, spec.split.at, spec.split.into)
    if spec.type == "Merge" and spec.merge is not None:
        return MergeRequest(spec.merge.segments)
    if spec.type == "Rebucket" and spec.rebucket is not None:
        return RebucketRequest(spec.rebucket.segment, spec.rebucket.buckets)
    if spec.type == "Prune":
        return PruneRequest(spec.prune.segments if spec.prune else ())
    if spec.type == "Seek" and spec.seek is not None:
        return SeekRequest(spec.seek.subscription, _milliseconds(spec.seek.timestamp))
    if spec.type == "SkipAll" and spec.skip_all is not None:
        return SkipAllRequest(spec.skip_all.subscription)
    if spec.type == "Restore" and spec.restore is not None:
        positions = {
            Part(one.segment, one.bucket): MessagePosition(one.ledger_id, one.entry_id, one.batch_index)
            for one in spec.restore.positions
        }
        return RestoreRequest(spec.restore.subscription, positions, spec.restore.allow_gaps)
    if spec.type == "Migrate":
        # What has a layout is none of an ordinary topic's.
        raise RequestRefused("AlreadyScalable", "the topic is a scalable topic already; there is nothing to migrate")
    raise RequestRefused("InvalidRequest", f"spec.{spec.type[0].lower()}{spec.type[1:]} is missing")


def _milliseconds(timestamp: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 time. Raises RequestRefused for anything else."""
    try:
        moment = datetime.fromisoformat(timestamp)
        # Without an offset it is meant as Kubernetes writes times.
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise RequestRefused("InvalidRequest", f"{timestamp!r} is no time: {error}") from error
