"""The layout as pip-468 and Pulsar 5 write a topic's record, with the later fields of 475, 483 and 486.

Beside the published fields ours are `mergeDepth`, `createdBy` and `sealedPosition`. Times and epochs that do
not apply are 0 when written, as in pip-468; Pulsar's -1 is read as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from scalable_topics.layout.entry_buckets import MAX_BUCKETS, equal_splits, ranges_of
from scalable_topics.layout.errors import LayoutArgumentError
from scalable_topics.layout.hash_range import HashRange
from scalable_topics.layout.json_fields import (
    as_int,
    as_list,
    as_member,
    as_object,
    as_text,
    optional_text,
    required,
    unknown_fields,
)
from scalable_topics.layout.segment import CreatedBy, Segment, SegmentState, maker_of, merge_depth_of
from scalable_topics.layout.segment_layout import SegmentLayout

_SPLITS = "entryBucketSplits"
_TOP_FIELDS = frozenset({"epoch", "nextSegmentId", "segments"})
_SEGMENT_FIELDS = frozenset(
    {
        "segmentId",
        "hashRange",
        "state",
        "parentIds",
        "childIds",
        "createdAtEpoch",
        "sealedAtEpoch",
        "createdAtMs",
        "sealedAtMs",
        "legacyTopicName",
        _SPLITS,
        "mergeDepth",
        "createdBy",
        "sealedPosition",
    }
)


def to_pip468(layout: SegmentLayout, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The layout as a pip-468 record of plain JSON types.

    Args:
        layout: what to write.
        properties: the topic's properties; None keeps those the layout was read with, if any.
    """
    kept = unknown_fields(layout.extra, _TOP_FIELDS)
    kept_properties = kept.pop("properties", {})
    return {
        "epoch": layout.epoch,
        "nextSegmentId": layout.next_segment_id,
        "segments": {str(segment_id): _write(segment) for segment_id, segment in layout.segments.items()},
        "properties": kept_properties if properties is None else dict(properties),
        **kept,
    }


def from_pip468(record: Mapping[str, Any]) -> SegmentLayout:
    """Read a pip-468 record, ours or Pulsar's; unknown fields, and `properties` if any, are kept in `extra`.

    Pulsar does not say `createdBy` and `mergeDepth`; they are told from the parents still in the record then.

    Raises:
        LayoutArgumentError: a missing or malformed field or a broken invariant (DESIGN §4); the text says
            which.
    """
    source = as_object(record, "the topic record")
    items = as_object(required(source, "segments", "the topic record"), "segments")
    segments: dict[int, Segment] = {}
    for key, item in sorted(items.items(), key=lambda entry: _segment_id(*entry)):
        segment = _read(_segment_id(key, item), as_object(item, f"segment {key}"), segments)
        segments[segment.segment_id] = segment
    extra = unknown_fields(source, _TOP_FIELDS)
    if not extra.get("properties"):
        extra.pop("properties", None)
    return SegmentLayout(
        epoch=as_int(required(source, "epoch", "the topic record"), "epoch"),
        next_segment_id=as_int(required(source, "nextSegmentId", "the topic record"), "nextSegmentId"),
        segments=segments,
        extra=extra,
    )


def segment_from_pip468(record: Mapping[str, Any]) -> Segment:
    """Read one segment of a pip-468 record by itself, as the gateway shows it.

    Where `createdBy` and `mergeDepth` are not said they are those of a segment without parents.

    Raises:
        LayoutArgumentError: a missing or malformed field; the text says which.
    """
    source = as_object(record, "the segment record")
    return _read(as_int(required(source, "segmentId", "the segment record"), "segmentId"), source, {})


def _write(segment: Segment) -> dict[str, Any]:
    written: dict[str, Any] = {
        "segmentId": segment.segment_id,
        "hashRange": {"start": segment.hash_range.start, "end": segment.hash_range.end},
        "state": segment.state.name,
        "parentIds": list(segment.parent_ids),
        "childIds": list(segment.child_ids),
        "createdAtEpoch": segment.created_at_epoch,
        "sealedAtEpoch": segment.sealed_at_epoch,
        "createdAtMs": segment.created_at_ms,
        "sealedAtMs": segment.sealed_at_ms,
        _SPLITS: deepcopy(segment.extra.get(_SPLITS, list(equal_splits(segment.buckets)))),
        "mergeDepth": segment.merge_depth,
        "createdBy": segment.created_by.value,
    }
    if segment.topic is not None:
        written["legacyTopicName"] = segment.topic
    if segment.sealed_position is not None:
        written["sealedPosition"] = segment.sealed_position
    return {**written, **unknown_fields(segment.extra, _SEGMENT_FIELDS)}


def _read(segment_id: int, source: Mapping[str, Any], older: Mapping[int, Segment]) -> Segment:
    where = f"segment {segment_id}"
    state_name = as_text(required(source, "state", where), f"{where} state")
    if state_name not in SegmentState.__members__:
        raise LayoutArgumentError(f"{where} state is {state_name!r}; it must be one of ACTIVE, SEALED")
    hash_range = _range(source, where)
    parent_ids = _ids(source, "parentIds", where)
    parents = [older[parent_id] for parent_id in parent_ids if parent_id in older]
    created_by = source.get("createdBy")
    maker = (
        maker_of(hash_range, parents) if created_by is None else as_member(CreatedBy, created_by, f"{where} createdBy")
    )
    depth = source.get("mergeDepth")
    splits, extra = _splits(source, where), unknown_fields(source, _SEGMENT_FIELDS)
    if splits != list(equal_splits(len(splits) + 1)):
        extra[_SPLITS] = splits
    return Segment(
        segment_id,
        hash_range,
        state=SegmentState[state_name],
        parent_ids=parent_ids,
        child_ids=_ids(source, "childIds", where),
        created_at_epoch=_sentinel(source, "createdAtEpoch", where),
        sealed_at_epoch=_sentinel(source, "sealedAtEpoch", where),
        created_at_ms=_sentinel(source, "createdAtMs", where),
        sealed_at_ms=_sentinel(source, "sealedAtMs", where),
        buckets=len(splits) + 1,
        merge_depth=merge_depth_of(maker, parents) if depth is None else as_int(depth, f"{where} mergeDepth"),
        created_by=maker,
        topic=optional_text(source.get("legacyTopicName"), f"{where} legacyTopicName"),
        sealed_position=optional_text(source.get("sealedPosition"), f"{where} sealedPosition"),
        extra=extra,
    )


def _segment_id(key: str, item: object) -> int:
    where = f"segment {key}"
    segment_id = as_int(required(as_object(item, where), "segmentId", where), f"{where} segmentId")
    if str(segment_id) != str(key):
        raise LayoutArgumentError(f"segment {segment_id} is filed under the id {key}")
    return segment_id


def _range(source: Mapping[str, Any], where: str) -> HashRange:
    bounds = as_object(required(source, "hashRange", where), f"{where} hashRange")
    start, end = (as_int(required(bounds, key, f"{where} hashRange"), f"{where} {key}") for key in ("start", "end"))
    return HashRange(start, end)


def _ids(source: Mapping[str, Any], key: str, where: str) -> tuple[int, ...]:
    return tuple(as_int(item, f"{where} {key}") for item in as_list(source.get(key) or [], f"{where} {key}"))


def _sentinel(source: Mapping[str, Any], key: str, where: str) -> int:
    value = as_int(source.get(key, 0), f"{where} {key}")
    return 0 if value == -1 else value


def _splits(source: Mapping[str, Any], where: str) -> list[int]:
    splits = [as_int(item, f"{where} {_SPLITS}") for item in as_list(source.get(_SPLITS) or [], f"{where} {_SPLITS}")]
    if len(splits) >= MAX_BUCKETS:
        raise LayoutArgumentError(f"{where} has {len(splits) + 1} entry buckets; 1 to {MAX_BUCKETS} are allowed")
    ranges_of(splits)
    return splits
