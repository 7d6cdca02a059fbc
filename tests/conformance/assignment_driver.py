"""Runs peer cases of the SubscriptionCoordinator: who is assigned what of a layout, as our coordinator does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.assignment.group import Group

_NOW_MS = 1_000


def run(given: dict[str, Any]) -> dict[str, Any]:
    """Every consumer registers; answers what each is assigned, once nobody has to let go of anything any more."""
    layout = layout_of(given["layout"])
    group = Group().with_drained(given["drained"])
    for name in given["consumers"]:
        group = group.join(name, "1", (), "", shares=True)
    group = group.settle(layout, 1)
    # Cases say which segments somebody reads anything of.
    exact = {name: sorted({part.segment_id for part in member.assigned}) for name, member in group.members.items()}
    assigned = [segment for segments in exact.values() for segment in segments]
    owners = {str(segment): assigned.count(segment) for segment in layout.segments}
    return {
        "counts": {name: len(found) for name, found in exact.items()},
        "exact": exact,
        "total": len(assigned),
        "distinct": len(set(assigned)),
        "includes": sorted(set(assigned)),
        "excludes": sorted(layout.segments.keys() - set(assigned)),
        "ownersOf": owners,
        "sharedSegments": {segment: count for segment, count in owners.items() if count > 1},
        "idle": sum(not found for found in exact.values()),
    }


def layout_of(given: dict[str, Any]) -> SegmentLayout:
    """The layout that a case describes by what was done to it."""
    segments, budget = given["init"]
    layout = SegmentLayout.initial(segments, bucket_budget=budget)
    for name, *arguments in given["ops"]:
        layout = _CHANGES[name](layout, *arguments)
    return layout


_CHANGES: dict[str, Callable[..., SegmentLayout]] = {
    "split": lambda layout, segment, _: layout.split(segment, now_ms=_NOW_MS),
    "merge": lambda layout, one, other, _: layout.merge([one, other], now_ms=_NOW_MS),
    "rebucket": lambda layout, segment, buckets, _: layout.rebucket(segment, buckets, now_ms=_NOW_MS),
    "prune": lambda layout, segment: layout.prune([segment]),
}
