"""A segment's own record as a topic property, written once in the create call (R11). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scalable_topics.layout import HashRange
from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.backends.claim_properties import RESERVED_PREFIX, claim_from_json, claim_to_json
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.protocols import SegmentRecord

RECORD_KEY = RESERVED_PREFIX + "segment"
_VERSION = 1


def record_properties(record: SegmentRecord) -> dict[str, str]:
    """The properties a segment topic is created with."""
    found = {
        "v": _VERSION,
        "id": record.segment_id,
        "range": record.hash_range.descriptor,
        "parents": list(record.parent_ids),
        "buckets": record.buckets,
        "mergeDepth": record.merge_depth,
        "createdAtEpoch": record.created_at_epoch,
        "createdAtMs": record.created_at_ms,
        "createdBy": record.created_by,
        "operation": record.operation_id,
        "siblings": list(record.sibling_ids),
        "nextId": record.next_segment_id,
        "claim": claim_to_json(record.claim),
    }
    return {RECORD_KEY: json.dumps(found, separators=(",", ":"))}


def record_of(properties: Mapping[str, str]) -> SegmentRecord | None:
    """The record that a topic's properties carry; None if they carry none. Unknown keys are tolerated.

    Raises BackendRefused if there is one that this release cannot read.
    """
    text = properties.get(RECORD_KEY)
    if text is None:
        return None
    try:
        return _record_from_json(parse_json(text))
    except MALFORMED as error:
        problem = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise BackendRefused(f"the topic carries a record that this release cannot read: {problem}") from None


def _record_from_json(found: Any) -> SegmentRecord:
    if not isinstance(found, Mapping):
        raise ValueError("a record is a JSON object")
    return SegmentRecord(
        segment_id=_integer(found["id"]),
        hash_range=HashRange.parse_descriptor(_text(found["range"])),
        parent_ids=_integers(found["parents"]),
        buckets=_integer(found["buckets"]),
        merge_depth=_integer(found["mergeDepth"]),
        created_at_epoch=_integer(found["createdAtEpoch"]),
        created_at_ms=_integer(found["createdAtMs"]),
        created_by=_text(found["createdBy"]),
        operation_id=_text(found["operation"]),
        sibling_ids=_integers(found["siblings"]),
        next_segment_id=_integer(found["nextId"]),
        claim=claim_from_json(found["claim"]),
    )


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{str(value)[:40]!r} is not a number of 0 or more")
    return value


def _integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError("ids are a list")
    return tuple(_integer(entry) for entry in value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is not a text")
    return value
