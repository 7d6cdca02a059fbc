"""The layout as a topic's status keeps it (R29): compact, with its own version.

Parents are stored as id ranges and children derived; fields that are zero or empty are left out; unknown
fields of the record and of each segment survive a rewrite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

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
from scalable_topics.layout.segment import CreatedBy, Segment, SegmentState
from scalable_topics.layout.segment_layout import SegmentLayout

RECORD_VERSION = 1
"""The version this release writes, and the only one it reads."""

MAX_RECORDS = 512
"""Most segments, active and sealed, that a topic's status should hold (R29)."""

_TOP_FIELDS = frozenset({"version", "epoch", "nextSegmentId", "segments"})
_SEGMENT_FIELDS = frozenset(
    {
        "id",
        "range",
        "state",
        "parents",
        "createdAtEpoch",
        "sealedAtEpoch",
        "createdAtMs",
        "sealedAtMs",
        "buckets",
        "mergeDepth",
        "createdBy",
        "topic",
        "sealedPosition",
    }
)
_ID_RANGE = re.compile(r"(0|[1-9][0-9]{0,18})(?:-([1-9][0-9]{0,18}))?")


def to_record(layout: SegmentLayout) -> dict[str, Any]:
    """The layout as plain JSON types; `from_record` reads it back to an equal layout."""
    return {
        "version": RECORD_VERSION,
        "epoch": layout.epoch,
        "nextSegmentId": layout.next_segment_id,
        "segments": [_segment_record(segment) for segment in layout.segments.values()],
        **unknown_fields(layout.extra, _TOP_FIELDS),
    }


def from_record(record: Mapping[str, Any]) -> SegmentLayout:
    """Read what `to_record` wrote.

    Raises:
        LayoutArgumentError: another `version`, a missing or malformed field, or a broken invariant
            (DESIGN §4); the text says which.
    """
    source = as_object(record, "the layout record")
    version = required(source, "version", "the layout record")
    if version != RECORD_VERSION or isinstance(version, bool):
        raise LayoutArgumentError(
            f"the layout record has version {version!r}; this release reads version {RECORD_VERSION}"
        )
    items = as_list(required(source, "segments", "the layout record"), "segments")
    sources = [as_object(item, f"segments[{index}]") for index, item in enumerate(items)]
    ids = [as_int(required(item, "id", f"segments[{index}]"), "id") for index, item in enumerate(sources)]
    present = frozenset(ids)
    return SegmentLayout.from_parents(
        [_read_segment(segment_id, item, present) for segment_id, item in zip(ids, sources, strict=True)],
        epoch=as_int(required(source, "epoch", "the layout record"), "epoch"),
        next_segment_id=as_int(required(source, "nextSegmentId", "the layout record"), "nextSegmentId"),
        extra=unknown_fields(source, _TOP_FIELDS),
    )


def _segment_record(segment: Segment) -> dict[str, Any]:
    optional = {
        "parents": _id_ranges(segment.parent_ids),
        "createdAtEpoch": segment.created_at_epoch,
        "sealedAtEpoch": segment.sealed_at_epoch,
        "createdAtMs": segment.created_at_ms,
        "sealedAtMs": segment.sealed_at_ms,
        "mergeDepth": segment.merge_depth,
        "topic": segment.topic,
        "sealedPosition": segment.sealed_position,
    }
    return {
        "id": segment.segment_id,
        "range": segment.hash_range.descriptor,
        "state": segment.state.value,
        "buckets": segment.buckets,
        "createdBy": segment.created_by.value,
        **{key: value for key, value in optional.items() if value},
        **unknown_fields(segment.extra, _SEGMENT_FIELDS),
    }


def _read_segment(segment_id: int, source: Mapping[str, Any], present: frozenset[int]) -> Segment:
    where = f"segment {segment_id}"

    def number(key: str, default: int = 0) -> int:
        return as_int(source.get(key, default), f"{where} {key}")

    return Segment(
        segment_id,
        HashRange.parse_descriptor(as_text(required(source, "range", where), f"{where} range")),
        state=as_member(SegmentState, required(source, "state", where), f"{where} state"),
        parent_ids=_read_id_ranges(source, where, present),
        created_at_epoch=number("createdAtEpoch"),
        sealed_at_epoch=number("sealedAtEpoch"),
        created_at_ms=number("createdAtMs"),
        sealed_at_ms=number("sealedAtMs"),
        buckets=number("buckets", 1),
        merge_depth=number("mergeDepth"),
        created_by=as_member(CreatedBy, source.get("createdBy", CreatedBy.CREATE), f"{where} createdBy"),
        topic=optional_text(source.get("topic"), f"{where} topic"),
        sealed_position=optional_text(source.get("sealedPosition"), f"{where} sealedPosition"),
        extra=unknown_fields(source, _SEGMENT_FIELDS),
    )


def _id_ranges(ids: Iterable[int]) -> list[str]:
    """Ascending ids as ranges: (1, 2, 5) as ["1-2", "5"]."""
    runs: list[tuple[int, int]] = []
    for segment_id in ids:
        if runs and runs[-1][1] + 1 == segment_id:
            runs[-1] = (runs[-1][0], segment_id)
        else:
            runs.append((segment_id, segment_id))
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]


def _read_id_ranges(source: Mapping[str, Any], where: str, present: frozenset[int]) -> tuple[int, ...]:
    ids: list[int] = []
    for item in as_list(source.get("parents", []), f"{where} parents"):
        text = as_text(item, f"{where} parents")
        match = _ID_RANGE.fullmatch(text)
        if match is None:
            raise LayoutArgumentError(f"{where}: {text!r} is not an id or a range of ids like 3-7")
        first, last = int(match[1]), int(match[2] or match[1])
        # Bounded by the segments there are before it is expanded: a damaged record may say 0-10^18.
        if not 0 <= last - first < len(present) or not present.issuperset(range(first, last + 1)):
            raise LayoutArgumentError(f"{where} names the parents {text}, which are not all in the layout")
        ids.extend(range(first, last + 1))
    return tuple(ids)
