"""DESIGN §4: what breaks an invariant is refused at construction, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from scalable_topics.layout import (
    HashRange,
    LayoutArgumentError,
    Segment,
    SegmentLayout,
    SegmentState,
)

LOW, HIGH, FULL = HashRange(0, 0x7FFF), HashRange(0x8000, 0xFFFF), HashRange.full()
SEALED = SegmentState.SEALED
OLD = "persistent://t/n/old"


def layout(segments: Iterable[Segment], epoch: int = 3, next_segment_id: int = 9) -> SegmentLayout:
    return SegmentLayout(epoch, next_segment_id, {one.segment_id: one for one in segments})


def test_a_sound_layout_is_taken() -> None:
    made = layout(
        [
            Segment(0, FULL, SEALED, child_ids=(2, 1), sealed_at_epoch=1),
            Segment(1, LOW, parent_ids=(0,)),
            Segment(2, HIGH, parent_ids=(0,)),
        ]
    )
    assert made.segment(0).child_ids == (1, 2)


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ([], r"no active segment covers \[0000, ffff\]"),
        ([Segment(0, FULL, SEALED)], r"no active segment covers \[0000, ffff\]"),
        ([Segment(0, LOW)], r"no active segment covers \[8000, ffff\]"),
        ([Segment(0, HIGH)], r"no active segment covers \[0000, 7fff\]"),
        (
            [Segment(0, LOW), Segment(1, HashRange(0x8001, 0xFFFF))],
            r"no active segment covers \[8000, 8000\]",
        ),
        (
            [Segment(0, LOW), Segment(1, FULL)],
            r"overlap: segment 0 \[0000, 7fff\] and segment 1 \[0000, ffff\]",
        ),
        ([Segment(0, FULL), Segment(1, FULL)], "overlap"),
        ([Segment(9, FULL)], "segment 9 has an id not below the next segment id 9"),
        ([Segment(0, FULL, created_at_epoch=4)], "after the layout's epoch 3"),
        (
            [Segment(0, FULL), Segment(1, FULL, SEALED, sealed_at_epoch=4)],
            "after the layout's epoch 3",
        ),
        ([Segment(1, FULL, parent_ids=(0,))], "segment 1 names the parent 0, which is missing"),
        (
            [Segment(0, FULL, SEALED), Segment(1, FULL, parent_ids=(0,))],
            "segment 1 names 0 as parent, but is not among its children",
        ),
        (
            [Segment(0, FULL, SEALED, child_ids=(2,)), Segment(1, FULL)],
            "segment 0 names the child 2, which is missing",
        ),
        (
            [Segment(0, FULL, SEALED, child_ids=(1,)), Segment(1, FULL)],
            "segment 0 names 1 as child, but is not among its parents",
        ),
        (
            [Segment(1, FULL, parent_ids=(2,)), Segment(2, FULL, SEALED, child_ids=(1,))],
            "segment 1 is older than its parent 2",
        ),
        (
            [
                Segment(0, LOW, SEALED, child_ids=(2,)),
                Segment(1, LOW),
                Segment(2, HIGH, parent_ids=(0,)),
            ],
            "no hash in common with its parent",
        ),
        ([Segment(0, LOW, topic=OLD), Segment(1, HIGH, topic=OLD)], "must cover the whole ring"),
    ],
)
def test_a_broken_layout_is_refused_with_the_reason(segments: list[Segment], reason: str) -> None:
    with pytest.raises(LayoutArgumentError, match=reason):
        layout(segments)


def test_a_segment_under_another_id_is_refused() -> None:
    with pytest.raises(LayoutArgumentError, match="segment 0 is filed under the id 1"):
        SegmentLayout(0, 2, {1: Segment(0, FULL)})


def test_a_negative_epoch_is_refused() -> None:
    with pytest.raises(LayoutArgumentError, match="the epoch is -1"):
        layout([Segment(0, FULL)], epoch=-1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"segment_id": -1}, "segment_id is -1, below 0"),
        ({"created_at_ms": -1}, "created_at_ms is -1, below 0"),
        ({"merge_depth": -2}, "merge_depth is -2, below 0"),
        ({"buckets": 0}, "segment 4 cannot have 0 entry buckets; 1 to 1024 are allowed"),
        ({"buckets": 1025}, "segment 4 cannot have 1025 entry buckets"),
        ({"parent_ids": (1, 1)}, "names a relative twice"),
        ({"topic": ""}, "wraps a topic without a name"),
        ({"child_ids": (5,)}, "segment 4 is active but has children"),
        ({"sealed_at_epoch": 1}, "active but says when or where it was sealed"),
        ({"sealed_at_ms": 1}, "active but says when or where it was sealed"),
        ({"sealed_position": "1:1"}, "active but says when or where it was sealed"),
        ({"state": SEALED, "sealed_position": "nowhere"}, "is not a position like 12:345"),
        (
            {"state": SEALED, "created_at_epoch": 3, "sealed_at_epoch": 2},
            "sealed at epoch 2, before its creation at epoch 3",
        ),
    ],
)
def test_a_contradictory_segment_is_refused(changes: dict[str, object], reason: str) -> None:
    """Hazard A1-26434a."""
    sound = Segment(4, FULL)
    with pytest.raises(LayoutArgumentError, match=reason):
        replace(sound, **changes)  # type: ignore[arg-type]


def test_from_parents_derives_children_and_checks_them_r11() -> None:
    made = SegmentLayout.from_parents(
        [
            Segment(0, FULL, SEALED, sealed_at_epoch=1),
            Segment(1, LOW, parent_ids=(0,)),
            Segment(2, HIGH, parent_ids=(0,)),
        ],
        epoch=1,
        next_segment_id=3,
    )
    assert made.segment(0) == Segment(0, FULL, SEALED, child_ids=(1, 2), sealed_at_epoch=1)
    assert [one.segment_id for one in made.active] == [1, 2]
    with pytest.raises(LayoutArgumentError, match="segment 0 is there twice"):
        SegmentLayout.from_parents([Segment(0, FULL), Segment(0, FULL)], epoch=0, next_segment_id=1)
    with pytest.raises(LayoutArgumentError, match="names the parent 5, which is missing"):
        SegmentLayout.from_parents([Segment(6, FULL, parent_ids=(5,))], epoch=0, next_segment_id=7)
    with pytest.raises(LayoutArgumentError, match="segment 0 is active but has children"):
        SegmentLayout.from_parents([Segment(0, FULL), Segment(1, FULL, parent_ids=(0,))], epoch=0, next_segment_id=2)
