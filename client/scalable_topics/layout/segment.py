"""One segment of a scalable topic, and changes planned to segments (pip-468 SegmentInfo)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from scalable_topics.layout.entry_buckets import MAX_BUCKETS
from scalable_topics.layout.errors import LayoutArgumentError
from scalable_topics.layout.hash_range import HashRange

_POSITION = re.compile(r"-?[0-9]+:-?[0-9]+")
_COUNTERS = (
    "segment_id",
    "created_at_epoch",
    "sealed_at_epoch",
    "created_at_ms",
    "sealed_at_ms",
    "merge_depth",
)


# One for all of the very many that know every field of their records.
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def frozen_mapping(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """A copy of a mapping that nobody can change."""
    return MappingProxyType(dict(mapping)) if mapping else _NOTHING


class SegmentState(StrEnum):
    """Whether a segment takes writes."""

    ACTIVE = "Active"
    SEALED = "Sealed"


class CreatedBy(StrEnum):
    """The operation that made a segment; Split, Merge and Rebucket also name the kind of a planned change."""

    CREATE = "Create"
    SPLIT = "Split"
    MERGE = "Merge"
    REBUCKET = "Rebucket"
    MIGRATE = "Migrate"


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment as the layout records it (pip-468, with the later fields of 475 and 486).

    Args:
        segment_id: id, unique within the topic for ever, 0 or more.
        hash_range: the part of the ring it covers.
        state: Active or Sealed.
        parent_ids: segments it replaces, as far as they are still in the layout; kept ascending.
        child_ids: segments that replace it; empty while active; kept ascending.
        created_at_epoch: layout epoch that introduced it.
        sealed_at_epoch: layout epoch that sealed it; 0 while active and for migrated parents.
        created_at_ms: wall clock of its creation, milliseconds since 1970; 0 if unknown.
        sealed_at_ms: wall clock of its sealing, milliseconds since 1970; 0 while active or unknown.
        buckets: its entry buckets, 1..1024, fixed for its life.
        merge_depth: merges in its ancestry, stored and inherited (pip-483 maxDagDepth).
        created_by: the operation that made it.
        topic: full topic name when it is not derived: only for wrapped legacy topics (pip-475).
        sealed_position: last entry of the sealed topic as `ledger:entry`; None while active or unknown (R14).
        extra: fields of the stored record that this release does not know, kept verbatim.

    Raises:
        LayoutArgumentError: a field is out of range or contradicts `state`.
    """

    segment_id: int
    hash_range: HashRange
    state: SegmentState = SegmentState.ACTIVE
    parent_ids: tuple[int, ...] = ()
    child_ids: tuple[int, ...] = ()
    created_at_epoch: int = 0
    sealed_at_epoch: int = 0
    created_at_ms: int = 0
    sealed_at_ms: int = 0
    buckets: int = 1
    merge_depth: int = 0
    created_by: CreatedBy = CreatedBy.CREATE
    topic: str | None = None
    sealed_position: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent_ids", tuple(sorted(self.parent_ids)))
        object.__setattr__(self, "child_ids", tuple(sorted(self.child_ids)))
        object.__setattr__(self, "extra", frozen_mapping(self.extra))
        for name in _COUNTERS:
            if getattr(self, name) < 0:
                raise LayoutArgumentError(f"segment {self.segment_id}: {name} is {getattr(self, name)}, below 0")
        check_buckets(self.buckets, f"segment {self.segment_id}")
        for ids in (self.parent_ids, self.child_ids):
            if len(set(ids)) != len(ids):
                raise LayoutArgumentError(f"segment {self.segment_id} names a relative twice: {ids}")
        if self.topic == "":
            raise LayoutArgumentError(f"segment {self.segment_id} wraps a topic without a name")
        if self.sealed_position is not None:
            check_position(self.sealed_position)
        if self.is_active:
            self._check_active()
        elif self.sealed_at_epoch < self.created_at_epoch:
            raise LayoutArgumentError(
                f"segment {self.segment_id} was sealed at epoch {self.sealed_at_epoch}, "
                f"before its creation at epoch {self.created_at_epoch}"
            )

    def _check_active(self) -> None:
        if self.child_ids:
            raise LayoutArgumentError(f"segment {self.segment_id} is active but has children {self.child_ids}")
        if self.sealed_at_epoch or self.sealed_at_ms or self.sealed_position is not None:
            raise LayoutArgumentError(f"segment {self.segment_id} is active but says when or where it was sealed")

    @property
    def is_active(self) -> bool:
        """Whether it takes writes."""
        return self.state is SegmentState.ACTIVE

    @property
    def is_legacy(self) -> bool:
        """Whether it wraps an ordinary topic (a special segment of pip-475)."""
        return self.topic is not None

    def __str__(self) -> str:
        return f"segment {self.segment_id} {self.hash_range}"


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment that a change will make.

    Args:
        segment_id: the id chosen for it.
        hash_range: the part of the ring it will cover.
        buckets: its entry buckets, 1..1024.
        merge_depth: merges in its ancestry, this change included.
    """

    segment_id: int
    hash_range: HashRange
    buckets: int
    merge_depth: int = 0

    def __post_init__(self) -> None:
        check_buckets(self.buckets, f"planned segment {self.segment_id}")


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """A split, merge or rebucket as planned: what a journal records before any side effect (R8).

    Args:
        kind: Split, Merge or Rebucket.
        parent_ids: active segments it seals, ascending.
        children: segments it makes, in ring order.

    Raises:
        LayoutArgumentError: another kind, or nobody on one side.
    """

    kind: CreatedBy
    parent_ids: tuple[int, ...]
    children: tuple[PlannedSegment, ...]

    def __post_init__(self) -> None:
        if self.kind not in {CreatedBy.SPLIT, CreatedBy.MERGE, CreatedBy.REBUCKET}:
            raise LayoutArgumentError(f"{self.kind} is not a change of a layout")
        if not self.parent_ids or not self.children:
            raise LayoutArgumentError(f"a {self.kind} needs parents and children")

    @property
    def child_ids(self) -> tuple[int, ...]:
        """Ids of the children, in their order."""
        return tuple(child.segment_id for child in self.children)


def maker_of(hash_range: HashRange, parents: Sequence[Segment]) -> CreatedBy:
    """The operation that made a segment, told from what it replaced.

    Args:
        hash_range: the segment's.
        parents: segments that it replaced.
    """
    if not parents:
        return CreatedBy.CREATE
    if any(parent.is_legacy for parent in parents):
        return CreatedBy.MIGRATE
    if len(parents) > 1:
        return CreatedBy.MERGE
    return CreatedBy.REBUCKET if parents[0].hash_range == hash_range else CreatedBy.SPLIT


def merge_depth_of(maker: CreatedBy, parents: Sequence[Segment]) -> int:
    """Merges in the ancestry of a segment made by `maker` from `parents` (pip-483 maxDagDepth)."""
    inherited = max((parent.merge_depth for parent in parents), default=0)
    return inherited + 1 if maker is CreatedBy.MERGE else inherited


def check_buckets(buckets: int, owner: str) -> None:
    """Raise LayoutArgumentError, naming `owner`, unless `buckets` is in 1..1024."""
    if not 1 <= buckets <= MAX_BUCKETS:
        raise LayoutArgumentError(f"{owner} cannot have {buckets} entry buckets; 1 to {MAX_BUCKETS} are allowed")


def check_position(position: str) -> None:
    """Raise LayoutArgumentError unless `position` reads `ledger:entry`."""
    if _POSITION.fullmatch(position) is None:
        raise LayoutArgumentError(f"{position!r} is not a position like 12:345")
