"""The compact form that a topic's status keeps (R29)."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from scalable_topics.layout import (
    MAX_RECORDS,
    LayoutArgumentError,
    SegmentLayout,
    TopicName,
    from_record,
    migrated_layout,
    synthetic_layout,
    to_record,
)
from tests.unit.layout.strategies import layouts, unhurried


@unhurried
@given(layouts())
def test_reads_back_what_it_wrote_through_json_unknown_fields_included(layout: SegmentLayout) -> None:
    text = json.dumps(to_record(layout))
    assert from_record(json.loads(text)) == layout
    assert to_record(from_record(json.loads(text))) == json.loads(text)


@unhurried
@given(layouts(max_steps=3))
def test_reading_and_writing_leave_their_input_alone(layout: SegmentLayout) -> None:
    record = to_record(layout)
    before = deepcopy(record)
    to_record(from_record(record))["segments"].clear()
    assert record == before


def test_the_form_is_the_documented_one() -> None:
    """Hazard A2-26639."""
    layout = SegmentLayout.initial(2, created_at_ms=5).split(0, now_ms=6).merge([2, 3], now_ms=7)
    assert to_record(layout.with_sealed_position(2, "4:17")) == {
        "version": 1,
        "epoch": 2,
        "nextSegmentId": 5,
        "segments": [
            {
                "id": 0,
                "range": "0000-7fff",
                "state": "Sealed",
                "buckets": 2,
                "createdBy": "Create",
                "sealedAtEpoch": 1,
                "createdAtMs": 5,
                "sealedAtMs": 6,
            },
            {
                "id": 1,
                "range": "8000-ffff",
                "state": "Active",
                "buckets": 2,
                "createdBy": "Create",
                "createdAtMs": 5,
            },
            {
                "id": 2,
                "range": "0000-3fff",
                "state": "Sealed",
                "buckets": 1,
                "createdBy": "Split",
                "parents": ["0"],
                "createdAtEpoch": 1,
                "sealedAtEpoch": 2,
                "createdAtMs": 6,
                "sealedAtMs": 7,
                "sealedPosition": "4:17",
            },
            {
                "id": 3,
                "range": "4000-7fff",
                "state": "Sealed",
                "buckets": 1,
                "createdBy": "Split",
                "parents": ["0"],
                "createdAtEpoch": 1,
                "sealedAtEpoch": 2,
                "createdAtMs": 6,
                "sealedAtMs": 7,
            },
            {
                "id": 4,
                "range": "0000-7fff",
                "state": "Active",
                "buckets": 2,
                "createdBy": "Merge",
                "parents": ["2-3"],
                "createdAtEpoch": 2,
                "createdAtMs": 7,
                "mergeDepth": 1,
            },
        ],
    }


def test_parents_are_id_ranges_so_that_a_migrated_topic_stays_small() -> None:
    layout = migrated_layout(TopicName("t", "n", "old"), 128, now_ms=1)
    record = to_record(layout)
    assert record["segments"][-1]["parents"] == ["0-127"]
    assert len(json.dumps(record)) < 64_000
    assert from_record(record) == layout
    scattered = SegmentLayout.initial(8).merge([1, 2, 3], now_ms=1).split(5, now_ms=2).merge([4, 9], now_ms=3)
    assert to_record(scattered)["segments"][-1]["parents"] == ["4", "9"]


def test_a_full_record_fits_a_kubernetes_object() -> None:
    layout = SegmentLayout.initial(MAX_RECORDS // 2, created_at_ms=10**12)
    while len(layout.segments) < MAX_RECORDS:
        layout = layout.rebucket(layout.active[0].segment_id, len(layout.segments), now_ms=10**12)
    assert len(json.dumps(to_record(layout))) < 200_000


def test_a_synthetic_layout_keeps_its_topics() -> None:
    layout = synthetic_layout(TopicName("t", "n", "old"), 2)
    assert from_record(to_record(layout)) == layout


def sound() -> dict[str, Any]:
    return to_record(SegmentLayout.initial(2).split(0, now_ms=6))


def test_fields_left_out_mean_zero() -> None:
    record = {
        "version": 1,
        "epoch": 0,
        "nextSegmentId": 1,
        "segments": [{"id": 0, "range": "0000-ffff", "state": "Active"}],
    }
    assert from_record(record) == SegmentLayout.initial(1, bucket_budget=1)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["version"], 2, "has version 2; this release reads version 1"),
        (["version"], "1", "has version '1'"),
        (["version"], True, "has version True"),
        (["epoch"], "1", "epoch is not a whole number: '1'"),
        (["epoch"], True, "epoch is not a whole number"),
        (["epoch"], -1, "the epoch is -1"),
        (["nextSegmentId"], 3, "segment 3 has an id not below the next segment id 3"),
        (["nextSegmentId"], 1.5, "nextSegmentId is not a whole number"),
        (["segments"], {}, "segments is not a JSON array"),
        (["segments", 0], [], r"segments\[0\] is not a JSON object"),
        (["segments", 0, "id"], None, "id is not a whole number"),
        (["segments", 0, "range"], "0-7fff", "is not a hash range"),
        (["segments", 0, "range"], 7, "segment 0 range is not a string"),
        (["segments", 1, "range"], "8001-ffff", r"no active segment covers \[8000, 8000\]"),
        (["segments", 0, "state"], "Open", "segment 0 state is 'Open'; it must be one of Active, Sealed"),
        (
            ["segments", 0, "createdBy"],
            "Magic",
            "segment 0 createdBy is 'Magic'; it must be one of Create, Split",
        ),
        (["segments", 0, "buckets"], 0, "segment 0 cannot have 0 entry buckets"),
        (["segments", 0, "sealedAtMs"], "soon", "segment 0 sealedAtMs is not a whole number"),
        (["segments", 0, "topic"], 4, "segment 0 topic is not a string"),
        (["segments", 0, "sealedPosition"], "4", "'4' is not a position"),
        (["segments", 2, "parents"], "0", "segment 2 parents is not a JSON array"),
        (["segments", 2, "parents"], [0], "segment 2 parents is not a string"),
        (["segments", 2, "parents"], ["0-"], "segment 2: '0-' is not an id or a range of ids"),
        (["segments", 2, "parents"], ["7"], "segment 2 names the parents 7, which are not all in the layout"),
        (["segments", 2, "parents"], ["3-1"], "segment 2 names the parents 3-1"),
        (["segments", 2, "parents"], ["0-999999999999999999"], "which are not all in the layout"),
        (["segments", 2, "parents"], ["0", "0"], "names a relative twice"),
        (["segments", 2, "parents"], ["1"], "is active but has children"),
    ],
)
def test_a_damaged_record_is_refused_with_the_reason(path: list[Any], value: object, reason: str) -> None:
    record = sound()
    target: Any = record
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(LayoutArgumentError, match=reason):
        from_record(record)


@pytest.mark.parametrize("key", ["version", "epoch", "nextSegmentId", "segments"])
def test_a_missing_field_is_named(key: str) -> None:
    record = sound()
    del record[key]
    with pytest.raises(LayoutArgumentError, match=f"the layout record lacks '{key}'"):
        from_record(record)


@pytest.mark.parametrize("key", ["id", "range", "state"])
def test_a_missing_segment_field_is_named(key: str) -> None:
    record = sound()
    del record["segments"][1][key]
    with pytest.raises(LayoutArgumentError, match=rf"(segment 1|segments\[1\]) lacks '{key}'"):
        from_record(record)


def test_a_segment_that_is_there_twice_is_refused() -> None:
    record = sound()
    record["segments"].append(record["segments"][1])
    with pytest.raises(LayoutArgumentError, match="segment 1 is there twice"):
        from_record(record)


def test_something_else_is_no_record() -> None:
    with pytest.raises(LayoutArgumentError, match=r"the layout record is not a JSON object: \[\]"):
        from_record([])  # type: ignore[arg-type]


def test_unknown_fields_survive_a_change_hazard_c64() -> None:
    record = sound()
    record["autoScale"] = {"max": 8}
    record["segments"][1]["note"] = ["kept"]
    after = to_record(from_record(record).split(1, now_ms=9))
    assert after["autoScale"] == {"max": 8}
    assert after["segments"][1]["note"] == ["kept"]
