"""Hypothesis strategies over the layout kernel, and an oracle of its own for what makes a layout sound."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from scalable_topics.layout import (
    HashRange,
    Segment,
    SegmentChange,
    SegmentLayout,
    TopicName,
    migrated_layout,
)

unhurried = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For every property test here: a busy machine is no finding."""

hashes = st.integers(0, 0xFFFF)
key_hashes = st.integers(0, 0xFFFFFFFF)
unknown_fields = st.dictionaries(
    st.sampled_from(["futureField", "x-note", "autoScalePolicy"]),
    st.one_of(st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=3), st.none()),
    max_size=2,
)
positions = st.builds(lambda ledger, entry: f"{ledger}:{entry}", st.integers(0, 10**6), st.integers(-1, 10**6))


@st.composite
def hash_ranges(draw: st.DrawFn, min_size: int = 1) -> HashRange:
    start = draw(st.integers(0, 0x10000 - min_size))
    return HashRange(start, draw(st.integers(start + min_size - 1, 0xFFFF)))


def touching_runs(layout: SegmentLayout) -> list[tuple[int, ...]]:
    """Every run of two to four active segments that touch."""
    ids = [segment.segment_id for segment in layout.active]
    return [tuple(ids[first : first + length]) for length in (2, 3, 4) for first in range(len(ids) - length + 1)]


@st.composite
def changes(draw: st.DrawFn, layout: SegmentLayout) -> SegmentChange:
    """A change that `layout`, which is not synthetic, allows."""
    segment = draw(st.sampled_from(layout.active))
    one = segment.segment_id
    width = segment.hash_range.size
    allowed = ["rebucket", "rollover"]
    allowed += ["split", "split"] if width > 1 else []
    allowed += ["merge"] if len(layout.active) > 1 else []
    kind = draw(st.sampled_from(allowed))
    if kind == "split" and draw(st.booleans()):
        first = segment.hash_range.start
        return layout.plan_split(one, at=draw(st.integers(first + 1, segment.hash_range.end)))
    if kind == "split":
        return layout.plan_split(one, into=draw(st.integers(2, min(5, width))))
    if kind == "merge":
        return layout.plan_merge(draw(st.permutations(draw(st.sampled_from(touching_runs(layout))))))
    if kind == "rebucket":
        buckets = draw(st.integers(1, 1024).filter(lambda count: count != segment.buckets))
        return layout.plan_rebucket(one, buckets)
    return layout.plan_rollover(one)


@st.composite
def layouts(draw: st.DrawFn, max_steps: int = 8) -> SegmentLayout:
    """A layout with a history: created or migrated, then changed, pruned and marked."""
    if draw(st.booleans()):
        layout = SegmentLayout.initial(
            draw(st.integers(1, 6)),
            bucket_budget=draw(st.integers(1, 20)),
            created_at_ms=draw(st.integers(0, 10**13)),
        )
    else:
        layout = migrated_layout(TopicName("t", "n", "old"), draw(st.integers(0, 4)), now_ms=7)
    for step in range(draw(st.integers(0, max_steps))):
        change = draw(changes(layout))
        layout = layout.reserve(change)
        if draw(st.integers(0, 4)) == 0:
            continue
        ends = {parent: draw(positions) for parent in change.parent_ids} if draw(st.booleans()) else None
        layout = layout.apply(change, now_ms=1000 + step, sealed_positions=ends)
        sealed = [segment.segment_id for segment in layout.sealed]
        if sealed and draw(st.integers(0, 3)) == 0:
            layout = layout.prune(draw(st.sets(st.sampled_from(sealed), min_size=1)))
    return with_unknown_fields(layout, draw(unknown_fields), draw(unknown_fields))


def with_unknown_fields(layout: SegmentLayout, top: dict[str, Any], each_segment: dict[str, Any]) -> SegmentLayout:
    """The same layout as a later release might have stored it, with fields we do not know."""
    return SegmentLayout(
        epoch=layout.epoch,
        next_segment_id=layout.next_segment_id,
        segments={
            segment_id: Segment(
                **{name: getattr(segment, name) for name in Segment.__dataclass_fields__ if name != "extra"},
                extra=each_segment,
            )
            for segment_id, segment in layout.segments.items()
        },
        extra=top,
    )


def assert_sound(layout: SegmentLayout) -> None:
    """DESIGN §4's invariants, judged from the outside: they must hold after any sequence of operations."""
    next_start = 0
    for segment in layout.active:
        assert segment.hash_range.start == next_start
        next_start = segment.hash_range.end + 1
    assert next_start == 0x10000
    for segment_id, segment in layout.segments.items():
        assert segment.segment_id == segment_id < layout.next_segment_id
        assert 1 <= segment.buckets <= 1024
        for parent_id in segment.parent_ids:
            assert segment_id in layout.segments[parent_id].child_ids
            assert not layout.segments[parent_id].is_active
        for child_id in segment.child_ids:
            assert segment_id in layout.segments[child_id].parent_ids
        assert segment.created_at_epoch <= layout.epoch
        assert segment.sealed_at_epoch <= layout.epoch
        if segment.is_active:
            assert (segment.sealed_at_epoch, segment.sealed_at_ms, segment.child_ids) == (0, 0, ())
