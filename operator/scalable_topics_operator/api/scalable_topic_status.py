"""The status of a ScalableTopic: the record of its segments, the journal and the history (DESIGN §6, R29)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict

from scalable_topics_operator.api.common import (
    ApiModel,
    Backend,
    Buckets,
    CheckpointPosition,
    Conditions,
    DeletionPolicy,
    InitialPosition,
    RangeText,
    RequestRef,
    SegmentId,
    Timestamp,
)
from scalable_topics_operator.api.migration import MigratedFrom, MigrationStatus
from scalable_topics_operator.api.schema_extra import (
    ATOMIC_OBJECT,
    LIST_ATOMIC,
    PRESERVE_UNKNOWN,
    SchemaOf,
    list_map,
)


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
    kind: Literal["Create", "Split", "Merge", "Rebucket", "Migrate", "Prune", "Delete", "Seek", "SkipAll", "Restore"]
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
    """Cursors every child gets, or the subscription whose cursors are moved."""
    seek_to_ms: int | None = None
    """Where a seek moves them, in milliseconds since 1970."""
    positions: Annotated[tuple[CheckpointPosition, ...], LIST_ATOMIC] = ()
    """Where a restore moves them."""
    next_segment_id: int = 0
    """First id not reserved once the journal was opened."""
    announcements: int = 0
    """How often the seal was announced (R13)."""
    in_doubt: tuple[str, ...] = ()
    """Producers still attached when the parents were to be sealed (R15)."""
    started_at: Timestamp
    """When it was opened."""
    request: RequestRef
    """Who asked."""
    sealed_positions: Mapping[str, str] = {}
    """Last entry of each parent, by segment id, once its seal is verified."""
    result: Literal["Failed", "RolledBack"] | None = None
    """How it will have ended once it is rolled back."""
    message: str | None = None
    """Why it is being rolled back, or what it waits for."""
    reason: str | None = None
    """Why the operator began it by itself."""
    migration: MigrationStatus | None = None
    """The ordinary topic that is migrated."""


class DeletingSegment(ApiModel):
    """A segment that left the layout and whose topic is still to be deleted, or truncated (R19)."""

    id: SegmentId
    """Its id."""
    topic: str
    """Its topic."""
    since_ms: int
    """When it left the layout, in milliseconds since 1970."""
    force_after_ms: int | None = None
    """When it is deleted although clients are attached, in milliseconds since 1970."""
    legacy: bool | None = None
    """Whether it wraps a migrated topic, which is truncated and stays."""


class PrunedSegment(ApiModel):
    """A segment that brokers have taken out of the layout that they own (Native)."""

    id: SegmentId
    """Its id."""
    range: RangeText
    """Part of the ring, both ends included."""
    children: tuple[SegmentId, ...] = ()
    """Segments that replaced it, as far as that is known."""
    created_by: str = "Create"
    """Operation that made it."""
    created_at_ms: int = 0
    """When it was made, in milliseconds since 1970; 0 if unknown."""
    sealed_at_ms: int = 0
    """When it was sealed, in milliseconds since 1970; 0 if unknown."""
    pruned_at_ms: int
    """When it was found to be gone, in milliseconds since 1970."""


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
    out_of_scope: Annotated[tuple[SegmentId, ...], LIST_ATOMIC] = ()
    """Segments that were sealed before it started at the latest message, and that it never reads (R18)."""
    floors: Annotated[tuple[CheckpointPosition, ...], LIST_ATOMIC] = ()
    """Entry buckets that a restored checkpoint group has received beyond where the cursors were moved (R22)."""
    requested: bool | None = None
    """Whether somebody asked for it, or for its end, besides what is declared (R32)."""
    forced: bool | None = None
    """Whether it is deleted although consumers are attached."""
    ordered: bool | None = None
    """Whether the brokers are to give each of its segments to one consumer; of the Native backend only."""


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
    """What went wrong."""
    reason: str | None = None
    """Why the operator did it by itself."""
    subscription: str | None = None
    """The subscription whose cursors it moved."""
    request: RequestRef
    """Who asked."""


class SettledProducer(ApiModel):
    """Where a producer in doubt stands in a sealed segment."""

    name: str
    """The producer's name."""
    sequence_id: int
    """Last sequence id stored under it; -1 for none."""


class SettledSegment(ApiModel):
    """A sealed segment that was left with producers in doubt (R15)."""

    segment: SegmentId
    """The segment."""
    producers: Annotated[tuple[SettledProducer, ...], LIST_ATOMIC] = ()
    """Where each stands."""


class Clocks(ApiModel):
    """When segments were changed last, by the operator or by request; in milliseconds since 1970."""

    split_at_ms: int | None = None
    """The last split."""
    merge_at_ms: int | None = None
    """The last merge."""
    rebucket_at_ms: int | None = None
    """The last rebucket rollover."""


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
    """Ready, Reconciling, Stalled, Paused, LoadFresh, AutoScale, Migrated."""
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
    settled: Annotated[tuple[SettledSegment, ...], LIST_ATOMIC] = ()
    """What producers in doubt of sealed segments are told."""
    clocks: Clocks | None = None
    """When segments were changed last; cool-downs of automatic changes count from there."""
    migrated_from: MigratedFrom | None = None
    """What the topic was before it was migrated."""
    pruned: Annotated[tuple[PrunedSegment, ...], LIST_ATOMIC] = ()
    """The last segments that brokers have taken out of a layout that they own, oldest first (Native)."""
    reports: Annotated[tuple[Report, ...], LIST_ATOMIC] = ()
    """What needs a person's eye and stops nothing."""
