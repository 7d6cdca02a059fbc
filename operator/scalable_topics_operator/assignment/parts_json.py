"""How parts of segments are written in objects and frames: `{"segment": 3, "buckets": [0, 2]}`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalable_topics.layout import Part, to_buckets_json, whole_of


def to_parts_json(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """One object a segment, in order; without `buckets` where the whole segment is meant."""
    found = tuple(parts)
    return sorted(
        [{"segment": segment_id} for segment_id in whole_of(found)] + to_buckets_json(found),
        key=lambda one: (one["segment"], "buckets" in one),
    )


def from_parts_json(values: Iterable[Mapping[str, Any]]) -> frozenset[Part]:
    """What `to_parts_json` or `to_buckets_json` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    return frozenset(
        part
        for value in values
        for part in (
            [Part(int(value["segment"]), int(bucket)) for bucket in value.get("buckets", ())]
            or [Part(int(value["segment"]))]
        )
    )
