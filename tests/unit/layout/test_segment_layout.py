"""Views of a layout, its value semantics, and that nothing changes its input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import (
    LayoutArgumentError,
    LayoutStateError,
    Segment,
    SegmentLayout,
    TopicName,
    synthetic_layout,
    to_record,
)
from tests.unit.layout.strategies import assert_sound, changes, hashes, layouts, unhurried


@unhurried
@given(layouts())
def test_generated_layouts_are_sound(layout: SegmentLayout) -> None:
    assert_sound(layout)


@unhurried
@given(layouts())
def test_views_partition_the_segments(layout: SegmentLayout) -> None:
    active, sealed = {one.segment_id for one in layout.active}, {one.segment_id for one in layout.sealed}
    assert active | sealed == set(layout.segments)
    assert not active & sealed
    assert [one.segment_id for one in layout.sealed] == sorted(sealed)


@unhurried
@given(layouts(), hashes)
def test_each_hash_has_exactly_one_active_segment(layout: SegmentLayout, segment_hash: int) -> None:
    edges = {one.hash_range.start for one in layout.active} | {one.hash_range.end for one in layout.active}
    for value in edges | {segment_hash}:
        covering = [one for one in layout.active if one.hash_range.contains(value)]
        assert covering == [layout.find_active(value)]


@unhurried
@given(layouts())
def test_relatives_agree_with_each_other(layout: SegmentLayout) -> None:
    for segment_id in layout.segments:
        for parent in layout.parents_of(segment_id):
            assert segment_id in [child.segment_id for child in layout.children_of(parent.segment_id)]
        lineage = [one.segment_id for one in layout.lineage(segment_id)]
        assert lineage == sorted(set(lineage))
        assert set(lineage) == ancestors(layout, segment_id) | {segment_id} | descendants(layout, segment_id)


def ancestors(layout: SegmentLayout, segment_id: int) -> set[int]:
    parents = set(layout.segment(segment_id).parent_ids)
    return parents.union(*(ancestors(layout, parent) for parent in parents))


def descendants(layout: SegmentLayout, segment_id: int) -> set[int]:
    return {other for other in layout.segments if segment_id in ancestors(layout, other)}


@unhurried
@given(layouts(max_steps=4), st.data())
def test_no_operation_changes_its_input(layout: SegmentLayout, data: st.DataObject) -> None:
    before: dict[str, Any] = to_record(layout)
    change = data.draw(changes(layout))
    layout.reserve(change).apply(change, now_ms=9)
    if layout.sealed:
        layout.prune([layout.sealed[0].segment_id])
        layout.with_sealed_position(layout.sealed[0].segment_id, "1:1")
    assert to_record(layout) == before


def test_mappings_are_copied_and_cannot_be_written() -> None:
    segments, extra = {0: SegmentLayout.initial(1).segment(0)}, {"note": 1}
    layout = SegmentLayout(0, 1, segments, extra)
    segments.clear()
    extra.clear()
    assert set(layout.segments) == {0}
    assert dict(layout.extra) == {"note": 1}
    with pytest.raises(TypeError):
        layout.segments[1] = layout.segment(0)  # type: ignore[index]
    with pytest.raises(AttributeError):
        layout.epoch = 4  # type: ignore[misc]


def test_equal_layouts_are_equal_whatever_the_order_and_hash_alike() -> None:
    layout = SegmentLayout.initial(3)
    turned = SegmentLayout(0, 3, {one: layout.segment(one) for one in (2, 0, 1)})
    assert turned == layout
    assert hash(turned) == hash(layout)
    assert list(turned.segments) == [0, 1, 2]
    assert len({*layout.active, *turned.active}) == 3


def test_unknown_ids_are_refused_in_every_view() -> None:
    layout = SegmentLayout.initial(1)
    for view in (layout.segment, layout.parents_of, layout.children_of, layout.lineage):
        with pytest.raises(LayoutArgumentError, match="there is no segment 4"):
            view(4)


def test_lineage_of_a_diamond_leaves_out_cousins() -> None:
    layout = SegmentLayout.initial(2).split(0, now_ms=1).merge([2, 3], now_ms=2)
    assert [one.segment_id for one in layout.lineage(2)] == [0, 2, 4]
    assert [one.segment_id for one in layout.lineage(4)] == [0, 2, 3, 4]
    assert [one.segment_id for one in layout.lineage(1)] == [1]


def test_hashes_off_the_ring_are_refused() -> None:
    for value in (-1, 0x10000):
        with pytest.raises(LayoutArgumentError, match="leaves the ring"):
            SegmentLayout.initial(1).find_active(value)


def test_a_synthetic_layout_has_no_ranges_to_search_r25() -> None:
    with pytest.raises(LayoutStateError, match="routes by modulo"):
        synthetic_layout(TopicName("t", "n", "x"), 3).find_active(1)
    assert synthetic_layout(TopicName("t", "n", "x"), 0).find_active(1).segment_id == 0


def test_a_segment_shows_its_id_and_range() -> None:
    segment: Segment = SegmentLayout.initial(2).segment(1)
    assert str(segment) == "segment 1 [8000, ffff]"
