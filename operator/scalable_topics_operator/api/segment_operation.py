"""SegmentOperation: one operation on a topic's segments or a subscription's cursors, asked for by hand (DESIGN §7)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.common import (
    AGE,
    MOST_POSITIONS,
    ApiModel,
    Buckets,
    CheckpointPosition,
    Column,
    Conditions,
    CustomResource,
    Definition,
    ObjectName,
    SegmentId,
    Timestamp,
    condition_column,
)
from scalable_topics_operator.api.migration import MigrationReport
from scalable_topics_operator.api.scalable_topic import SubscriptionName
from scalable_topics_operator.api.schema_extra import IMMUTABLE, LIST_SET, SchemaExtra, list_map, rule, rules


def _needs(kind: str, block: str) -> dict[str, str]:
    return rule(
        f"self.type == '{kind}' ? has(self.{block}) : !has(self.{block})",
        f"{block} is needed when type is {kind} and not allowed otherwise",
    )


def _allows(kind: str, block: str) -> dict[str, str]:
    return rule(
        f"self.type == '{kind}' || !has(self.{block})",
        f"{block} is not allowed unless type is {kind}",
    )


class Split(ApiModel):
    """Seal a segment and go on with several that share its range."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("!has(self.at) || self.into == 2", "at makes exactly two parts; leave out at, or into")
        )
    )

    segment: SegmentId
    """The segment, which must be active."""
    at: Annotated[int, Field(ge=1, le=65535)] | None = None
    """First hash of the second part; the middle if left out."""
    into: Annotated[int, Field(ge=2, le=64)] = 2
    """How many equal parts."""


class Merge(ApiModel):
    """Seal neighbouring segments and go on with one that has their ranges."""

    segments: Annotated[tuple[SegmentId, ...], Field(min_length=2, max_length=64), LIST_SET]
    """The segments, which must be active and touch each other; in any order."""


class Rebucket(ApiModel):
    """Seal a segment and go on with one of the same range and another number of entry buckets."""

    segment: SegmentId
    """The segment, which must be active."""
    buckets: Buckets
    """Entry buckets of its successor."""


class Prune(ApiModel):
    """Delete sealed segments that every subscription has drained and retention no longer needs."""

    segments: Annotated[tuple[SegmentId, ...], Field(max_length=512), LIST_SET] = ()
    """The segments, which must be sealed; empty means all that may go."""


class Migrate(ApiModel):
    """Make the ordinary topic that has the name of the ScalableTopic a scalable topic (pip-475)."""

    force: bool = False
    """Whether to migrate although clients are connected that do not know scalable topics."""


class Seek(ApiModel):
    """Move the cursors of a subscription to a time, on every segment (R18)."""

    subscription: SubscriptionName
    """The subscription."""
    timestamp: Annotated[
        Timestamp,
        Field(max_length=40),
        SchemaExtra(rules(rule("self >= timestamp('1970-01-01T00:00:00Z')", "must not be before 1970"))),
    ]
    """The time: what was published at it or later is delivered again, the rest is not."""


class SkipAll(ApiModel):
    """Move the cursors of a subscription behind everything there is, on every segment (R18)."""

    subscription: SubscriptionName
    """The subscription."""


class Restore(ApiModel):
    """Move the cursors of a checkpoint group to where a checkpoint was taken, on every segment (R22)."""

    subscription: SubscriptionName
    """The checkpoint group."""
    positions: Annotated[
        tuple[CheckpointPosition, ...], Field(min_length=1, max_length=MOST_POSITIONS), list_map("segment", "bucket")
    ]
    """What the checkpoint has; those of all consumers of the group together."""
    allow_gaps: bool = False
    """Whether to go on where messages behind a position may be gone; it fails otherwise, and moves no cursor."""


class SegmentOperationSpec(ApiModel):
    """What to do, to which topic; it cannot be changed afterwards."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(IMMUTABLE, "a SegmentOperation cannot be changed; create another one"),
            _needs("Split", "split"),
            _needs("Merge", "merge"),
            _needs("Rebucket", "rebucket"),
            _allows("Prune", "prune"),
            _allows("Migrate", "migrate"),
            _needs("Seek", "seek"),
            _needs("SkipAll", "skipAll"),
            _needs("Restore", "restore"),
        )
    )

    scalable_topic: ObjectName
    """The ScalableTopic, in this namespace."""
    type: Literal["Split", "Merge", "Rebucket", "Migrate", "Prune", "Seek", "SkipAll", "Restore"]
    """What to do."""
    split: Split | None = None
    """For type Split."""
    merge: Merge | None = None
    """For type Merge."""
    rebucket: Rebucket | None = None
    """For type Rebucket."""
    prune: Prune | None = None
    """For type Prune; may be left out."""
    migrate: Migrate | None = None
    """For type Migrate; may be left out."""
    seek: Seek | None = None
    """For type Seek."""
    skip_all: SkipAll | None = None
    """For type SkipAll."""
    restore: Restore | None = None
    """For type Restore."""
    dry_run: bool = False
    """Only say in status.plan what would be done."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=31536000)] | None = None
    """Seconds after which the finished object is deleted; it is kept if left out (R31)."""


class PlannedParent(ApiModel):
    """A segment that would be sealed, or was."""

    id: SegmentId
    """Its id."""
    range: str
    """Part of the ring, both ends included."""


class PlanChild(ApiModel):
    """A segment that would be made, or was."""

    id: SegmentId
    """Its id; of a dry run, the id it would get if nothing else came before."""
    range: str
    """Part of the ring, both ends included."""
    buckets: int
    """Its entry buckets."""


class Plan(ApiModel):
    """What the operation comes to."""

    parents: tuple[PlannedParent, ...] = ()
    """Segments it seals, or deletes."""
    children: tuple[PlanChild, ...] = ()
    """Segments it makes."""
    subscriptions: tuple[str, ...] = ()
    """Cursors every child gets."""
    notes: tuple[str, ...] = ()
    """What to know beforehand."""
    migration: MigrationReport | None = None
    """What a migration would meet."""


class SegmentOperationStatus(ApiModel):
    """How far the operation is and how it ended."""

    observed_generation: int | None = None
    """metadata.generation this status was found for."""
    phase: Literal["Pending", "Running", "Succeeded", "Failed"] | None = None
    """Where it stands."""
    step: str | None = None
    """The step it is in."""
    operation_id: str | None = None
    """Its id in the topic's journal and history."""
    message: str | None = None
    """Why it waits or failed, or what came of it."""
    reason: str | None = None
    """Why it failed, in one CamelCase word."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled."""
    plan: Plan | None = None
    """What it comes to."""
    children: tuple[int, ...] = ()
    """Segments it made."""
    epoch: int | None = None
    """Epoch of the layout afterwards."""
    started_at: Timestamp | None = None
    """When it left the queue."""
    completed_at: Timestamp | None = None
    """When it ended."""


class SegmentOperation(CustomResource):
    """One split, merge, rebucket, migration, prune, seek, skip-all or restore, asked for by hand."""

    definition: ClassVar[Definition] = Definition(
        plural="segmentoperations",
        short_name="segop",
        columns=(
            Column("Type", ".spec.type"),
            Column("Topic", ".spec.scalableTopic"),
            Column("Phase", ".status.phase"),
            Column("Step", ".status.step"),
            Column("Message", ".status.message"),
            Column("Dry Run", ".spec.dryRun", "boolean", priority=1),
            condition_column("Reason", "Ready", "reason", priority=1),
            AGE,
        ),
        selectable_fields=(".spec.scalableTopic",),
    )

    kind: Literal["SegmentOperation"] = "SegmentOperation"
    spec: SegmentOperationSpec
    status: SegmentOperationStatus = SegmentOperationStatus()
