"""Runs a peer case of the layout areas against our kernel and answers in the case's own terms.

Each function takes `given` (and the regular-expression groups of `when`) and answers all it can say; the test
compares what the case expects. A refusal is answered as `{"error": kind}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from scalable_topics.layout import (
    HashRange,
    LayoutArgumentError,
    LayoutStateError,
    Segment,
    SegmentLayout,
    SegmentState,
    TopicName,
    bucket_count_for,
    bucket_hash,
    bucket_of,
    bucket_owners,
    canonical_hash,
    equal_splits,
    key_hash,
    migrated_layout,
    native_segment_name,
    parse_native_segment_name,
    ranges_of,
    route,
    route_among,
    segment_descriptor,
    segment_hash,
    synthetic_layout,
    validate_ranges,
)
from tests.conformance.peer_case import PeerCase

Given = dict[str, Any]
Outcome = dict[str, Any]


class NotDriven(Exception):
    """No function here understands the case."""


def run(case: PeerCase) -> Outcome:
    """What our kernel does in the case. Raises NotDriven for a case of another layer."""
    for area, pattern, function in _DRIVERS:
        match = re.fullmatch(pattern, case.when)
        if area == case.area and match is not None:
            try:
                return function(case.given, *(int(number) for number in match.groups()))
            except LayoutArgumentError:
                return {"error": "illegal-argument"}
            except LayoutStateError:
                return {"error": "illegal-state"}
    raise NotDriven(f"nothing drives {case}: {case.when!r}")


def _pair(hash_range: HashRange) -> list[int]:
    return [hash_range.start, hash_range.end]


def _layout(given: Given) -> SegmentLayout:
    segments, budget = given["layout"]["init"]
    layout = SegmentLayout.initial(segments, bucket_budget=budget)
    for name, *arguments in given["layout"]["ops"]:
        layout = _OPERATIONS[name](layout, *arguments)
    return layout


_OPERATIONS: dict[str, Callable[..., SegmentLayout]] = {
    "split": lambda layout, segment_id, at_ms: layout.split(segment_id, now_ms=at_ms),
    "merge": lambda layout, first, second, at_ms: layout.merge([first, second], now_ms=at_ms),
    "rebucket": lambda layout, segment_id, buckets, at_ms: layout.rebucket(segment_id, buckets, now_ms=at_ms),
    "prune": lambda layout, segment_id: layout.prune([segment_id]),
}


def _inspect(layout: SegmentLayout) -> Outcome:
    segments = layout.segments.values()
    return {
        "epoch": layout.epoch,
        "nextSegmentId": layout.next_segment_id,
        "total": len(segments),
        "active": [segment.segment_id for segment in segments if segment.is_active],
        "sealed": [segment.segment_id for segment in layout.sealed],
        "absent": [id_ for id_ in range(layout.next_segment_id) if id_ not in layout.segments],
        "ranges": _by_id(layout, lambda segment: _pair(segment.hash_range)),
        "parents": _by_id(layout, lambda segment: list(segment.parent_ids)),
        "buckets": _by_id(layout, lambda segment: segment.buckets),
    }


def _by_id(layout: SegmentLayout, value: Callable[[Segment], Any]) -> dict[str, Any]:
    return {str(segment_id): value(segment) for segment_id, segment in layout.segments.items()}


def _construct_range(given: Given) -> Outcome:
    return {"range": _pair(HashRange(*given["range"]))}


def _full_range(given: Given) -> Outcome:
    full = HashRange.full()
    return {"start": full.start, "end": full.end, "size": full.size}


def _split_range(given: Given) -> Outcome:
    whole = HashRange(*given["range"])
    parts = whole.split()
    return {
        "parts": [_pair(part) for part in parts],
        "sizesSumToParent": sum(part.size for part in parts) == whole.size,
    }


def _merge_ranges(given: Given) -> Outcome:
    return {"merged": _pair(HashRange(*given["a"]).union(HashRange(*given["b"])))}


def _contains_hash(given: Given) -> Outcome:
    return {"result": HashRange(*given["range"]).contains(given["hash"])}


def _contains_range(given: Given) -> Outcome:
    outer, inner = HashRange(*given["outer"]), HashRange(*given["inner"])
    return {
        "outerContainsInner": outer.contains_range(inner),
        "innerContainsOuter": inner.contains_range(outer),
    }


def _compare_ranges(given: Given) -> Outcome:
    a, b = HashRange(*given["a"]), HashRange(*given["b"])
    return {"a<b": a < b, "b>a": b > a, "a==a": a == HashRange(*given["a"])}


def _show_range(given: Given) -> Outcome:
    return {"text": str(HashRange(*given["range"]))}


def _initial(given: Given) -> Outcome:
    return _inspect(SegmentLayout.initial(given["segments"], bucket_budget=given["budget"]))


def _depths(given: Given) -> Outcome:
    return _by_id(_layout(given), lambda segment: segment.merge_depth)


def _parents(given: Given) -> Outcome:
    layout = _layout(given)
    return _by_id(layout, lambda one: [parent.segment_id for parent in layout.parents_of(one.segment_id)])


def _children(given: Given, segment_id: int) -> Outcome:
    return {"ids": [child.segment_id for child in _layout(given).children_of(segment_id)]}


def _segment_id(given: Given) -> Outcome:
    parsed = parse_native_segment_name(given["name"])
    return {"id": parsed and parsed[2]}


def _parent_topic(given: Given) -> Outcome:
    parsed = parse_native_segment_name(given["name"])
    return {"topic": parsed and str(parsed[0])}


def _descriptor(given: Given) -> Outcome:
    return {"text": segment_descriptor(HashRange(*given["range"]), given["id"])}


def _segment_name(given: Given) -> Outcome:
    topic = TopicName.parse(given["topic"])
    return {"name": native_segment_name(topic, HashRange(*given["range"]), given["id"])}


def _route(given: Given) -> Outcome:
    value = key_hash(given["key"])
    if "legacySegments" in given:
        layout = synthetic_layout(TopicName.parse("old"), given["legacySegments"])
        return {"segmentId": route(layout, value).segment_id}
    segments = [
        Segment(
            int(segment_id),
            HashRange(*bounds),
            topic="persistent://t/n/old" if int(segment_id) in given.get("legacy", []) else None,
        )
        for segment_id, bounds in given["segments"].items()
    ]
    return {"segmentId": route_among(segments, value).segment_id}


def _client_layout(given: Given) -> Outcome:
    pushed = {
        segment_id: Segment(segment_id, HashRange(start, end), state=SegmentState[state])
        for segment_id, start, end, state in given["pushed"]
    }
    layout = SegmentLayout(epoch=0, next_segment_id=max(pushed) + 1, segments=pushed)
    return {"order": [segment.segment_id for segment in layout.active]}


def _hash(given: Given) -> Outcome:
    value = key_hash(given["key"])
    return {"raw": value, "segmentHash": segment_hash(value), "bucketHash": bucket_hash(value)}


def _bucket_index(given: Given) -> Outcome:
    return {"bucket": bucket_of(given["splits"], given["hash"])}


def _bucket_ranges(given: Given) -> Outcome:
    return {"ranges": [_pair(bucket) for bucket in ranges_of(given["splits"])]}


def _validate_boundaries(given: Given) -> Outcome:
    for boundaries in given.get("lists", [given.get("list")]):
        validate_ranges([tuple(pair) for pair in boundaries])
    return {"valid": True}


def _buckets_per_segment(given: Given) -> Outcome:
    return {"n": bucket_count_for(given["budget"], given["segments"])}


def _canonical(given: Given) -> Outcome:
    return {"canonical": canonical_hash(given["splits"], given["hash"])}


def _owners(given: Given) -> Outcome:
    owners = bucket_owners(given["buckets"], given["consumers"])
    return {
        "owners": list(owners) or None,
        "distinctOwners": len(set(owners)),
        "everyBucketOwned": len(owners) == given["buckets"],
    }


def _split_points(given: Given) -> Outcome:
    splits = equal_splits(given["n"])
    return {"splits": list(splits), "count": len(splits), "rangeCount": len(ranges_of(splits))}


def _first_bucket(given: Given) -> Outcome:
    buckets = ranges_of(equal_splits(given["n"]))
    try:
        validate_ranges(buckets)
    except LayoutArgumentError:
        return {"first": _pair(buckets[0]), "dispatcherAccepts": False}
    return {"first": _pair(buckets[0]), "dispatcherAccepts": True}


def _migrated(given: Given) -> Outcome:
    layout = migrated_layout(TopicName.parse(given["source"]), given["partitions"], given["budget"])
    parents, children = layout.sealed, layout.active
    names = [parent.topic for parent in parents]
    pattern = given["source"] + "-partition-{k}"
    return {
        **_inspect(layout),
        "parents": {
            "ids": [parent.segment_id for parent in parents],
            "state": _same(parent.state.name for parent in parents),
            "range": _same(_pair(parent.hash_range) for parent in parents),
            "legacy": pattern if names == [pattern.format(k=k) for k in range(len(parents))] else names,
            "parentIds": _same(list(parent.parent_ids) for parent in parents),
            "childIds": _same(list(parent.child_ids) for parent in parents),
        },
        "children": {
            "ids": [child.segment_id for child in children],
            "state": _same(child.state.name for child in children),
            "legacy": _same(child.topic for child in children),
            "parentIds": _same(list(child.parent_ids) for child in children),
            "childIds": _same(list(child.child_ids) for child in children),
            "ranges": {str(child.segment_id): _pair(child.hash_range) for child in children},
        },
    }


def _same(values: Any) -> Any:
    """The value that all share; all of them when they differ."""
    seen = list(values)
    return seen[0] if all(value == seen[0] for value in seen) else seen


_DRIVERS: list[tuple[str, str, Callable[..., Outcome]]] = [
    ("HashRange", "construct", _construct_range),
    ("HashRange", "full range", _full_range),
    ("HashRange", "split", _split_range),
    ("HashRange", "merge a,b", _merge_ranges),
    ("HashRange", "contains hash", _contains_hash),
    ("HashRange", "contains both ways", _contains_range),
    ("HashRange", "compare", _compare_ranges),
    ("HashRange", "to string", _show_range),
    ("SegmentLayout", "inspect", lambda given: _inspect(_layout(given))),
    ("SegmentLayout", "initial metadata", _initial),
    ("SegmentLayout", r"split (\d+)", lambda given, one: _inspect(_layout(given).split(one, now_ms=0))),
    (
        "SegmentLayout",
        r"merge (\d+),(\d+)",
        lambda given, one, other: _inspect(_layout(given).merge([one, other], now_ms=0)),
    ),
    (
        "SegmentLayout",
        r"rebucket (\d+) to (\d+)",
        lambda given, one, buckets: _inspect(_layout(given).rebucket(one, buckets, now_ms=0)),
    ),
    ("SegmentLayout", r"prune (\d+)", lambda given, one: _inspect(_layout(given).prune([one]))),
    ("SegmentLayout", "merge depth.*", _depths),
    ("SegmentLayout", "parents of .*", _parents),
    ("SegmentLayout", r"children of (\d+)", _children),
    ("SegmentName", "id", _segment_id),
    ("SegmentName", "parent name", _parent_topic),
    ("SegmentName", "descriptor", _descriptor),
    ("SegmentName", "segment name", _segment_name),
    ("Routing", "route", _route),
    ("Routing", "client layout", _client_layout),
    ("Routing", "hash", _hash),
    ("EntryBucket", "bucket counts", lambda given: _inspect(_layout(given))),
    ("EntryBucket", "bucket index", _bucket_index),
    ("EntryBucket", "bucket ranges", _bucket_ranges),
    ("EntryBucket", "validate boundary list", _validate_boundaries),
    ("EntryBucket", "buckets per segment", _buckets_per_segment),
    ("EntryBucket", "bucket start, 0 nudged to 1", _canonical),
    ("EntryBucket", "owner per bucket", _owners),
    ("EntryBucket", "split points", _split_points),
    ("EntryBucket", "first bucket range, then validate as above", _first_bucket),
    ("Migration", "migrated layout", _migrated),
]
